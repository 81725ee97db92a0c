package policy

import (
	"testing"

	"proxima.io/operator/internal/proxies"
)

func TestInTheEndTheWriterReturnsAndOrdersEnd(t *testing.T) {
	moved, held := proxies.Wish{Writer: "db-1"}, proxies.Wish{Hold: true, Writer: "db-1"}
	away := func(o *Observation) {
		rolls(o, "db-0")
		writes(o, 1)
		order(o, moved)
	}
	check(t, []row{
		{"all hold", away,
			Decision{Act: Give, Reason: "WriterMoves", Wish: held, Step: ReturningWriter}},
		{"all are quiet", func(o *Observation) {
			away(o)
			order(o, held)
			quiet(o)
		}, Decision{Act: Give, Reason: "WriterMoves", Wish: proxies.Wish{Hold: true, Writer: "db-0"}}},
		{"the barrier has passed", func(o *Observation) {
			away(o)
			order(o, proxies.Wish{Hold: true, Writer: "db-0"})
			quiet(o)
		}, Decision{Act: Give, Reason: "WriterMoves", Wish: proxies.Wish{Writer: "db-0"}}},
		{"one is not quiet in time: all stay where they are", func(o *Observation) {
			away(o)
			order(o, proxies.Wish{Hold: true, Writer: "db-0"})
			o.Proxies[0].Answer.Order.HoldEnded = "hold_limit"
		}, Decision{Act: Give, Reason: "SessionsPinned", Wish: moved, Failed: failedTimes(1)}},
		{"it is back", func(o *Observation) {
			rolls(o, "db-0")
			order(o, proxies.Wish{Writer: "db-0"})
		}, Decision{Act: End, Reason: "Ends", Step: EndingOrders}},
		{"to the one that the proxies' settings name", func(o *Observation) {
			away(o)
			rolls(o, "db-2")
			for index := range o.Proxies {
				o.Proxies[index].Answer.Preferred = "db-0"
			}
			order(o, held)
			quiet(o)
		}, Decision{Act: Give, Reason: "WriterMoves", Wish: proxies.Wish{Hold: true, Writer: "db-0"}}},
		{"a backup has begun: the writer stays", func(o *Observation) {
			away(o)
			o.Backups = []Backup{{Name: "nightly", Since: noon}}
		}, Decision{Act: Nothing, Reason: "BackupRuns", Wish: moved}},
		{"orders have ended by themselves: proxies follow their rule", func(o *Observation) { rolls(o, "db-0") },
			Decision{Act: Nothing, Reason: "UpToDate", Step: Resting}},
		{"the drain of the last pod ends", func(o *Observation) {
			rolls(o, "db-0")
			order(o, proxies.Wish{Drain: []string{"db-2"}})
		}, Decision{Act: End, Reason: "Ends"}},
	})
}
