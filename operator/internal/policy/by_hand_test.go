package policy

import (
	"testing"

	"proxima.io/operator/internal/proxies"
)

func TestWhatAPersonHasOrderedIsWaitedFor(t *testing.T) {
	byHand := func(o *Observation) {
		outdate(o, 2)
		o.Proxies[0].Answer.ByHand = []proxies.ByHand{{Order: "writer", Member: "db-2"}}
	}
	check(t, []row{
		{"at one proxy", byHand, Decision{Act: Nothing, Reason: "OrderedByHand"}},
		{"beside a drain of ours, which stays", func(o *Observation) {
			byHand(o)
			order(o, proxies.Wish{Drain: []string{"db-2"}})
		}, Decision{Act: Nothing, Reason: "OrderedByHand", Wish: proxies.Wish{Drain: []string{"db-2"}}}},
		{"in the midst of a hold", func(o *Observation) {
			byHand(o)
			order(o, proxies.Wish{Hold: true})
		}, Decision{Act: End, Reason: "OrderedByHand", Failed: failedTimes(1)}},
	})
}
