package versions

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proxima.io/operator/api/v1alpha1"
)

// Reasons of the condition beside those of problems.
const (
	// Off: apply is disabled or never.
	Off = "Disabled"
	// NothingNewer: the version that was found runs.
	NothingNewer = "NothingNewer"
	// ImageSet: the image of a newer version was set.
	ImageSet = "ImageSet"
	// Reported: there is a newer version, and report leaves the image alone.
	Reported = "Reported"
	// LeftOut: a backup ran at the time of a check.
	LeftOut = "BackupRunning"
)

// Next decides which version is wanted now. It never waits for a service: it asks in the background, and the
// turn after the answer decides.
func (c *Client) Next(ctx context.Context, request Request, now time.Time) Result {
	check, result := request.check(now)
	if check == nil {
		return result
	}
	entry, refused, answered := c.answer(ctx, check.question, now)
	if !answered {
		return Result{Status: request.Status}
	}
	return check.conclude(entry, refused)
}

// check is a check that has come, with what it compares an answer with.
type check struct {
	question Question
	apply    Apply
	// base is what runs; nil: nothing is known of it, and apply says the series.
	base   *Version
	image  string
	report bool
	// status is what remains of this check whatever it finds.
	status v1alpha1.Versions
}

// check is the check that has come, or what this turn comes to without one.
func (r Request) check(now time.Time) (*check, Result) {
	options := r.Options
	apply, err := ParseApply(options.Apply)
	if err != nil {
		return nil, r.refused(problem(BadOptions, "%s", err))
	}
	if apply.Off() {
		status := r.Status
		status.Apply, status.NextCheck = options.Apply, nil
		off := condition(metav1.ConditionFalse, Off, "apply is "+options.Apply)
		return nil, Result{Status: status, Condition: off}
	}
	schedule, err := ParseSchedule(options.Schedule, options.TimeZone)
	if err != nil {
		return nil, r.refused(problem(BadOptions, "%s", err))
	}
	due := r.due(schedule, now)
	next := metav1.NewTime(schedule.Next(now).UTC())
	status := r.Status
	status.Apply, status.NextCheck = options.Apply, &next
	running, err := Newest(r.Running)
	if !due {
		return nil, Result{Status: status, Condition: r.reached(running)}
	}
	if err != nil {
		return nil, r.refused(problem(NotKnown, "%s", err))
	}
	if running == nil && r.hasRun() {
		// The check stays due, as proxies may come back in its window.
		return nil, r.refused(problem(NotKnown, "no proxy says which version runs"))
	}
	last := metav1.NewTime(now.UTC())
	status.LastCheck = &last
	if r.Backup {
		return nil, Result{Status: status, Condition: condition(metav1.ConditionUnknown, LeftOut,
			"a backup ran at the time of the check, which is left to the next time")}
	}
	c := &check{apply: apply, base: r.base(running), image: r.Image, report: options.Report, status: status}
	if c.base == nil && apply.Exact == nil && apply.Series == "" {
		return nil, c.refused(problem(NotKnown,
			"no member has run yet, and the tag of image %s is no version: write "+
				"a series, as 8.0-%s", short(r.Image), apply.Choice))
	}
	ask, refused := apply.question(c.base)
	switch {
	case refused != nil:
		return nil, c.refused(refused)
	case !ask:
		return nil, c.nothingNewer(apply.Exact.String())
	}
	c.question = Question{
		Endpoint:        options.VersionServiceEndpoint,
		Product:         options.Product,
		OperatorVersion: options.OperatorVersion,
		Component:       options.Component,
		Word:            apply.Word(running),
	}
	if running != nil {
		c.question.DatabaseVersion = running.String()
	} else if c.base != nil && apply.Exact == nil {
		c.question.Word = c.base.Series() + "-" + apply.Choice
	}
	return c, Result{}
}

// due tells whether there is a check now: at its time, when apply has changed, and before any member has run.
func (r Request) due(schedule Schedule, now time.Time) bool {
	if r.Status.Apply != "" && r.Status.Apply != r.Options.Apply {
		return true
	}
	last := r.Created.Time
	if r.Status.LastCheck != nil {
		last = r.Status.LastCheck.Time
	} else if !r.hasRun() {
		return true
	}
	_, due := schedule.Due(last, now, r.Options.Window.Of(2*time.Hour))
	return due
}

// hasRun tells whether a member has run since the object was made, as far as is known.
func (r Request) hasRun() bool {
	return len(r.Running) > 0 || r.Status.Running != "" || r.Status.LastCheck != nil
}

// base is the version below which no update goes: the newest that runs. A member that does not say its own
// may have run what was wanted last. Before any has run it is that of the image's tag.
func (r Request) base(running *Version) *Version {
	if running == nil {
		if version, err := ParseRunning(tag(r.Image)); err == nil {
			return &version
		}
		return nil
	}
	if len(r.Running) < r.Replicas {
		wanted, err := ParseVersion(r.Status.Wanted)
		if err == nil && wanted.Series() == running.Series() && wanted.Newer(*running) {
			return &wanted
		}
	}
	return running
}

// reached is the condition when what the last check found runs on every member; nil: nothing has changed.
func (r Request) reached(running *Version) *metav1.Condition {
	found, err := ParseVersion(r.Status.Available)
	if err != nil || running == nil || len(r.Running) < r.Replicas {
		return nil
	}
	for _, text := range r.Running {
		if version, err := ParseRunning(text); err != nil || found.Newer(version) {
			return nil
		}
	}
	return condition(metav1.ConditionFalse, NothingNewer, running.String()+" runs")
}

// refused is a turn that ends with a problem, and leaves a check that is due for the next one.
func (r Request) refused(p *Problem) Result {
	return Result{Status: r.Status, Condition: p.condition()}
}

func (c *check) refused(p *Problem) Result {
	c.status.Available = ""
	return Result{Status: c.status, Condition: p.condition()}
}

func (c *check) nothingNewer(version string) Result {
	c.status.Available = version
	return Result{Status: c.status, Condition: condition(metav1.ConditionFalse, NothingNewer, version+" runs")}
}

// conclude is what the answer leads to.
func (c *check) conclude(offered Entry, refused *Problem) Result {
	if refused != nil {
		return c.refused(refused)
	}
	update, refused := Decide(c.apply, c.base, offered)
	version := offered.Version.String()
	switch {
	case refused != nil:
		return c.refused(refused)
	case !update:
		return c.nothingNewer(version)
	}
	c.status.Available = version
	if c.report {
		reported := condition(metav1.ConditionTrue, Reported, version+" is available")
		return Result{Status: c.status, Condition: reported}
	}
	c.status.Wanted, c.status.Image = version, offered.Image
	result := Result{Status: c.status, Condition: condition(metav1.ConditionTrue, ImageSet,
		"image "+offered.Image+" of "+version+" was set")}
	if offered.Image != c.image {
		result.Image = offered.Image
	}
	return result
}

func condition(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: v1alpha1.UpdateAvailable, Status: status, Reason: reason, Message: message}
}

// condition is false where there is no update that may be made, and unknown where nothing is known of one.
func (p *Problem) condition() *metav1.Condition {
	status := metav1.ConditionUnknown
	if p.Reason == Backwards || p.Reason == OtherSeries {
		status = metav1.ConditionFalse
	}
	return condition(status, p.Reason, p.Message)
}

// tag is the part of an image that names its version; empty: there is none.
func tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag
}
