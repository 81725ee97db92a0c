package engine

import (
	"errors"
	"fmt"
	"testing"

	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/others"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/state"
)

func TestAThousandContainersInSynchronize(t *testing.T) {
	e, r := start(t, "sockets=8,nodes=2,cores=16,threads=2", Settings{})
	var running []Arrival
	pods := map[string][]string{}
	for n := range 1000 {
		a := arrival(fmt.Sprintf("c%d", n), "Burstable", 100)
		running, pods[a.PodID] = append(running, a), nil
	}
	e.Synchronize(running, pods)
	eventually(t, "not all were pinned", func() bool { return e.Status().Pending == 0 && r.has("c999") != "" })
	if n := len(e.Status().Seats); n != 1000 {
		t.Errorf("%d on the books", n)
	}
}

func TestWhatMustChangeRidesOnTheAnswerToSynchronize(t *testing.T) {
	e, _ := start(t, "sockets=2,cores=4", Settings{Inline: true})
	a := arrival("a", policy.Guaranteed, 2000)
	pods := map[string][]string{"pod-a": nil}
	if changes := e.Synchronize([]Arrival{a}, pods); len(changes) != 1 || changes[0].CPUs.String() != "0-1" || e.Status().Pending != 0 {
		t.Errorf("%v", changes)
	}
	a.Seen = policy.Pin{CPUs: cpuset.Of(0, 1), Memory: cpuset.Of(0)}
	if changes := e.Synchronize([]Arrival{a}, pods); len(changes) != 0 {
		t.Errorf("told again what is so already: %v", changes)
	}
	a.Seen = policy.Pin{} // the runtime did not take it after all
	if changes := e.Synchronize([]Arrival{a}, pods); len(changes) != 1 {
		t.Errorf("%v", changes)
	}
}

func TestSynchronizeKnowsThemAgain(t *testing.T) {
	var saved state.Saved
	e, _ := start(t, "cores=8", Settings{})
	e.Create(arrival("first", policy.Guaranteed, 2000))
	e.Create(arrival("second", policy.Guaranteed, 2000))
	saved = savedOf(e)
	// With the saved state: the first is gone, the second keeps its CPUs although the first two are free.
	second := arrival("second", policy.Guaranteed, 2000)
	second.Seen = policy.Pin{CPUs: cpuset.Of(2, 3), Memory: cpuset.Of(0)}
	for name, state := range map[string]state.Saved{"with the state": saved, "without": {}} {
		again, r := start(t, "cores=8", Settings{State: state})
		again.Synchronize([]Arrival{second, arrival("new", "Burstable", 100)}, map[string][]string{"pod-second": nil, "pod-new": nil})
		eventually(t, name+": the newcomer was not pinned", func() bool { return r.has("new") == "0-1,4-7" })
		if moved := r.has("second"); moved != "" {
			t.Errorf("%s: second was moved to %s", name, moved)
		}
		if n := len(again.Status().Seats); n != 2 {
			t.Errorf("%s: %d on the books", name, n)
		}
	}
}

// The same agent started again moves nobody, whatever its options, and also where it had to wait for them.
func TestARestartMovesNobody(t *testing.T) {
	shared, isolated, reserved := config.Default(), config.Default(), config.Default()
	shared.PreferShared, isolated.PreferIsolated = true, true
	reserved.Reserved = config.CPUs{Set: cpuset.Of(0, 8)}
	reserved.ReservedNamespaces = []string{"default"}
	for name, o := range map[string]config.Options{"preferSharedCPUs": shared, "preferIsolatedCPUs": isolated, "reservedResources": reserved} {
		const shape = "sockets=2,cores=8,isolated=4-7;12-15"
		e, _ := start(t, shape, Settings{Options: o})
		for i, id := range []string{"x", "y", "z", "w"} {
			a := arrival(id, policy.Guaranteed, 1000+1000*(i%2))
			a.Memory = 1 << 30
			if name == "reservedResources" {
				a.Request = 400 * (1 + i%2)
			}
			e.Create(a)
		}
		e.Stop("x") // who came after it would now be placed elsewhere
		saved := savedOf(e)
		e.mu.Lock()
		pins := e.policy.Pins(e.state)
		e.mu.Unlock()
		var running []Arrival
		present := map[string][]string{}
		for _, c := range saved.State.InOrder() {
			running = append(running, Arrival{Container: c.Container, Seen: pins[c.ID]})
			present[c.PodID] = nil
		}
		for when, settings := range map[string]Settings{
			"at once":                {Options: o},
			"refused at first":       {Refused: errors.New("bad")},
			"not for this machine":   {Options: config.Options{Available: config.CPUs{Set: cpuset.Of(99)}}},
			"beside a CRI-RM it saw": {Options: o, Others: []others.Found{{Name: "CRI-RM"}}},
		} {
			settings.State = saved
			again, r := start(t, shape, settings)
			again.Synchronize(running, present)
			if err := again.Configure(o, nil); err != nil {
				t.Fatal(err)
			}
			for _, c := range saved.State.InOrder() {
				if pin := pinOf(again, c.ID); !pin.Equal(pins[c.ID]) || r.has(c.ID) != "" {
					t.Errorf("%s, %s: %s was on %s, is on %s, told %q", name, when, c.ID, pins[c.ID], pin, r.has(c.ID))
				}
			}
		}
	}
}
