package policy

import (
	"slices"
	"time"

	"proxima.io/operator/internal/proxies"
)

// view is an observation with what follows from it.
type view struct {
	Observation
	// ready are the proxies that clients reach.
	ready []Proxy
	// asked are the proxies that answer and whose word counts in a move: ready ones, and others that have a
	// writer, as a proxy that ends still has clients.
	asked []Proxy
	// pods are those of the set's ordinals, the highest first.
	pods []Pod
	// writer is who takes writes, as all ready proxies say; empty: they say nothing, or differ.
	writer string
}

func look(o Observation) *view {
	v := &view{Observation: o}
	for _, proxy := range o.Proxies {
		if proxy.Ready {
			v.ready = append(v.ready, proxy)
		}
		if proxy.Answer != nil && (proxy.Ready || proxy.Answer.Writer != "") {
			v.asked = append(v.asked, proxy)
		}
	}
	v.pods = slices.Clone(o.Pods)
	slices.SortFunc(v.pods, func(a, b Pod) int { return b.Ordinal - a.Ordinal })
	for index, proxy := range v.ready {
		if proxy.Answer == nil || index > 0 && proxy.Answer.Writer != v.writer {
			v.writer = ""
			break
		}
		v.writer = proxy.Answer.Writer
	}
	return v
}

// isUpdated: the pod has the template's newest revision.
func (v *view) isUpdated(pod Pod) bool {
	return pod.Revision == v.Set.UpdateRevision
}

// outdated returns the pods that a roll would replace, the highest ordinal first.
func (v *view) outdated() []Pod {
	var found []Pod
	for _, pod := range v.pods {
		if v.Set != nil && !pod.Terminating && !v.isUpdated(pod) {
			found = append(found, pod)
		}
	}
	return found
}

// onlineIn counts the ready proxies in which this very pod serves.
func (v *view) onlineIn(pod Pod) int {
	count := 0
	for _, proxy := range v.ready {
		if serves(proxy.member(pod.UID)) {
			count++
		}
	}
	return count
}

// isOnline: the pod serves in every ready proxy.
func (v *view) isOnline(pod Pod) bool {
	return !pod.Terminating && len(v.ready) > 0 && v.onlineIn(pod) == len(v.ready)
}

// isFinished: the pod is new, serves in every ready proxy, and each of them has seen a barrier pass on it
// since it took up its role.
func (v *view) isFinished(pod Pod) bool {
	if !pod.Ready || !v.isUpdated(pod) || !v.isOnline(pod) {
		return false
	}
	for _, proxy := range v.ready {
		if !proxy.hasProven(pod) {
			return false
		}
	}
	return true
}

func serves(member *proxies.Member) bool {
	return member != nil && member.Online && member.Role != proxies.Out
}

// hasProven: a barrier has passed since the member has its role. The writer has all writes. A member that we
// have told the proxy to prepare as the next writer was proven before that, and now passes another barrier.
func (p *Proxy) hasProven(pod Pod) bool {
	member, order := p.member(pod.UID), p.Answer.Order
	if member.Role == proxies.Writer || order != nil && order.Hold && order.Writer == pod.Name {
		return true
	}
	return member.Barrier == proxies.Passed && member.BarrierMS != nil && *member.BarrierMS <= member.RoleMS
}

// sessions counts the sessions that keep a connection to the pod, in all proxies that answer.
func (v *view) sessions(pod Pod) int {
	count := 0
	for _, proxy := range v.Proxies {
		if member := proxy.member(pod.UID); member != nil {
			count += member.Sessions
		}
	}
	return count
}

func (p *Proxy) member(uid string) *proxies.Member {
	if p.Answer == nil {
		return nil
	}
	return p.Answer.Member(uid)
}

// holds: some proxy keeps writes waiting by our order.
func (v *view) holds() bool {
	return slices.ContainsFunc(v.asked, func(p Proxy) bool {
		return p.Answer.Order != nil && p.Answer.Order.Hold
	})
}

// orders: some proxy has our order.
func (v *view) orders() bool {
	return slices.ContainsFunc(v.asked, func(p Proxy) bool { return p.Answer.Order != nil })
}

// drains: a proxy drains the pod by our order.
func (p *Proxy) drains(pod string) bool {
	return p.Answer.Order != nil && slices.Contains(p.Answer.Order.Drain, pod)
}

// pod returns the pod with this name.
func (v *view) pod(name string) (Pod, bool) {
	index := slices.IndexFunc(v.pods, func(p Pod) bool { return p.Name == name })
	if index < 0 {
		return Pod{}, false
	}
	return v.pods[index], true
}

// since is when a step began: now, if it begins now or if the clock was set back.
func (v *view) since(step, pod string) time.Time {
	was := v.Status.Step
	if was == nil || was.Pod != pod || was.Since.After(v.Now) {
		return v.Now
	}
	isLast := was.Name == step || was.Name == Draining && step == Evicting ||
		was.Name == Evicting && step == Draining
	if !isLast {
		return v.Now
	}
	return was.Since.Time
}
