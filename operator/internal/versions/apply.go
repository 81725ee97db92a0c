package versions

import (
	"fmt"
	"regexp"
	"strings"
)

// Apply is the wish of upgradeOptions.apply: a choice (recommended, latest), which may be bound to a series
// (8.0), or one version. Of a wish that is off nothing is asked.
type Apply struct {
	Series, Choice string
	Exact          *Version
}

// Recommended and Latest are the choices that a version service interprets.
const (
	Recommended = "recommended"
	Latest      = "latest"
)

var choice = regexp.MustCompile(`^(?:([0-9]{1,5}\.[0-9]{1,5})-)?(recommended|latest)$`)

// ParseApply reads the forms of Percona's operators. Capital letters do not count there, either.
func ParseApply(text string) (Apply, error) {
	word := strings.ToLower(text)
	if word == "" || word == "disabled" || word == "never" {
		return Apply{}, nil
	}
	if parts := choice.FindStringSubmatch(word); parts != nil {
		return Apply{Series: parts[1], Choice: parts[2]}, nil
	}
	exact, err := ParseVersion(text)
	if err != nil {
		return Apply{}, fmt.Errorf("apply %q is not known: write disabled, never, recommended, latest, "+
			"8.0-recommended, 8.0-latest or a version such as 8.0.42-33.1", short(text))
	}
	return Apply{Exact: &exact}, nil
}

// Off tells whether no version is asked for.
func (a Apply) Off() bool { return a.Choice == "" && a.Exact == nil }

// Word is what a version service is asked for. Where the running version is said as well, it says the series.
func (a Apply) Word(running *Version) string {
	switch {
	case a.Exact != nil:
		return a.Exact.String()
	case a.Series != "" && running == nil:
		return a.Series + "-" + a.Choice
	}
	return a.Choice
}
