package policy

import (
	"slices"

	"proxima.io/operator/internal/proxies"
)

// asItIs is what the proxies have been ordered, without a hold: it is repeated while nothing else may be
// done, so that a member that was taken out does not come back half way.
//
// A proxy that has been told to write to a member, without a hold, may write there already. So this writer
// counts before one that others only prepare.
func (v *view) asItIs() proxies.Wish {
	var wish proxies.Wish
	for _, proxy := range v.asked {
		order := proxy.Answer.Order
		if order == nil {
			continue
		}
		for _, pod := range order.Drain {
			if !slices.Contains(wish.Drain, pod) {
				wish.Drain = append(wish.Drain, pod)
			}
		}
		if order.Writer != "" && !order.Hold {
			wish.Writer = order.Writer
		}
	}
	if choice := v.rulesChoice(); wish.Writer == "" && v.holds() && choice != "" && choice != v.writer {
		// Another member than the rule's writes, and proxies prepare a move, which is taken back.
		wish.Writer = v.writer
	}
	if wish.Writer != "" && !v.servesSomewhere(wish.Writer) {
		// The member is gone. The proxies choose by their own rule.
		wish.Writer = ""
	}
	wish.Drain = sorted(wish.Drain)
	return wish
}

// afterEvictions is asItIs with the drains of those pods alone that were evicted and have not ended. A proxy
// drains the pod that had the name when it was first named, and not the one in its place; and a proxy that
// has just come refuses the name of a pod that is not there.
func (v *view) afterEvictions() proxies.Wish {
	wish := v.asItIs()
	wish.Drain = slices.DeleteFunc(wish.Drain, func(name string) bool {
		pod, found := v.pod(name)
		return !found || !pod.Terminating
	})
	return wish
}

// rulesChoice is the member to which the proxies write by their own rule: the one that their settings name,
// else who writes, while no order names a writer, and who did before in this roll, while one does.
func (v *view) rulesChoice() string {
	if len(v.ready) > 0 && v.ready[0].Answer != nil && v.servesSomewhere(v.ready[0].Answer.Preferred) {
		return v.ready[0].Answer.Preferred
	}
	for _, proxy := range v.asked {
		if order := proxy.Answer.Order; order != nil && order.Writer != "" {
			if v.Status.Roll == nil {
				return ""
			}
			return v.Status.Roll.Writer
		}
	}
	return v.writer
}

func (v *view) servesSomewhere(name string) bool {
	pod, found := v.pod(name)
	return found && slices.ContainsFunc(v.asked, func(p Proxy) bool { return serves(p.member(pod.UID)) })
}
