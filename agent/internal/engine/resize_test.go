package engine

import (
	"testing"
	"time"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
)

// A runtime with NRI does not say that it has refused a resize: it is asked, and what it then says the
// container has decides.
func TestAResizeOfWhichNothingIsHeard(t *testing.T) {
	for _, request := range []int{4000, 2000} {
		e, r := start(t, "cores=8", Settings{})
		e.Create(arrival("first", policy.Guaranteed, 1000)) // its end leaves a better place for who would be placed anew
		e.Create(arrival("a", policy.Guaranteed, 4000))
		e.Stop("first")
		e.DropPod("pod-first")
		if pin, _ := e.Resize("a", func(c *policy.Container) { c.Request, c.Limit = 2000, 2000 }); pin.CPUs.String() != "1-2" {
			t.Fatalf("resized to %s", pin)
		}
		now := time.Now()
		if next, again := e.doubtResizes(now); !again || next > answerWithin {
			t.Errorf("it does not look again in time: %s, %t", next, again)
		}
		if r.tries("a") != 0 {
			t.Error("the runtime is asked before it had time to answer")
		}
		e.doubtResizes(now.Add(2 * answerWithin))
		e.wake()
		eventually(t, "the runtime was not asked", func() bool { return r.tries("a") == 1 })
		if _, again := e.doubtResizes(now.Add(2 * answerWithin)); again {
			t.Error("it is asked again and again")
		}
		a := arrival("a", policy.Guaranteed, request)
		a.Seen = policy.Pin{CPUs: cpuset.Range(1, request/1000), Memory: cpuset.Of(0)}
		e.Synchronize([]Arrival{a}, map[string][]string{"pod-a": {"a"}})
		if seat := e.Status().Seats[0]; !seat.Pin.CPUs.Equal(a.Seen.CPUs) || !seat.Place.Leaving.Empty() {
			t.Errorf("the runtime says %d: %+v", request, seat)
		}
		eventually(t, "it is not set once more: what failed may have been done in part", func() bool { return r.tries("a") == 2 })
	}
}

// The runtime has told what is running while a resize was on its way: what it told may be older than the
// resize.
func TestAResizeDuringSynchronize(t *testing.T) {
	e, r := start(t, "cores=8", Settings{})
	a := arrival("a", policy.Guaranteed, 4000)
	e.Create(a)
	e.Resize("a", func(c *policy.Container) { c.Request, c.Limit = 2000, 2000 })
	a.Seen = policy.Pin{CPUs: cpuset.Range(0, 3), Memory: cpuset.Of(0)}
	e.Synchronize([]Arrival{a}, map[string][]string{"pod-a": {"a"}})
	eventually(t, "it is not set once more: what failed may have been done in part", func() bool { return r.tries("a") == 1 })
	e.Resized("a", true)
	eventually(t, "the runtime was not asked again", func() bool { return r.tries("a") == 2 })
}
