package policy

import (
	"testing"

	"proxima.io/operator/internal/proxies"
)

func silent(status int) func(*Observation) {
	return func(o *Observation) {
		outdate(o, 2)
		o.Proxies[1].Answer, o.Proxies[1].Err = nil, &proxies.Error{Status: status, Text: "as it is"}
	}
}

func TestAProxyThatDoesNotAnswerStopsTheNextAct(t *testing.T) {
	check(t, []row{
		{"no proxies", func(o *Observation) {
			outdate(o, 2)
			o.Proxies = nil
		}, Decision{Act: Nothing, Reason: "NoProxies"}},
		{"no ready ones", func(o *Observation) {
			outdate(o, 2)
			for index := range o.Proxies {
				o.Proxies[index].Ready = false
			}
		}, Decision{Act: Nothing, Reason: "NoProxies"}},
		{"silent", silent(0), Decision{Act: Nothing, Reason: "ProxyUnreachable"}},
		{"wrong token", silent(401), Decision{Act: Nothing, Reason: "TokenRefused", Stalled: true}},
		{"orders forbidden", silent(403), Decision{Act: Nothing, Reason: "OrdersForbidden", Stalled: true}},
		{"no such pool", silent(404), Decision{Act: Nothing, Reason: "PoolUnknown", Stalled: true}},
		{"another answer", silent(500), Decision{Act: Nothing, Reason: "ProxyRefuses", Stalled: true}},
		{"silent and not ready", func(o *Observation) {
			silent(0)(o)
			o.Proxies[1].Ready = false
		}, Decision{Act: Give, Reason: "Draining", Wish: proxies.Wish{Drain: []string{"db-2"}}}},
		{"members without pods", func(o *Observation) {
			for ordinal := range 3 {
				everywhere(o, ordinal, func(m *proxies.Member) { m.UID, m.Pod = "", "" })
			}
		}, Decision{Act: Nothing, Reason: "MembersWithoutPods", Stalled: true}},
		{"silent in the midst of a hold: the others are released", func(o *Observation) {
			silent(0)(o)
			orderOne(o, 0, proxies.Wish{Hold: true})
			orderOne(o, 2, proxies.Wish{Hold: true})
		}, Decision{Act: End, Reason: "ProxyUnreachable", Failed: failedTimes(1)}},
		{"silent once others write elsewhere: they go on", func(o *Observation) {
			silent(0)(o)
			rolls(o, "db-0")
			orderOne(o, 0, proxies.Wish{Writer: "db-1"})
			orderOne(o, 2, proxies.Wish{Writer: "db-1", Hold: true})
		}, Decision{Act: Give, Reason: "ProxyUnreachable", Wish: proxies.Wish{Writer: "db-1"}}},
	})
}
