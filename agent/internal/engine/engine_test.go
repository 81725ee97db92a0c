package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/others"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/topology"
)

// runtime remembers what it was told, and refuses what it is told to refuse.
type runtime struct {
	mu     sync.Mutex
	cpus   map[string]string
	memory map[string]string
	broken bool
	refuse string         // the id of a container that cannot be updated
	tried  map[string]int // how often each was updated, or would have been
}

func (r *runtime) Update(_ context.Context, changes []policy.Change) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken {
		return nil, errors.New("ttrpc: server closed")
	}
	var refused []string
	for _, c := range changes {
		r.tried[c.ID]++
		if c.ID == r.refuse {
			refused = append(refused, c.ID)
			continue
		}
		r.cpus[c.ID], r.memory[c.ID] = c.CPUs.String(), c.Memory.String()
	}
	return refused, nil
}

func (r *runtime) has(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cpus[id]
}

func (r *runtime) tries(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tried[id]
}

func start(t *testing.T, shape string, settings Settings) (*Engine, *runtime) {
	t.Helper()
	parsed, err := topology.ParseShape(shape)
	if err != nil {
		t.Fatal(err)
	}
	if settings.Machine, err = topology.Read(parsed.Recording()); err != nil {
		t.Fatal(err)
	}
	if settings.Options.Others == "" && settings.Options.Available.Set.Empty() {
		settings.Options = config.Default()
	}
	settings.Log = slog.New(slog.DiscardHandler)
	e, err := New(settings)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r := &runtime{cpus: map[string]string{}, memory: map[string]string{}, tried: map[string]int{}}
	e.Attach(r)
	go e.Run(ctx)
	return e, r
}

func arrival(id, class string, milli int) Arrival {
	a := Arrival{}
	a.ID, a.Name, a.PodID, a.PodName, a.Namespace, a.QOS = id, id, "pod-"+id, id, "default", class
	a.Request = milli
	if class == policy.Guaranteed {
		a.Limit = milli
	}
	return a
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(what)
}

func TestChangesRideOnTheAnswer(t *testing.T) {
	e, _ := start(t, "cores=4", Settings{Inline: true})
	e.Create(arrival("sharer", "Burstable", 100))
	pin, changes := e.Create(arrival("owner", policy.Guaranteed, 2000))
	if pin.CPUs.String() != "0-1" || len(changes) != 1 || changes[0].CPUs.String() != "2-3" {
		t.Errorf("pin %s, changes %+v", pin.CPUs, changes)
	}
	if changes := e.Stop("owner"); len(changes) != 1 || changes[0].CPUs.String() != "0-3" {
		t.Errorf("changes %+v", changes)
	}
}

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

