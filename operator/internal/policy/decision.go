package policy

import (
	"fmt"
	"slices"
	"time"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/proxies"
)

// Act is what a turn does.
type Act string

// Acts. A turn does one of them and returns.
const (
	Nothing Act = "nothing"
	// Give gives the wish to all proxies that answer.
	Give Act = "give"
	// End ends the order at all proxies.
	End Act = "end"
	// Evict evicts one pod.
	Evict Act = "evict"
)

// Steps are what the status shows.
const (
	Resting         = "Resting"
	Waiting         = "Waiting"
	AwaitingPod     = "AwaitingPod"
	Draining        = "Draining"
	Evicting        = "Evicting"
	MovingWriter    = "MovingWriter"
	ReturningWriter = "ReturningWriter"
	EndingOrders    = "EndingOrders"
)

// Decision is the next act and why it is that.
type Decision struct {
	Act  Act
	Wish proxies.Wish
	// To are the proxies' pods to which the wish is given.
	To []string
	// Pod is the one to evict.
	Pod Pod

	Step    string
	StepPod string
	Reason  string
	Message string
	// Stalled: it does not go on without a person.
	Stalled bool
	// Since is when the step began.
	Since time.Time
	// Failed is the attempt to move the writer that fails with this act; nil: none does.
	Failed *v1alpha1.Moves
	// Again is when to look again.
	Again time.Duration

	// handsOff: proxies keep what they have until it ends by itself.
	handsOff bool
	// afresh: the step begins now, whatever the status says.
	afresh bool
}

// orderLife is for how long proxies keep an order, and orderMargin is when it is repeated.
const (
	OrderLife   = 30 * time.Second
	orderMargin = 15 * time.Second
)

// Pauses between two turns: at rest, while something is awaited, while sessions end, and while writes wait.
const (
	atRest       = 10 * time.Second
	whenBlocked  = 2 * time.Second
	whileAwaited = 500 * time.Millisecond
	whileDrained = 200 * time.Millisecond
	whileHeld    = 2 * time.Millisecond
)

// Decide returns the next act. Rules are asked in this order, and the first one that applies decides.
func Decide(o Observation) Decision {
	v := look(o)
	for _, rule := range []func(*view) *Decision{
		older, set, unanswered, byHand, disagreement, broken, away, noWriter, reader, writer, home,
	} {
		if decision := rule(v); decision != nil {
			return v.complete(*decision)
		}
	}
	return v.complete(*v.rest())
}

// complete adds to a rule's decision what is the same for all of them.
func (v *view) complete(d Decision) Decision {
	evicts := d.Act == Evict
	for _, proxy := range v.asked {
		d.To = append(d.To, proxy.Pod)
	}
	d.Act = Nothing
	switch {
	case d.handsOff || len(v.asked) == 0:
	case !v.isGivenToAll(d.Wish):
		if d.Act = Give; isEmpty(d.Wish) {
			d.Act = End
		}
	case evicts:
		d.Act = Evict
	}
	if d.Since = v.Now; !d.afresh {
		d.Since = v.since(d.Step, d.StepPod)
	}
	if d.Act == Give || d.Act == End {
		d.Again = whileHeld
	}
	if d.Act != Nothing && v.Refused != nil {
		d.Reason, d.Stalled, d.Again = "Refused", !v.Refused.ByBudget, whenBlocked
		d.Message = fmt.Sprintf("%s; the last attempt was refused: %s", d.Message, v.Refused.Text)
	}
	if names := v.leftOut(); names != "" && d.Step != Resting {
		d.Message += "; left out, as they are not ready and do not answer: " + names
	}
	if v.Spec.Paused && v.anything(d) {
		d.Message = fmt.Sprintf("paused; the next act would be: %s (%s: %s)", d.describe(), d.Reason, d.Message)
		d.Act, d.Reason, d.Failed, d.Again = Nothing, "Paused", nil, atRest
	}
	return d
}

// anything: there is something that a pause keeps from being done.
func (v *view) anything(d Decision) bool {
	return d.Act != Nothing || len(v.outdated()) > 0
}

// describe says what the act is, for somebody who reads the status of a paused object.
func (d *Decision) describe() string {
	switch d.Act {
	case Evict:
		return "evict " + d.Pod.Name
	case End:
		return "end the order at all proxies"
	case Give:
		text := "order all proxies to"
		if d.Wish.Hold {
			text += " hold writes,"
		}
		for _, pod := range d.Wish.Drain {
			text += " drain " + pod + ","
		}
		if d.Wish.Writer != "" {
			text += " write to " + d.Wish.Writer + ","
		}
		return text[:len(text)-1]
	}
	return "none"
}

func isEmpty(w proxies.Wish) bool {
	return !w.Hold && len(w.Drain) == 0 && w.Writer == ""
}

// isGivenToAll: every proxy that is asked has this wish, and for long enough.
func (v *view) isGivenToAll(w proxies.Wish) bool {
	for _, proxy := range v.asked {
		order := proxy.Answer.Order
		if isEmpty(w) {
			if order != nil {
				return false
			}
			continue
		}
		if order == nil || order.EndsInMS < orderMargin.Milliseconds() || !same(order.Wish, w) {
			return false
		}
	}
	return true
}

func same(a, b proxies.Wish) bool {
	return a.Hold == b.Hold && a.Writer == b.Writer && slices.Equal(sorted(a.Drain), sorted(b.Drain))
}

func sorted(names []string) []string {
	return slices.Sorted(slices.Values(names))
}
