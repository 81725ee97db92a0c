package engine

import (
	"strings"
	"testing"

	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/others"
	"proxima.io/agent/internal/policy"
)

func TestStandingBack(t *testing.T) {
	left := cpuset.Range(4, 7)
	kubelet := []others.Found{{Name: "kubelet's static CPU manager", Why: "it says so", Leaves: &left}}
	e, r := start(t, "cores=8", Settings{})
	if err := e.Configure(config.Default(), kubelet); err != nil {
		t.Fatal(err)
	}
	if pin, _ := e.Create(arrival("a", policy.Guaranteed, 2000)); !pin.CPUs.Empty() || e.Status().Passive == "" {
		t.Errorf("pinned to %s beside kubelet; passive %q", pin.CPUs, e.Status().Passive)
	}
	rest := config.Default()
	rest.Others = config.TakeRest
	if err := e.Configure(rest, kubelet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "does not use what kubelet leaves", func() bool { return r.has("a") == "4-5" })
}

// No CPU left is not "all of them".
func TestStandingBackWhereOthersLeaveTooLittle(t *testing.T) {
	left := cpuset.Range(4, 7)
	kubelet := []others.Found{{Name: "kubelet's static CPU manager", Leaves: &left}}
	for name, o := range map[string]config.Options{
		"none of the available": {Available: config.CPUs{Set: cpuset.Range(0, 3)}},
		"name none of the":      {Reserved: config.CPUs{Set: cpuset.Of(0)}},
	} {
		e, _ := start(t, "cores=8", Settings{})
		o.PinCPU, o.Others = true, config.TakeRest
		if err := e.Configure(o, kubelet); err != nil {
			t.Fatal(err)
		}
		if pin, _ := e.Create(arrival("a", policy.Guaranteed, 2000)); !pin.Empty() || !strings.Contains(e.Status().Passive, name) {
			t.Errorf("pinned to %s; passive %q, want %q in it", pin, e.Status().Passive, name)
		}
	}
}

func TestDryRunAndForeignCPUsetsChangeNothing(t *testing.T) {
	e, _ := start(t, "cores=8", Settings{DryRun: true})
	if pin, _ := e.Create(arrival("a", policy.Guaranteed, 2000)); !pin.CPUs.Empty() || e.Status().Seats[0].Place.Kind != policy.Exclusive {
		t.Errorf("a dry run pinned to %s: %+v", pin.CPUs, e.Status().Seats)
	}
	e, _ = start(t, "cores=8", Settings{})
	foreign := arrival("b", policy.Guaranteed, 2000)
	foreign.Seen.CPUs = cpuset.Of(7)
	if pin, _ := e.Create(foreign); !pin.CPUs.Empty() || e.Status().Seats[0].Foreign != "CPUs 7 memory " || e.Status().Counters.Foreign != 1 {
		t.Errorf("a container with CPUs was pinned to %s: %+v", pin.CPUs, e.Status())
	}
}

