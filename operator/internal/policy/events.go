package policy

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"proxima.io/operator/api/v1alpha1"
)

// Event is one thing that somebody reads in a history of the object.
type Event struct {
	Reason  string
	Message string
	Warning bool
	// Held is for how long writes waited, of a WriterMoved.
	Held time.Duration
}

// Events are what has happened between the status before and the one after, and what this act does.
func Events(o Observation, d Decision, after v1alpha1.SmartUpdateStatus) []Event {
	v, before := look(o), o.Status
	var events []Event
	tell := func(warning bool, reason, message string, values ...any) {
		events = append(events, Event{Reason: reason, Message: fmt.Sprintf(message, values...), Warning: warning})
	}
	if before.Roll == nil && after.Roll != nil {
		tell(false, "RollBegan", "pods are replaced by those of revision %s", after.Roll.Revision)
	}
	if was := before.Step; was != nil && was.Name == AwaitingPod && after.Roll != nil && v.hasCome(was.Pod) &&
		(after.Step.Name != AwaitingPod || after.Step.Pod != was.Pod) {
		tell(false, "Online", "%s is online in %d proxies", was.Pod, len(v.ready))
	}
	if before.Writer != "" && after.Writer != "" && before.Writer != after.Writer && before.Roll != nil {
		held := v.lastHold()
		tell(false, "WriterMoved", "from %s to %s, held %d ms", before.Writer, after.Writer, held.Milliseconds())
		events[len(events)-1].Held = held
	}
	if d.Act == Evict {
		if d.Reason == "Drained" || d.Reason == "DrainLimit" {
			tell(d.Reason == "DrainLimit", "Drained", "%s", d.Message)
		}
		tell(false, "Evicted", "%s: %s", d.Pod.Name, d.Message)
	}
	if d.Failed != nil {
		tell(true, d.Failed.Reason, "attempt %d to move the writer: %s", d.Failed.Failed, d.Failed.Message)
	}
	if stalled := meta.FindStatusCondition(before.Conditions, v1alpha1.Stalled); d.Stalled &&
		(stalled == nil || stalled.Status != "True" || stalled.Reason != d.Reason) {
		tell(true, "Stalled", "%s: %s", d.Reason, d.Message)
	}
	if before.Roll != nil && after.Roll == nil && after.LastRoll != nil {
		tell(false, "RollEnded", "after %s, the longest hold was %d ms",
			after.LastRoll.Ended.Sub(after.LastRoll.Began.Time).Round(time.Second), after.LastRoll.LongestHoldMS)
	}
	return events
}

func (v *view) hasCome(name string) bool {
	pod, found := v.pod(name)
	return v.Set != nil && found && v.isFinished(pod)
}

// lastHold is for how long the proxies have held writes in the last move.
func (v *view) lastHold() time.Duration {
	longest := int64(0)
	for _, proxy := range v.asked {
		if proxy.Answer.LongestHoldMS != nil {
			longest = max(longest, *proxy.Answer.LongestHoldMS)
		}
	}
	return time.Duration(longest) * time.Millisecond
}

// OnlineEverywhere counts the members that serve in every ready proxy.
func OnlineEverywhere(o Observation) int {
	v, count := look(o), 0
	for _, pod := range v.pods {
		if v.isOnline(pod) {
			count++
		}
	}
	return count
}

// Holding: writes wait by our order, so that nothing may delay the next act.
func Holding(o Observation) bool {
	return look(o).holds()
}
