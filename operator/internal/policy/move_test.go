package policy

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/proxies"
)

func failedTimes(count int32) *v1alpha1.Moves { return &v1alpha1.Moves{Failed: count} }

func TestTheWriterMovesOnAllProxiesAtOnce(t *testing.T) {
	held, prepared := proxies.Wish{Hold: true}, proxies.Wish{Hold: true, Writer: "db-1"}
	moves := func(wish proxies.Wish) func(*Observation) {
		return func(o *Observation) {
			outdate(o, 0)
			rolls(o, "db-0")
			order(o, wish)
			if wish.Writer != "" {
				everywhere(o, 1, func(m *proxies.Member) { m.Barrier = "running" })
			}
		}
	}
	failed := func(o *Observation, count int32, next time.Duration) {
		outdate(o, 0)
		rolls(o, "db-0")
		o.Status.Roll.Moves = &v1alpha1.Moves{
			Failed: count, Next: metav1.NewTime(noon.Add(next)), Reason: "SessionsPinned",
			Message: "3 sessions keep db-0",
		}
	}
	check(t, []row{
		{"all hold", func(o *Observation) { outdate(o, 0) },
			Decision{Act: Give, Reason: "WriterMoves", Wish: held, Step: MovingWriter}},
		{"one was not told to hold", func(o *Observation) {
			moves(held)(o)
			o.Proxies[1].Answer.Order = nil
		}, Decision{Act: Give, Reason: "WriterMoves", Wish: held}},
		{"one is not quiet", func(o *Observation) {
			moves(held)(o)
			quiet(o)
			o.Proxies[2].Answer.Quiet = false
		}, Decision{Act: Nothing, Reason: "WriterMoves", Wish: held}},
		{"all are quiet", func(o *Observation) {
			moves(held)(o)
			quiet(o)
		}, Decision{Act: Give, Reason: "WriterMoves", Wish: prepared}},
		{"one begins again while the others wait for the barrier", func(o *Observation) {
			moves(prepared)(o)
			quiet(o)
			o.Proxies[0].Answer.Order, o.Proxies[0].Answer.Quiet = nil, false
		}, Decision{Act: End, Reason: "PodNotOnline"}},
		{"one has ended its order while the others wait for the barrier", func(o *Observation) {
			moves(prepared)(o)
			quiet(o)
			o.Proxies[0].Answer.Order, o.Proxies[0].Answer.Quiet = nil, false
			member(o, 0, 1, func(m *proxies.Member) { m.Barrier = proxies.Passed })
		}, Decision{Act: Give, Reason: "WriterMoves", Wish: held}},
		{"the barrier has not passed on one", func(o *Observation) {
			moves(prepared)(o)
			quiet(o)
			member(o, 0, 1, func(m *proxies.Member) { m.Barrier = proxies.Passed })
			member(o, 1, 1, func(m *proxies.Member) { m.Barrier = proxies.Passed })
		}, Decision{Act: Nothing, Reason: "WriterMoves", Wish: prepared}},
		{"the barrier has passed on all", func(o *Observation) {
			moves(prepared)(o)
			quiet(o)
			everywhere(o, 1, func(m *proxies.Member) { m.Barrier = proxies.Passed })
		}, Decision{Act: Give, Reason: "WriterMoves", Wish: proxies.Wish{Writer: "db-1"}}},
		{"not quiet within the limit", func(o *Observation) {
			moves(held)(o)
			late := int64(5000)
			o.Proxies[1].Answer.HeldMS = &late
		}, Decision{Act: End, Reason: "SessionsPinned", Failed: failedTimes(1)}},
		{"a proxy has ended the hold", func(o *Observation) {
			moves(held)(o)
			o.Proxies[1].Answer.Order.HoldEnded = "hold_limit"
		}, Decision{Act: End, Reason: "SessionsPinned", Failed: failedTimes(1)}},
		{"no barrier within the limit", func(o *Observation) {
			moves(prepared)(o)
			quiet(o)
			late := int64(5000)
			o.Proxies[1].Answer.HeldMS = &late
		}, Decision{Act: End, Reason: "BarrierLate", Failed: failedTimes(1)}},
		{"again after the pause", func(o *Observation) { failed(o, 2, -time.Second) },
			Decision{Act: Give, Reason: "WriterMoves", Wish: held}},
		{"not before", func(o *Observation) { failed(o, 2, time.Second) },
			Decision{Act: Nothing, Reason: "SessionsPinned"}},
		{"not too often", func(o *Observation) { failed(o, 3, -time.Second) },
			Decision{Act: Nothing, Reason: "SessionsPinned", Stalled: true}},
		{"again once the object was changed", func(o *Observation) {
			failed(o, 3, time.Second)
			o.Generation = 2
		}, Decision{Act: Give, Reason: "WriterMoves", Wish: held}},
		{"again for another template", func(o *Observation) {
			failed(o, 3, time.Second)
			o.Status.Roll.Revision = "older"
		}, Decision{Act: Give, Reason: "WriterMoves", Wish: held}},
		{"a pod goes away in the midst: writes go on", func(o *Observation) {
			moves(held)(o)
			o.Pods[2].Terminating = true
		}, Decision{Act: End, Reason: "PodEnds"}},
		{"to the lowest, and drains of pods that are finished end", func(o *Observation) {
			outdate(o, 0)
			order(o, proxies.Wish{Drain: []string{"db-1"}})
		}, Decision{Act: Give, Reason: "WriterMoves", Wish: held, Pod: Pod{}}},
	})
}

func TestPausesBetweenAttemptsGrow(t *testing.T) {
	v := look(calm(3, 3))
	rolls(&v.Observation, "db-0")
	before := time.Duration(0)
	for count := range int32(8) {
		v.Status.Roll.Moves = failedTimes(count)
		pause := v.failure("SessionsPinned", "").Next.Sub(noon)
		if pause < before || pause > time.Minute || count < 5 && pause <= before {
			t.Errorf("attempt %d: %s after %s", count, pause, before)
		}
		before = pause
	}
}
