package policy

import (
	"testing"
	"time"

	"proxima.io/operator/internal/proxies"
)

func TestNothingIsEvictedWhileProxiesSayDifferentWriters(t *testing.T) {
	moved := proxies.Wish{Writer: "db-1"}
	follows := func(o *Observation) {
		outdate(o, 0)
		rolls(o, "db-0")
		order(o, moved)
		writesAt(o, 0, 1)
	}
	check(t, []row{
		{"they differ", func(o *Observation) {
			outdate(o, 2)
			writesAt(o, 1, 1)
		}, Decision{Act: Nothing, Reason: "WritersDiffer"}},
		{"one has none", func(o *Observation) {
			outdate(o, 2)
			o.Proxies[2].Answer.Writer = ""
		}, Decision{Act: Nothing, Reason: "WritersDiffer"}},
		{"they differ, and a broken pod waits", func(o *Observation) {
			outdate(o, 2)
			o.Pods[2].Ready = false
			everywhere(o, 2, offline)
			writesAt(o, 1, 1)
		}, Decision{Act: Nothing, Reason: "WritersDiffer"}},
		{"none of them has one", func(o *Observation) {
			outdate(o, 2)
			for index := range o.Proxies {
				o.Proxies[index].Answer.Writer = ""
			}
		}, Decision{Act: Nothing, Reason: "NoWriter"}},
		{"they follow our order", follows, Decision{Act: Nothing, Reason: "WriterMoves", Wish: moved}},
		{"one was not told", func(o *Observation) {
			follows(o)
			o.Proxies[2].Answer.Order = nil
		}, Decision{Act: Give, Reason: "WriterMoves", Wish: moved}},
		{"one still holds", func(o *Observation) {
			follows(o)
			orderOne(o, 2, proxies.Wish{Hold: true, Writer: "db-1"})
		}, Decision{Act: Give, Reason: "WriterMoves", Wish: moved}},
		{"one never follows", func(o *Observation) {
			follows(o)
			stepped(o, MovingWriter, "db-1", 3*time.Hour)
		}, Decision{Act: Nothing, Reason: "MoveIncomplete", Stalled: true, Wish: moved}},
		{"the ordered one is gone", func(o *Observation) {
			follows(o)
			writes(o, 0)
			everywhere(o, 1, offline)
		}, Decision{Act: End, Reason: "PodNotOnline"}},
	})
}