// An empty cpuset means "no change" to a runtime: everybody has to be told all CPUs and nodes.
func TestReleaseGivesEverythingBack(t *testing.T) {
	e, r := start(t, "sockets=2,cores=4", Settings{})
	e.Create(arrival("owner", policy.Guaranteed, 2000))
	e.Create(arrival("sharer", "Burstable", 100))
	if _, err := e.Release(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not given everything back", func() bool { return r.has("owner") == "0-7" && r.has("sharer") == "0-7" })
	r.mu.Lock()
	memory := r.memory["owner"]
	r.mu.Unlock()
	if memory != "0-1" {
		t.Errorf("memory nodes %q", memory)
	}
	if err := e.Configure(config.Default(), nil); err != nil {
		t.Fatal(err)
	}
	if pin, changes := e.Create(arrival("late", policy.Guaranteed, 2000)); !pin.Empty() || len(changes) > 0 {
		t.Errorf("pinned after the release: %s %v", pin, changes)
	}
}

func TestACpusetOfMemoryAloneIsLeftAloneToo(t *testing.T) {
	e, _ := start(t, "sockets=2,cores=4", Settings{})
	a := arrival("a", policy.Guaranteed, 2000)
	a.Seen.Memory = cpuset.Of(1)
	if pin, _ := e.Create(a); !pin.Empty() || e.Status().Counters.Foreign != 1 {
		t.Errorf("pinned to %s", pin)
	}
}

// The usual way out: the one that pins next is installed, the agent stands back, and is then released. What
// the other has pinned by then stays.
func TestReleaseWhileStandingBack(t *testing.T) {
	left := cpuset.Range(4, 7)
	for _, c := range []struct {
		other others.Found
		give  string
	}{
		{others.Found{Name: "NRI plugin balloons"}, "0-7"},
		{others.Found{Name: "kubelet's static CPU manager", Leaves: &left}, "4-7"},
	} {
		e, r := start(t, "cores=8", Settings{})
		e.Create(arrival("ours", policy.Guaranteed, 2000))
		e.Create(arrival("taken", policy.Guaranteed, 2000))
		if err := e.Configure(config.Default(), []others.Found{c.other}); err != nil {
			t.Fatal(err)
		}
		late := arrival("late", policy.Guaranteed, 2000)
		late.Seen = policy.Pin{CPUs: cpuset.Of(3)}
		e.Create(late)
		ours, taken := arrival("ours", policy.Guaranteed, 2000), arrival("taken", policy.Guaranteed, 2000)
		ours.Seen, taken.Seen = policy.Pin{CPUs: cpuset.Of(0, 1), Memory: cpuset.Of(0)}, policy.Pin{CPUs: cpuset.Of(0)}
		for range 2 {
			e.Synchronize([]Arrival{ours, taken, late}, map[string][]string{"pod-ours": nil, "pod-taken": nil, "pod-late": nil})
		}
		if _, err := e.Release(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "not given back", func() bool { return r.has("ours") == c.give && e.Status().Pending == 0 })
		if r.has("taken") != "" || r.has("late") != "" {
			t.Errorf("what %s pinned was changed to %q and %q", c.other.Name, r.has("taken"), r.has("late"))
		}
		if passive := e.Status().Passive; passive != "" {
			t.Errorf("passive while releasing: %s", passive)
		}
	}
}

func TestADryRunCannotRelease(t *testing.T) {
	e, _ := start(t, "cores=8", Settings{DryRun: true})
	if _, err := e.Release(); err == nil || e.Status().Released {
		t.Errorf("released: %v", err)
	}
}

// Kubelet's static manager sets a cpuset for every container: what it leaves to all is ours to divide, the
// CPUs that it gives to one are not, whenever the agent comes to know of them.
func TestTheRestOfKubeletsCPUs(t *testing.T) {
	left := cpuset.Range(4, 7)
	kubelet := []others.Found{{Name: "kubelet's static CPU manager", Leaves: &left}}
	rest := config.Default()
	rest.Others = config.TakeRest
	given, owns := arrival("given", policy.Guaranteed, 2000), arrival("owns", policy.Guaranteed, 2000)
	given.Seen, owns.Seen = policy.Pin{CPUs: left}, policy.Pin{CPUs: cpuset.Of(0, 1)}
	present := map[string][]string{"pod-given": nil, "pod-owns": nil}
	e, _ := start(t, "cores=8", Settings{Options: rest, Others: kubelet}) // it has yet to see what kubelet did just now
	fewer, owned := arrival("fewer", "Burstable", 500), arrival("owned", policy.Guaranteed, 2000)
	fewer.Seen.CPUs, owned.Seen.CPUs = cpuset.Range(6, 7), cpuset.Range(4, 5)
	e.Create(fewer)
	e.Create(owned)
	if seats := e.Status().Seats; seats[0].Foreign != "" || seats[1].Foreign == "" {
		t.Errorf("%+v", seats)
	}
	for name, come := range map[string]func(e *Engine){
		"created": func(e *Engine) {
			if pin, _ := e.Create(given); pin.CPUs.String() != "4-5" {
				t.Errorf("given has %s", pin)
			}
			e.Create(owns)
		},
		"found": func(e *Engine) { e.Synchronize([]Arrival{given, owns}, present) },
		"created while it stood back": func(e *Engine) {
			if err := e.Configure(config.Default(), kubelet); err != nil {
				t.Fatal(err)
			}
			e.Create(given)
			e.Create(owns)
			if err := e.Configure(rest, kubelet); err != nil {
				t.Fatal(err)
			}
		},
	} {
		e, r := start(t, "cores=8", Settings{Options: rest, Others: kubelet})
		come(e)
		eventually(t, name+": not settled", func() bool { return e.Status().Pending == 0 })
		check := func(e *Engine, r *runtime, when string) {
			seats := e.Status().Seats
			if pin := seats[0].Pin.CPUs.String(); pin != "4-5" || seats[0].Foreign != "" {
				t.Errorf("%s, %s: what kubelet leaves was not used: %+v", name, when, seats[0])
			}
			if told := r.has("owns"); told != "" || seats[1].Foreign == "" {
				t.Errorf("%s, %s: kubelet's own was told %q: %+v", name, when, told, seats[1])
			}
		}
		check(e, r, "at first")
		saved := savedOf(e)
		again, r := start(t, "cores=8", Settings{Options: rest, Others: kubelet, State: saved})
		pinned := given
		pinned.Seen = policy.Pin{CPUs: cpuset.Of(4, 5), Memory: cpuset.Of(0)}
		again.Synchronize([]Arrival{pinned, owns}, present)
		check(again, r, "started again")
		if _, err := again.Release(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "not given what kubelet leaves", func() bool { return r.has("given") == "4-7" })
		if told := r.has("owns"); told != "" {
			t.Errorf("%s: the release told kubelet's own %q", name, told)
		}
	}
}
