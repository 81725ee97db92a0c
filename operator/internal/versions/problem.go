package versions

import "fmt"

// Problem is why a check ends without a version. Its reason becomes that of a condition.
type Problem struct {
	Reason, Message string
}

// Reasons of problems.
const (
	// Unreachable: the version service did not answer, or with an error of its own.
	Unreachable = "VersionServiceUnreachable"
	// NotOffered: the service does not know the product or the version.
	NotOffered = "VersionNotOffered"
	// Malformed: the answer is none, or offers not exactly one version.
	Malformed = "VersionAnswerMalformed"
	// Backwards: the offered version is older than the running one.
	Backwards = "VersionBackwards"
	// OtherSeries: the offered version has another major or minor number.
	OtherSeries = "VersionOtherSeries"
	// NotKnown: no proxy says which version runs.
	NotKnown = "RunningVersionUnknown"
	// BadOptions: the upgrade options cannot be read.
	BadOptions = "UpgradeOptionsInvalid"
)

func (p *Problem) Error() string { return p.Message }

func problem(reason, format string, values ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, values...)}
}
