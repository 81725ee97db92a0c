package policy

import (
	"testing"
	"time"

	"proxima.io/operator/internal/proxies"
)

func TestAReaderIsDrainedAndThenEvicted(t *testing.T) {
	drained := proxies.Wish{Drain: []string{"db-2"}}
	draining := func(o *Observation) {
		outdate(o, 0, 1, 2)
		order(o, drained)
		stepped(o, Draining, "db-2", 10*time.Second)
	}
	check(t, []row{
		{"the highest ordinal first", func(o *Observation) { outdate(o, 0, 1, 2) },
			Decision{Act: Give, Reason: "Draining", Wish: drained, Pod: Pod{Name: "db-2"}, Step: Draining}},
		{"never the writer", func(o *Observation) {
			outdate(o, 0, 1, 2)
			writes(o, 2)
		}, Decision{Act: Give, Reason: "Draining", Wish: drainOf("db-1"), Pod: Pod{Name: "db-1"}}},
		{"sessions are left", draining, Decision{Act: Nothing, Reason: "Draining", Wish: drained}},
		{"no session is left", func(o *Observation) {
			draining(o)
			everywhere(o, 2, noSessions)
		}, Decision{Act: Evict, Reason: "Drained", Wish: drained, Pod: Pod{Name: "db-2"}, Step: Evicting}},
		{"a session is left at a proxy that is not ready", func(o *Observation) {
			draining(o)
			everywhere(o, 2, noSessions)
			o.Proxies[1].Ready = false
			member(o, 1, 2, func(m *proxies.Member) { m.Sessions = 1 })
		}, Decision{Act: Nothing, Reason: "Draining", Wish: drained}},
		{"the limit has passed", func(o *Observation) {
			draining(o)
			stepped(o, Draining, "db-2", time.Minute)
		}, Decision{Act: Evict, Reason: "DrainLimit", Wish: drained, Pod: Pod{Name: "db-2"}}},
		{"the limit had passed for an operator before this one", func(o *Observation) {
			draining(o)
			stepped(o, Draining, "db-2", time.Hour)
			o.Started = noon.Add(-time.Second)
		}, Decision{Act: Nothing, Reason: "Draining", Wish: drained}},
		{"the limit passed long ago, and the drain has ended with its order", func(o *Observation) {
			outdate(o, 0, 1, 2)
			stepped(o, Draining, "db-2", time.Hour)
		}, Decision{Act: Give, Reason: "Draining", Wish: drained}},
		{"a proxy has come that was not told", func(o *Observation) {
			draining(o)
			everywhere(o, 2, noSessions)
			o.Proxies[1].Answer.Order = nil
		}, Decision{Act: Give, Reason: "Draining", Wish: drained}},
		{"a proxy drains the pod that was there before", func(o *Observation) {
			draining(o)
			everywhere(o, 2, noSessions)
			member(o, 1, 2, func(m *proxies.Member) { m.Drains = false })
		}, Decision{Act: End, Reason: "Draining"}},
		{"the order is repeated in time", func(o *Observation) {
			draining(o)
			o.Proxies[1].Answer.Order.EndsInMS = 14_000
		}, Decision{Act: Give, Reason: "Draining", Wish: drained}},
		{"a budget refuses", func(o *Observation) {
			draining(o)
			everywhere(o, 2, noSessions)
			o.Refused = &Refusal{Text: "Cannot evict pod", ByBudget: true}
		}, Decision{Act: Evict, Reason: "Refused", Wish: drained}},
		{"a proxy refuses", func(o *Observation) {
			outdate(o, 2)
			o.Refused = &Refusal{Text: "proxima-1: 403: orders need a token_file"}
		}, Decision{Act: Give, Reason: "Refused", Stalled: true, Wish: drained}},
		{"the template has changed again", func(o *Observation) {
			draining(o)
			o.Set.UpdateRevision = "newer"
			o.Pods[2].Revision = "new"
		}, Decision{Act: Nothing, Reason: "Draining", Wish: drained}},
		{"the old writer is a reader like the others", func(o *Observation) {
			outdate(o, 0)
			rolls(o, "db-0")
			writes(o, 1)
			order(o, proxies.Wish{Writer: "db-1"})
		}, Decision{Act: Give, Reason: "Draining", Wish: proxies.Wish{Writer: "db-1", Drain: []string{"db-0"}}}},
		{"paused", func(o *Observation) {
			outdate(o, 2)
			o.Spec.Paused = true
		}, Decision{Act: Nothing, Reason: "Paused", Wish: drained}},
	})
}
