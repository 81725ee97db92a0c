package engine

import (
	"testing"

	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/state"
)

// What others pinned before the agent came is theirs: it stays as it is, and nobody gets it to himself.
func TestWhatOthersPinnedIsLeftAloneAtTheFirstSynchronize(t *testing.T) {
	memory, shared, own := arrival("memory", policy.Guaranteed, 2000), arrival("shared", "Burstable", 500), arrival("own", policy.Guaranteed, 2000)
	memory.Seen = policy.Pin{Memory: cpuset.Of(1)}
	shared.Seen = policy.Pin{CPUs: cpuset.Range(0, 1)}
	own.Seen = policy.Pin{CPUs: cpuset.Range(2, 3), Memory: cpuset.Of(0)}
	pods := map[string][]string{"pod-memory": nil, "pod-shared": nil, "pod-own": nil, "pod-new": nil}
	e, r := start(t, "sockets=2,cores=4", Settings{})
	e.Synchronize([]Arrival{memory, shared, own, arrival("new", "Burstable", 100)}, pods)
	eventually(t, "who came without a pin was not placed", func() bool { return r.has("new") != "" })
	for _, id := range []string{"memory", "shared", "own"} {
		if r.tries(id) > 0 {
			t.Errorf("%s was told %s", id, r.has(id))
		}
	}
	if s := e.Status(); s.Counters.Foreign != 3 {
		t.Errorf("%+v", s.Counters)
	}
	taken := cpuset.Set{}
	for _, id := range []string{"a", "b", "c"} {
		pin, _ := e.Create(arrival(id, policy.Guaranteed, 1000))
		if pin.CPUs.Meets(cpuset.Range(0, 3)) || pin.CPUs.Meets(taken) {
			t.Errorf("%s has %s to itself, of which others use some", id, pin.CPUs)
		}
		taken = taken.Union(pin.CPUs)
	}
	if pin, _ := e.Create(arrival("sharer", "Burstable", 100)); pin.CPUs.Meets(own.Seen.CPUs) {
		t.Errorf("a sharer runs on %s, of which 2-3 are somebody's own", pin.CPUs)
	}
	e.Stop("own")
	e.DropPod("pod-own")
	if pin, _ := e.Create(arrival("d", policy.Guaranteed, 1000)); !pin.CPUs.Within(cpuset.Range(2, 3)) {
		t.Errorf("d has %s: what is given back is on the books again", pin.CPUs)
	}
}

// Ours are those of which the saved state says so, and those that carry our mark; all others are not,
// whatever they carry.
func TestOursIsWhatIsProven(t *testing.T) {
	e, _ := start(t, "cores=8", Settings{})
	e.Create(arrival("a", policy.Guaranteed, 2000))
	known, marked, stranger := arrival("a", policy.Guaranteed, 2000), arrival("m", policy.Guaranteed, 2000), arrival("s", policy.Guaranteed, 2000)
	known.Seen, marked.Seen, stranger.Seen = policy.Pin{CPUs: cpuset.Of(0, 1)}, policy.Pin{CPUs: cpuset.Of(2, 3)}, policy.Pin{CPUs: cpuset.Of(4, 5)}
	marked.Marked = true
	pods := map[string][]string{"pod-a": nil, "pod-m": nil, "pod-s": nil}
	for name, c := range map[string]struct {
		settings Settings
		foreign  int
	}{
		"with the state": {Settings{State: savedOf(e)}, 1},
		"without":        {Settings{}, 2},
		"of an agent that did not keep what it told": {Settings{State: state.Saved{State: savedOf(e).State}}, 2}, // a has no memory set: it is not what it told
		"others: ignore": {Settings{Options: config.Options{PinCPU: true, PinMemory: true, Others: config.Ignore}}, 0},
	} {
		again, r := start(t, "cores=8", c.settings)
		again.Synchronize([]Arrival{known, marked, stranger}, pods)
		eventually(t, name+": not settled", func() bool { return again.Status().Pending == 0 })
		if s := again.Status(); s.Counters.Foreign != c.foreign {
			t.Errorf("%s: %d left alone, want %d", name, s.Counters.Foreign, c.foreign)
		}
		if r.has("m") != "" && r.has("m") != "2-3" {
			t.Errorf("%s: ours was moved to %s", name, r.has("m"))
		}
	}
}

// A dry run, or a configuration that is refused at first, gives nobody's container to us.
func TestWhatWasOnlySeenIsNotOurs(t *testing.T) {
	e, _ := start(t, "cores=8", Settings{DryRun: true})
	a := arrival("a", policy.Guaranteed, 2000)
	a.Seen = policy.Pin{CPUs: cpuset.Of(4, 5)}
	e.Create(a)
	e.Synchronize([]Arrival{a}, map[string][]string{"pod-a": nil})
	if told := savedOf(e).Told; len(told) > 0 {
		t.Errorf("saved as told: %v", told)
	}
}
