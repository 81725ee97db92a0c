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
	"proxima.io/agent/internal/state"
	"proxima.io/agent/internal/topology"
)

// runtime remembers what it was told, and refuses what it is told to refuse.
type runtime struct {
	mu     sync.Mutex
	cpus   map[string]string
	memory map[string]string
	broken bool
	failed int            // how often it was asked while it was broken
	refuse string         // the id of a container that cannot be updated
	tried  map[string]int // how often each was updated, or would have been
}

func (r *runtime) Update(_ context.Context, changes []policy.Change) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken {
		r.failed++
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

func savedOf(e *Engine) state.Saved {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.saved()
}

func pinOf(e *Engine, id string) policy.Pin {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.policy.PinOf(e.state, id)
}

func reservedOf(e *Engine) cpuset.Set {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.policy.Reserved
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

// The default of unlimitedBurstable is that of nri-plugins: a container without a limit of CPUs gets a whole
// socket.
func TestBurstableContainerWithoutALimitHasASocketByDefault(t *testing.T) {
	for limit, want := range map[int]string{0: "socket0", 1000: "node0"} {
		e, _ := start(t, "sockets=2,nodes=2,cores=4", Settings{})
		one := arrival("a", "Burstable", 500)
		one.Limit = limit
		e.Create(one)
		if is := e.Status().Seats[0].Place.Pool; is != want {
			t.Errorf("with limit %d it is placed in %s, want %s", limit, is, want)
		}
	}
}

func TestPlacesAreNotRememberedForEver(t *testing.T) {
	e, _ := start(t, "cores=4", Settings{})
	e.Create(arrival("a", policy.Guaranteed, 2000))
	e.Stop("a")
	if next, any := e.forgetGone(time.Now().Add(comeBack / 2)); !any || next > comeBack {
		t.Errorf("forgotten too early, or looked at again after %s", next)
	}
	if _, any := e.forgetGone(time.Now().Add(2 * comeBack)); any || len(savedOf(e).State.Gone) != 0 {
		t.Errorf("still remembered: %v", savedOf(e).State.Gone)
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
	e.Synchronize([]Arrival{arrival("a", policy.Guaranteed, 2000)}, map[string][]string{"pod-a": nil})
	if s := e.Status(); fmt.Sprint(s.Seats[0].Nodes) != "[0 1]" || s.Pending != 1 {
		t.Errorf("not told yet: %+v", s.Seats[0])
	}
}