// A fault inside leaves the pod unpinned, is counted, and is made good without anybody asking, also one that lasts, and where
// the container got its id meanwhile.
func TestAFaultInsideNeverReachesThePod(t *testing.T) {
	for _, lasts := range []time.Duration{0, 200 * time.Millisecond} {
		e, r := start(t, "cores=4", Settings{})
		well := faulty(e)
		pin, changes := e.Create(arrival("creating", policy.Guaranteed, 2000))
		time.Sleep(lasts)
		e.Rename("creating", "a")
		e.mu.Lock()
		faults := e.counters.Faults
		e.mu.Unlock()
		well()
		if !pin.CPUs.Empty() || len(changes) != 0 {
			t.Errorf("pin %s, changes %+v", pin.CPUs, changes)
		}
		if faults == 0 || faults > 6 {
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
	e.Synchronize([]Arrival{a}, map[string]bool{"pod-a": true})
	time.Sleep(50 * time.Millisecond)
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
	e.Synchronize([]Arrival{bad, good}, map[string]bool{"pod-bad": true, "pod-good": true})
	eventually(t, "good was not told", func() bool { return r.has("good") == "0-7" })
	for range 10 {
		e.wake() // as every pod that comes and goes does
		time.Sleep(10 * time.Millisecond)
	}
	e.mu.Lock()
	now, first := time.Now(), e.refused["bad"]
	delays := []time.Duration{first.delay}
	e.mu.Unlock()
	if r.tries("bad") != 1 {
		t.Errorf("tried %d times at once", r.tries("bad"))
	}
	for range 9 {
		now = now.Add(refuseLast)
		e.repair(context.Background(), now)
		e.mu.Lock()
		delays = append(delays, e.refused["bad"].delay)
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

func TestAThousandContainersInSynchronize(t *testing.T) {
	e, r := start(t, "sockets=8,nodes=2,cores=16,threads=2", Settings{})
	var running []Arrival
	pods := map[string]bool{}
	for n := range 1000 {
		a := arrival(fmt.Sprintf("c%d", n), "Burstable", 100)
		running, pods[a.PodID] = append(running, a), true
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
	pods := map[string]bool{"pod-a": true}
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
	var saved policy.State
	e, _ := start(t, "cores=8", Settings{})
	e.Create(arrival("first", policy.Guaranteed, 2000))
	e.Create(arrival("second", policy.Guaranteed, 2000))
	e.mu.Lock()
	saved = e.state
	e.mu.Unlock()
	// With the saved state: the first is gone, the second keeps its CPUs although the first two are free.
	second := arrival("second", policy.Guaranteed, 2000)
	second.Seen = policy.Pin{CPUs: cpuset.Of(2, 3), Memory: cpuset.Of(0)}
	for name, state := range map[string]policy.State{"with the state": saved, "without": {}} {
		again, r := start(t, "cores=8", Settings{State: state})
		again.Synchronize([]Arrival{second, arrival("new", "Burstable", 100)}, map[string]bool{"pod-second": true, "pod-new": true})
		eventually(t, name+": the newcomer was not pinned", func() bool { return r.has("new") == "0-1,4-7" })
		if moved := r.has("second"); moved != "" {
			t.Errorf("%s: second was moved to %s", name, moved)
		}
		if n := len(again.Status().Seats); n != 2 {
			t.Errorf("%s: %d on the books", name, n)
		}
	}
}

func TestOptionsChangeUnderRunningContainers(t *testing.T) {
	e, r := start(t, "cores=8", Settings{})
	e.Create(arrival("owner", policy.Guaranteed, 2000))
	e.Create(arrival("sharer", "Burstable", 100))
	fewer := config.Default()
	fewer.Available = config.CPUs{Set: cpuset.Range(4, 7)}
	if err := e.Configure(fewer, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not moved to the available CPUs", func() bool { return r.has("owner") == "4-5" && r.has("sharer") == "6-7" })
	none := config.Default()
	none.Available = config.CPUs{Set: cpuset.Of(99)}
	if err := e.Configure(none, nil); err == nil {
		t.Error("options without a CPU were taken")
	}
	unpinned := config.Default()
	unpinned.PinCPU = false
	if err := e.Configure(unpinned, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not given everything back", func() bool { return r.has("owner") == "0-7" && r.has("sharer") == "0-7" })
}

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

func TestNothingIsChangedUntilThereIsAGoodConfiguration(t *testing.T) {
	e, r := start(t, "cores=8", Settings{Refused: errors.New("agent.yaml:2: bad")})
	if pin, _ := e.Create(arrival("a", policy.Guaranteed, 2000)); !pin.Empty() || !strings.Contains(e.Status().Passive, "agent.yaml:2") {
		t.Errorf("pinned to %s; passive %q", pin, e.Status().Passive)
	}
	if err := e.Configure(config.Default(), nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not pinned with a good configuration", func() bool { return r.has("a") == "0-1" })
}

// An empty cpuset means "no change" to a runtime: everybody has to be told all CPUs and nodes.
func TestReleaseGivesEverythingBack(t *testing.T) {
	e, r := start(t, "sockets=2,cores=4", Settings{})
	e.Create(arrival("owner", policy.Guaranteed, 2000))
	e.Create(arrival("sharer", "Burstable", 100))
	if err := e.Release(); err != nil {
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

func TestPlacesAreNotRememberedForEver(t *testing.T) {
	e, _ := start(t, "cores=4", Settings{})
	e.Create(arrival("a", policy.Guaranteed, 2000))
	e.Stop("a")
	if next, any := e.forgetGone(time.Now().Add(comeBack / 2)); !any || next > comeBack {
		t.Errorf("forgotten too early, or looked at again after %s", next)
	}
	if _, any := e.forgetGone(time.Now().Add(2 * comeBack)); any || len(e.state.Gone) != 0 {
		t.Errorf("still remembered: %v", e.state.Gone)
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
		saved, pins := e.state, e.policy.Pins(e.state)
		var running []Arrival
		present := map[string]bool{}
		for _, c := range saved.InOrder() {
			running = append(running, Arrival{Container: c.Container, Seen: pins[c.ID]})
			present[c.PodID] = true
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
			for _, c := range saved.InOrder() {
				if pin := again.policy.PinOf(again.state, c.ID); !pin.Equal(pins[c.ID]) || r.has(c.ID) != "" {
					t.Errorf("%s, %s: %s was on %s, is on %s, told %q", name, when, c.ID, pins[c.ID], pin, r.has(c.ID))
				}
			}
		}
	}
}

// The usual way out: the one that pins next is installed, the agent stands back, and is then released. What the other has
// pinned by then stays.
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
			e.Synchronize([]Arrival{ours, taken, late}, map[string]bool{"pod-ours": true, "pod-taken": true, "pod-late": true})
		}
		if err := e.Release(); err != nil {
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
	if err := e.Release(); err == nil || e.Status().Released {
		t.Errorf("released: %v", err)
	}
}

func TestWhatAPodCannotHaveIsSaid(t *testing.T) {
	e, _ := start(t, "cores=8", Settings{})
	a := arrival("a", "Burstable", 500)
	a.Annotations = map[string]string{"proxima.io/cpus": "exclusive"}
	e.Create(a)
	s := e.Status()
	if found := s.Seats[0].Findings; len(found) != 1 || !strings.Contains(found[0].String(), "Guaranteed pods") || s.Counters.Short != 0 {
		t.Errorf("%v, %+v", found, s.Counters)
	}
}

// Where a container is, is what the runtime has set for it, not what the agent would like.
func TestWhereContainersAre(t *testing.T) {
	seen := arrival("seen", policy.Guaranteed, 2000)
	seen.Seen = policy.Pin{CPUs: cpuset.Of(8)}
	for name, c := range map[string]struct {
		settings Settings
		others   []others.Found
		want     string
	}{
		"acting":        {Settings{}, nil, "[0] [1]"},
		"dry run":       {Settings{DryRun: true}, nil, "[0 1] [1]"},
		"standing back": {Settings{}, []others.Found{{Name: "CRI-RM"}}, "[0 1] [1]"},
	} {
		c.settings.Others = c.others
		e, _ := start(t, "sockets=2,cores=8", c.settings)
		e.Create(arrival("a", policy.Guaranteed, 2000))
		e.Create(seen)
		seats := e.Status().Seats
		if got := fmt.Sprint(seats[0].Nodes, " ", seats[1].Nodes); got != c.want {
			t.Errorf("%s: on nodes %s, want %s", name, got, c.want)
		}
	}
	e, r := start(t, "sockets=2,cores=8", Settings{})
	r.mu.Lock()
	r.broken = true
	r.mu.Unlock()
	e.Synchronize([]Arrival{arrival("a", policy.Guaranteed, 2000)}, map[string]bool{"pod-a": true})
	if s := e.Status(); fmt.Sprint(s.Seats[0].Nodes) != "[0 1]" || s.Pending != 1 {
		t.Errorf("not told yet: %+v", s.Seats[0])
	}
}

// Kubelet's static manager sets a cpuset for every container: what it leaves to all is ours to divide, the CPUs that it gives
// to one are not, whenever the agent comes to know of them.
func TestTheRestOfKubeletsCPUs(t *testing.T) {
	left := cpuset.Range(4, 7)
	kubelet := []others.Found{{Name: "kubelet's static CPU manager", Leaves: &left}}
	rest := config.Default()
	rest.Others = config.TakeRest
	given, owns := arrival("given", policy.Guaranteed, 2000), arrival("owns", policy.Guaranteed, 2000)
	given.Seen, owns.Seen = policy.Pin{CPUs: left}, policy.Pin{CPUs: cpuset.Of(0, 1)}
	present := map[string]bool{"pod-given": true, "pod-owns": true}
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
		e.mu.Lock()
		saved := e.state
		e.mu.Unlock()
		again, r := start(t, "cores=8", Settings{Options: rest, Others: kubelet, State: saved})
		pinned := given
		pinned.Seen = policy.Pin{CPUs: cpuset.Of(4, 5), Memory: cpuset.Of(0)}
		again.Synchronize([]Arrival{pinned, owns}, present)
		check(again, r, "started again")
		if err := again.Release(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "not given what kubelet leaves", func() bool { return r.has("given") == "4-7" })
		if told := r.has("owns"); told != "" {
			t.Errorf("%s: the release told kubelet's own %q", name, told)
		}
	}
}
