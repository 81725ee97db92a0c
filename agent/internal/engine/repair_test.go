package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"proxima.io/agent/internal/policy"
)

// faulty makes every decision panic until it is called again.
func faulty(e *Engine) (well func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	whole := e.policy
	e.policy = nil
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.policy = whole
	}
}

// A fault inside leaves the pod unpinned, is counted, and is made good without anybody asking, also one that
// lasts, and where the container got its id meanwhile.
func TestAFaultInsideNeverReachesThePod(t *testing.T) {
	for _, lasts := range []time.Duration{0, 200 * time.Millisecond} {
		e, r := start(t, "cores=4", Settings{})
		well := faulty(e)
		pin, changes := e.Create(arrival("creating", policy.Guaranteed, 2000))
		time.Sleep(lasts)
		e.Rename("creating", "a", nil)
		e.mu.Lock()
		faults := e.counters.Faults
		e.mu.Unlock()
		well()
		if !pin.CPUs.Empty() || len(changes) != 0 {
			t.Errorf("pin %s, changes %+v", pin.CPUs, changes)
		}
		// Each call that wakes the repair adds a few; without a pause it were thousands within the 200 ms.
		if faults == 0 || faults > 50 {
			t.Errorf("%d faults; it was not counted, or tried again without a pause", faults)
		}
		eventually(t, "the container was never repaired", func() bool { return r.has("a") == "0-1" })
		if s := e.Status(); s.Pending != 0 || len(s.Seats) != 1 {
			t.Errorf("%d pending, %d on the books", s.Pending, len(s.Seats))
		}
	}
}

func TestARuntimeThatHangsUpIsToldLater(t *testing.T) {
	e, r := start(t, "cores=4", Settings{})
	r.mu.Lock()
	r.broken = true
	r.mu.Unlock()
	a := arrival("a", policy.Guaranteed, 2000)
	e.Synchronize([]Arrival{a}, map[string][]string{"pod-a": nil})
	eventually(t, "it was not tried while the runtime was broken", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.failed > 0
	})
	r.mu.Lock()
	r.broken = false
	r.mu.Unlock()
	eventually(t, "not told after the runtime was well again", func() bool { return r.has("a") == "0-1" })
}

// One that the runtime refuses for good is tried less and less often, and nobody else waits for it.
func TestOneThatIsRefusedDelaysNobody(t *testing.T) {
	e, r := start(t, "cores=8", Settings{})
	r.mu.Lock()
	r.refuse = "bad"
	r.mu.Unlock()
	bad, good := arrival("bad", "Burstable", 100), arrival("good", "Burstable", 100)
	e.Synchronize([]Arrival{bad, good}, map[string][]string{"pod-bad": nil, "pod-good": nil})
	eventually(t, "good was not told", func() bool { return r.has("good") == "0-7" })
	for range 10 {
		e.wake() // as every pod that comes and goes does
		time.Sleep(10 * time.Millisecond)
	}
	e.mu.Lock()
	now, first := time.Now(), e.records["bad"].refusal
	delays := []time.Duration{first.delay}
	e.mu.Unlock()
	if r.tries("bad") != 1 {
		t.Errorf("tried %d times at once", r.tries("bad"))
	}
	for range 9 {
		now = now.Add(refuseLast)
		e.repair(context.Background(), now)
		e.mu.Lock()
		delays = append(delays, e.records["bad"].refusal.delay)
		e.mu.Unlock()
	}
	if fmt.Sprint(delays) != "[2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 5m0s 5m0s]" {
		t.Errorf("delays %v", delays)
	}
	// Another pin is another matter: it is told at once.
	before := r.tries("bad")
	e.Create(arrival("owner", policy.Guaranteed, 2000))
	eventually(t, "good waits for bad", func() bool { return r.has("good") == "2-7" && r.tries("bad") > before })
}
