package policy

import (
	"fmt"
	"slices"
	"strings"
)

// unanswered: without proxies nothing is done, and one that is ready and does not answer stops the next act.
func unanswered(v *view) *Decision {
	if len(v.ready) == 0 {
		return &Decision{
			Step: Waiting, Reason: "NoProxies", handsOff: true, Again: whenBlocked,
			Message: fmt.Sprintf("Service %s has no ready endpoint with a port named admin", v.Spec.Proxies.Service),
		}
	}
	blocked := &Decision{Step: Waiting, Again: whenBlocked}
	for _, proxy := range v.ready {
		if proxy.Answer != nil {
			continue
		}
		blocked.Reason, blocked.Stalled = "ProxyRefuses", true
		switch proxy.Err.Status {
		case 0:
			blocked.Reason, blocked.Stalled = "ProxyUnreachable", false
		case 401:
			blocked.Reason = "TokenRefused"
		case 403:
			blocked.Reason = "OrdersForbidden"
		case 404:
			blocked.Reason = "PoolUnknown"
		}
		blocked.Message = fmt.Sprintf("proxy %s: %s", proxy.Pod, proxy.Err.Text)
		return v.keep(blocked)
	}
	if !slices.ContainsFunc(v.ready, func(p Proxy) bool { return p.namesPods() }) {
		blocked.Reason, blocked.Stalled = "MembersWithoutPods", true
		blocked.Message = fmt.Sprintf("pool %s names no pods: list its members by kubernetes:, "+
			"not by dns: or servers:", v.Spec.Proxies.Pool)
		return v.keep(blocked)
	}
	return nil
}

func (p *Proxy) namesPods() bool {
	for _, member := range p.Answer.Members {
		if member.UID != "" {
			return true
		}
	}
	return len(p.Answer.Members) == 0
}

// leftOut names the proxies that do not answer and are not ready, without which a roll goes on.
func (v *view) leftOut() string {
	var names []string
	for _, proxy := range v.Proxies {
		if !proxy.Ready && proxy.Answer == nil {
			names = append(names, proxy.Pod)
		}
	}
	return strings.Join(names, ", ")
}

// keep: what proxies were ordered stands, and a move of the writer that is under way has failed.
func (v *view) keep(d *Decision) *Decision {
	d.Wish = v.asItIs()
	if v.holds() && !v.isDecided() {
		d.Failed = v.failure(d.Reason, d.Message)
	}
	return d
}
