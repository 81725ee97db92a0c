package policy

import (
	"fmt"
	"time"
)

// away: while a pod is missing, new and not yet finished, or not online everywhere, no other one goes. Pods
// beyond the set's replicas end first, too.
func away(v *view) *Decision {
	last := v.Set.FirstOrdinal + v.Set.Replicas - 1
	for _, pod := range v.pods {
		if pod.Ordinal > last || pod.Ordinal < v.Set.FirstOrdinal {
			return v.await(pod.Name, "Scales", "the set was made smaller, and "+pod.Name+" ends")
		}
	}
	for ordinal := last; ordinal >= v.Set.FirstOrdinal; ordinal-- {
		name := fmt.Sprintf("%s-%d", v.Spec.StatefulSet, ordinal)
		pod, found := v.pod(name)
		switch {
		case !found:
			return v.await(name, "PodMissing", name+" is not there yet")
		case pod.Terminating:
			return v.await(name, "PodEnds", name+" ends")
		case v.isUpdated(pod) && !v.isFinished(pod):
			return v.awaitFinished(pod)
		case !v.isUpdated(pod) && !v.isOnline(pod):
			return v.await(name, "MemberOffline", name+" is not online in all proxies: "+v.why(pod))
		}
	}
	return nil
}

func (v *view) await(name, reason, message string) *Decision {
	return &Decision{
		Step: AwaitingPod, StepPod: name, Wish: v.afterEvictions(), Reason: reason, Message: message,
		Again: whileAwaited,
	}
}

// awaitFinished waits for a new pod, within the limits.
func (v *view) awaitFinished(pod Pod) *Decision {
	waiting := v.await(pod.Name, "PodNotOnline", pod.Name+" is new and not yet online: "+v.why(pod))
	limits := v.Spec.Limits
	switch {
	case pod.Failure != "":
		waiting.Reason, waiting.Message = "PodFails", fmt.Sprintf("%s: %s", pod.Name, pod.Failure)
	case !pod.Unschedulable.IsZero() &&
		v.Now.Sub(pod.Unschedulable) > limits.Unschedulable.Of(2*time.Minute):
		waiting.Reason = "PodUnschedulable"
		waiting.Message = fmt.Sprintf("%s: no node takes it since %s", pod.Name,
			pod.Unschedulable.UTC().Format(time.RFC3339))
	case v.Now.Sub(v.since(AwaitingPod, pod.Name)) > limits.Pod.Of(2*time.Hour):
		waiting.Reason = "PodLate"
	default:
		return waiting
	}
	waiting.Stalled, waiting.Again = true, whenBlocked
	return waiting
}

// why says what keeps a pod from being online and finished.
func (v *view) why(pod Pod) string {
	if !pod.Ready {
		return "it is not ready"
	}
	for _, proxy := range v.ready {
		member := proxy.member(pod.UID)
		switch {
		case member == nil:
			return "proxy " + proxy.Pod + " does not know it yet"
		case !serves(member):
			if member.Why == "" {
				return "proxy " + proxy.Pod + " does not use it"
			}
			return "proxy " + proxy.Pod + " says: " + member.Why
		case !proxy.hasProven(pod):
			return "proxy " + proxy.Pod + " has seen no barrier pass on it since it is a " + member.Role
		}
	}
	return "it is online"
}
