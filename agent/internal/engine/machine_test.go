package engine

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/topology"
)

// hotMachine is a machine whose CPUs come and go, and the kernel that says what each cgroup may use.
type hotMachine struct {
	mu       sync.Mutex
	tree     topology.Recording
	follower *topology.Follower
	kernel   map[string]policy.Pin // by cgroup
}

func (h *hotMachine) look() (*topology.Topology, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.follower.Look()
}

func (h *hotMachine) effective(paths []string) (policy.Pin, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	pin, ok := h.kernel[paths[0]]
	if !ok {
		return pin, errors.New("no such cgroup")
	}
	return pin, nil
}

func (h *hotMachine) says(id, cpus string) {
	set, _ := cpuset.Parse(cpus)
	h.mu.Lock()
	h.kernel["/"+id] = policy.Pin{CPUs: set}
	h.mu.Unlock()
}

// online makes the machine that of a shape.
func (h *hotMachine) online(t *testing.T, shape string) {
	t.Helper()
	s, err := topology.ParseShape(shape)
	if err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.tree)
	for path, content := range s.Recording() {
		h.tree[path] = content
	}
}

func startHot(t *testing.T, shape string, settings Settings) (*Engine, *runtime, *hotMachine) {
	t.Helper()
	h := &hotMachine{tree: topology.Recording{}, kernel: map[string]policy.Pin{}}
	h.online(t, shape)
	var err error
	if h.follower, _, err = topology.Follow(h.tree); err != nil {
		t.Fatal(err)
	}
	settings.Look, settings.Effective = h.look, h.effective
	e, r := start(t, shape, settings)
	return e, r, h
}

// A CPU that went offline since the last container came is given to nobody, whether the kernel has told of it
// or not; who sat on it moves, and as little as can be.
func TestCPUsThatGoOfflineAreGivenToNobody(t *testing.T) {
	e, r, h := startHot(t, "sockets=2,cores=8", Settings{})
	e.Create(arrival("wide", policy.Guaranteed, 4000)) // 0-3
	e.Create(arrival("other", policy.Guaranteed, 2000))
	e.Create(arrival("sharer", "Burstable", 100))
	wide, other := e.Status().Seats[0].Pin.CPUs, e.Status().Seats[1].Pin.CPUs
	lost := wide.First()
	h.online(t, "sockets=2,cores=8,offline="+cpuset.Of(lost).String())
	pin, _ := e.Create(arrival("late", policy.Guaranteed, 2000))
	if pin.CPUs.Has(lost) || pin.CPUs.Len() != 2 {
		t.Errorf("late has %s, of which %d is offline", pin.CPUs, lost)
	}
	s := e.Status()
	if is := s.Seats[0].Pin.CPUs; is.Len() != 4 || is.Has(lost) || is.Intersect(wide).Len() != 3 {
		t.Errorf("wide had %s and has %s: three of them are still there", wide, is)
	}
	if is := s.Seats[1].Pin.CPUs; !is.Equal(other) {
		t.Errorf("other moved from %s to %s for nothing", other, is)
	}
	taken := cpuset.Set{}
	for _, seat := range s.Seats {
		if seat.Pin.CPUs.Has(lost) || seat.Place.Exclusive.Meets(taken) {
			t.Errorf("%s has %s", seat.Name, seat.Pin.CPUs)
		}
		taken = taken.Union(seat.Place.Exclusive)
	}
	eventually(t, "wide was not told", func() bool { return r.has("wide") == s.Seats[0].Pin.CPUs.String() })
	before := savedOf(e).State.Placed
	h.online(t, "sockets=2,cores=8")
	e.Look()
	for id, is := range savedOf(e).State.Placed {
		if !is.Exclusive.Equal(before[id].Exclusive) || !is.Placement.Memory.Equal(before[id].Placement.Memory) {
			t.Errorf("%s moved when the CPU came back: %+v, was %+v", id, is.Placement, before[id].Placement)
		}
	}
	if s := e.Status(); s.Counters.Faults > 0 || s.Pools[0].CPUs != "0-15" {
		t.Errorf("%+v", s)
	}
}

