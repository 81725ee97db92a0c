package engine

import (
	"testing"

	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
)

// Kubelet starts a container again under a new id. Where nobody looked, it has its predecessor's CPUs all the
// same, and nothing stays reserved for the old one.
func TestARestartInPlaceWhileNobodyLooked(t *testing.T) {
	for _, inState := range []bool{true, false} { // the agent was away, or the runtime
		e, _ := start(t, "cores=8", Settings{})
		e.Create(arrival("first", policy.Guaranteed, 2000))
		e.Create(arrival("a", policy.Guaranteed, 2000)) // 2-3
		e.Stop("first")
		e.DropPod("pod-first")
		if inState {
			e, _ = start(t, "cores=8", Settings{State: savedOf(e)})
		}
		reborn := arrival("a2", policy.Guaranteed, 2000)
		reborn.Name, reborn.PodID = "a", "pod-a"
		e.Synchronize([]Arrival{reborn}, map[string][]string{"pod-a": {"a", "a"}})
		s := e.Status()
		if len(s.Seats) != 1 || s.Seats[0].Pin.CPUs.String() != "2-3" || len(savedOf(e).State.Gone) != 0 {
			t.Errorf("agent away %t: %+v, remembered %v", inState, s.Seats, savedOf(e).State.Gone)
		}
	}
}

// Memory that is wider than it would be given today stays: to narrow it moves pages while the runtime waits.
func TestMemoryIsNotNarrowedWithoutCause(t *testing.T) {
	big := func(id string) Arrival {
		a := arrival(id, policy.Guaranteed, 2000)
		a.Memory = 40 << 30
		return a
	}
	e, _ := start(t, "sockets=2,cores=8,memory=64", Settings{})
	e.Create(big("x"))
	y, z := big("y"), big("z")
	e.Create(y)
	e.Create(z) // neither node has 40 GiB left: both
	memory := func(e *Engine, id string) string { return pinOf(e, id).Memory.String() }
	if memory(e, "z") != "0-1" {
		t.Fatalf("z is on %s", memory(e, "z"))
	}
	e.Stop("x")
	e.DropPod("pod-x")
	had := pinOf(e, "z")
	if pin, _ := e.Resize("z", func(c *policy.Container) { c.Request, c.Limit = 3000, 3000 }); pin.Memory.String() != "0-1" || !had.CPUs.Within(pin.CPUs) {
		t.Errorf("a resize of CPUs: was on %s, is on %s", had, pin)
	}
	e.Resized("z", true)
	z.Request, z.Limit = 3000, 3000
	z.Seen = pinOf(e, "z")
	y.Seen = pinOf(e, "y")
	again, r2 := start(t, "sockets=2,cores=8,memory=64", Settings{State: savedOf(e)})
	again.Synchronize([]Arrival{y, z}, map[string][]string{"pod-y": nil, "pod-z": nil})
	if memory(again, "z") != "0-1" || r2.tries("z") > 0 {
		t.Errorf("a restart: %s", memory(again, "z"))
	}
	// Moved by new options, its pages stay where they are, too.
	fewer := config.Default()
	fewer.Available = config.CPUs{Set: cpuset.Range(8, 15)}
	if err := again.Configure(fewer, nil); err != nil {
		t.Fatal(err)
	}
	if memory(again, "z") != "0-1" {
		t.Errorf("new options: %s", memory(again, "z"))
	}
}
