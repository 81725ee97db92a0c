package policy

import (
	"fmt"
	"time"
)

// reader: an outdated reader is drained on every proxy, and evicted when its sessions have ended. The
// highest ordinal goes first.
func reader(v *view) *Decision {
	for _, pod := range v.outdated() {
		if pod.Name == v.writer {
			continue
		}
		if blocked := tooSmall(v, pod); blocked != nil {
			return blocked
		}
		if blocked := guard(v); blocked != nil {
			return blocked
		}
		return v.drain(pod)
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (v *view) drain(pod Pod) *Decision {
	wish := v.afterEvictions()
	wish.Drain = sorted(append(wish.Drain, pod.Name))
	draining := &Decision{
		Wish: wish, Pod: pod, Step: Draining, StepPod: pod.Name, Reason: "Draining", Again: whileDrained,
	}
	everywhere, another := true, false
	for _, proxy := range v.asked {
		member := proxy.member(pod.UID)
		everywhere = everywhere && proxy.drains(pod.Name) && (member == nil || member.Drains)
		another = another || proxy.drains(pod.Name) && member != nil && !member.Drains
	}
	// The sessions of a proxy that was told later have the whole time, too.
	draining.afresh = !everywhere
	sessions := v.sessions(pod)
	draining.Message = fmt.Sprintf("%s is drained: %d sessions left", pod.Name, sessions)
	switch limit := v.Spec.Limits.Drain.Of(time.Minute); {
	case another:
		draining.Wish = v.afterEvictions()
		draining.Message = "an order drains the pod that " + pod.Name + " was before: it ends first"
	case !everywhere:
		draining.Message = pod.Name + " is to be drained on all proxies"
	case sessions == 0:
		draining.Act, draining.Step, draining.Reason = Evict, Evicting, "Drained"
	case v.Now.Sub(later(v.since(Draining, pod.Name), v.Started)) >= limit:
		draining.Act, draining.Step, draining.Reason = Evict, Evicting, "DrainLimit"
		draining.Message = fmt.Sprintf("%s is evicted with %d sessions left, after limits.drain",
			pod.Name, sessions)
	}
	return draining
}