// Where the kernel keeps a CPU that is offline in the cpusets that have it, only those are told who have to
// move: the others lose it, and get it back, without a call to the runtime.
func TestContainersThatTheKernelServesAreNotTold(t *testing.T) {
	for _, returns := range []bool{true, false} {
		e, r, h := startHot(t, "cores=8", Settings{Returns: returns})
		for _, id := range []string{"a", "b"} {
			sharer := arrival(id, "Burstable", 100)
			sharer.Cgroup = []string{"/" + id}
			e.Create(sharer)
		}
		e.Create(arrival("owner", policy.Guaranteed, 2000)) // 0-1
		settles := func(offline, owner, sharers string, told, toldOwner int) {
			t.Helper()
			h.says("a", sharers)
			h.says("b", sharers)
			h.online(t, "cores=8"+offline)
			e.Look()
			eventually(t, offline+": not all are told", func() bool { return e.Status().Pending == 0 })
			time.Sleep(2 * settled) // the kernel's word is asked meanwhile
			if is := pinOf(e, "a").CPUs.String(); is != sharers || pinOf(e, "owner").CPUs.String() != owner {
				t.Errorf("%s: by the books a has %s and owner %s", offline, is, pinOf(e, "owner"))
			}
			if r.tries("a") != told || r.tries("b") != told || r.tries("owner") != toldOwner {
				t.Errorf("%s (the kernel keeps %t): a was told %d times, owner %d", offline, returns, r.tries("a"), r.tries("owner"))
			}
		}
		times := map[bool][]int{true: {1, 1, 1, 2, 3}, false: {1, 2, 3, 4, 5}}[returns]
		settles("", "0-1", "2-7", times[0], 0) // owner came
		settles(",offline=5", "0-1", "2-4,6-7", times[1], 0)
		settles("", "0-1", "2-7", times[2], 0)
		settles(",offline=1", "0,2", "3-7", times[3], 1) // owner moves, and takes a CPU of theirs
		settles("", "0,2", "1,3-7", times[4], 1)         // which is another one now
		if s := e.Status(); s.Counters.Lost > 0 || s.Seats[0].Lost != "" {
			t.Errorf("%+v", s.Seats[0])
		}
	}
}

// Where there is no other CPU, what is lost is said loudly, and given back as soon as it can be.
func TestLostExclusivityIsReported(t *testing.T) {
	e, _, h := startHot(t, "cores=4", Settings{})
	e.Create(arrival("a", policy.Guaranteed, 3000))
	h.online(t, "cores=4,offline=2-3")
	e.Look()
	if s := e.Status(); s.Seats[0].Place.Short == "" || s.Counters.Lost != 1 || s.Seats[0].Pin.CPUs.String() != "0-1" {
		t.Errorf("%+v", s.Seats[0])
	}
	h.online(t, "cores=4")
	e.Look()
	if s := e.Status(); s.Seats[0].Place.Short != "" || s.Seats[0].Pin.CPUs.Len() != 3 {
		t.Errorf("%+v", s.Seats[0])
	}
}

// What the kernel lets a container use is compared with what the runtime was told; a difference is told
// again, and shown.
func TestTheKernelsWordIsComparedWithWhatWasTold(t *testing.T) {
	e, r, h := startHot(t, "cores=4", Settings{})
	a := arrival("a", policy.Guaranteed, 2000)
	a.Cgroup = []string{"/a"}
	h.says("a", "0-3") // as after an offline of all its CPUs
	e.Create(a)
	eventually(t, "the difference is not shown", func() bool { return strings.Contains(e.Status().Seats[0].Lost, "0-3") })
	eventually(t, "it is not told again", func() bool { return r.tries("a") >= 1 })
	h.says("a", "0-1")
	e.Look()
	eventually(t, "it is shown although it is as it should be", func() bool {
		e.mu.Lock()
		e.examineAll()
		e.mu.Unlock()
		e.wake()
		time.Sleep(2 * settled)
		return e.Status().Seats[0].Lost == ""
	})
	if tries := r.tries("a"); tries > 3 || e.Status().Counters.Lost != 1 {
		t.Errorf("told %d times, %+v", tries, e.Status().Counters)
	}
}

// A runtime that was told about many goes from one to the next, and may take longer than a doubt does: whose
// turn has not come is not told again, which would only make it longer.
func TestASlowRuntimeIsNotDoubtedWhileItIsAtIt(t *testing.T) {
	e, _, h := startHot(t, "cores=4", Settings{})
	for _, id := range []string{"a", "b", "c"} {
		h.says(id, "0-1")
		sharer := arrival(id, "Burstable", 100)
		sharer.Cgroup = []string{"/" + id}
		e.Create(sharer)
	}
	now := time.Now().Add(time.Second)
	look := func(waiting, lost int) {
		t.Helper()
		next, _ := e.auditNow(now)
		if want := retryAfter + time.Duration(waiting)*turn; lost == 0 && next != want {
			t.Errorf("it looks again after %s, want %s", next, want)
		}
		if s := e.Status(); s.Counters.Lost != lost {
			t.Errorf("lost: %d, want %d", s.Counters.Lost, lost)
		}
		now = now.Add(next)
	}
	look(3, 0)
	h.says("a", "0-3")
	look(2, 0)
	h.says("b", "0-3")
	look(1, 0)
	look(1, 1) // c, of which nothing is heard any more
}

// A runtime may lose what it is told of a container that it is still creating: the kernel's word is awaited,
// but not for ever.
func TestTheKernelsWordIsAwaitedUntilAContainerHasStarted(t *testing.T) {
	e, _, h := startHot(t, "cores=4", Settings{})
	a := arrival("a", "Burstable", 100)
	a.Cgroup = []string{"/a"}
	e.Create(a)
	never := arrival("never", "Burstable", 100)
	never.Cgroup = []string{"/never"}
	e.Create(never)
	now := time.Now().Add(time.Second)
	if next, again := e.auditNow(now); !again || next != retryAfter {
		t.Errorf("it looks again after %s: %t", next, again)
	}
	h.says("a", "0-1")
	for range 3 {
		now = now.Add(2 * retryAfter)
		e.auditNow(now)
	}
	if s := e.Status(); s.Counters.Lost != 1 {
		t.Errorf("it was not seen that a has other CPUs: %+v", s.Seats[0])
	}
	h.says("a", "0-3")
	now = now.Add(refuseLast)
	e.auditNow(now)
	if next, again := e.auditNow(now.Add(refuseLast)); again {
		t.Errorf("who never starts is looked for again after %s", next)
	}
}

// An amount of reserved CPUs keeps its CPUs, and takes nobody's own in place of one that is gone.
func TestAReserveThatGoesOfflineTakesNobodysCPUs(t *testing.T) {
	o := config.Default()
	o.Reserved = config.CPUs{Milli: 1000}
	e, _, h := startHot(t, "cores=4", Settings{Options: o})
	pin, _ := e.Create(arrival("a", policy.Guaranteed, 1000))
	if pin.CPUs.String() != "1" {
		t.Fatalf("a has %s", pin.CPUs)
	}
	h.online(t, "cores=4,offline=0")
	e.Look()
	if s := e.Status(); s.Seats[0].Pin.CPUs.String() != "1" || !reservedOf(e).Equal(cpuset.Of(2)) {
		t.Errorf("a has %s, reserved is %s", s.Seats[0].Pin.CPUs, reservedOf(e))
	}
	h.online(t, "cores=4")
	e.Look()
	again, _, _ := startHot(t, "cores=4", Settings{Options: o, State: savedOf(e)})
	for _, e := range []*Engine{e, again} {
		if !reservedOf(e).Equal(cpuset.Of(2)) {
			t.Errorf("the reserve moved to %s for nothing", reservedOf(e))
		}
	}
}

// Options that the machine cannot have any more do not keep the agent from following it.
func TestAConfigurationThatTheMachineOutgrew(t *testing.T) {
	o := config.Default()
	o.Available = config.CPUs{Set: cpuset.Of(2, 3)}
	e, _, h := startHot(t, "cores=4", Settings{Options: o})
	e.Create(arrival("a", "Burstable", 100))
	h.online(t, "cores=4,offline=2-3")
	pin, _ := e.Create(arrival("b", "Burstable", 100))
	if !pin.CPUs.Within(cpuset.Range(0, 1)) || e.Status().Counters.Faults > 0 {
		t.Errorf("b has %s, %+v", pin.CPUs, e.Status().Counters)
	}
}
