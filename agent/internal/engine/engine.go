// Package engine keeps the state of one node between the two doors and the policy: it asks the policy,
// remembers what the runtime was told, and repairs what it was not.
//
// No call fails because of the policy. A fault inside is counted and leaves the container unpinned; the
// repair tries again.
//
// # Layout
//
//	engine.go       a container comes, stops; a pod goes
//	record.go       what is known of one container beside its place
//	machine.go      CPUs come and go
//	foreign.go      a container that somebody else has pinned
//	audit.go        what the kernel says of what the runtime was told
//	synchronize.go  what is running, when a runtime (re)appears
//	repair.go       telling the runtime what it has not been told
//	configure.go    new options, and standing back
//	missing.go      containers that annotations name and a pod does not have
//	where.go        where the pods are, for proxies
//	resize.go       a resize that the runtime has yet to take
//	status.go       what there is to see
package engine

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"proxima.io/agent/internal/annotation"
	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/others"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/state"
	"proxima.io/agent/internal/topology"
)

// Updater tells a runtime to change running containers. It returns the ids that the runtime has not taken
// (yet).
type Updater interface {
	Update(ctx context.Context, changes []policy.Change) (failed []string, err error)
}

// Settings are what an engine is made with.
type Settings struct {
	Machine *topology.Topology
	Options config.Options
	Others  []others.Found
	// Refused is why there are no options to start with. The engine then changes nothing until it is given
	// good ones.
	Refused error
	State   state.Saved
	DryRun  bool
	// Look returns the machine if it is not what it was at the last call, else nil; nil is a machine that
	// never changes.
	Look func() (*topology.Topology, error)
	// Returns says that the kernel keeps a CPU that goes offline in the cpusets that have it, and uses it
	// again once it is back, as version 2 of cgroups does.
	Returns bool
	// Effective returns what the kernel lets a cgroup use, of the first of the paths that is there; nil is
	// not to be asked.
	Effective func(cgroup []string) (policy.Pin, error)
	// Inline says that the changes which a call returns ride on its answer. Else the calls return none, and
	// the repair tells them to the runtime right afterwards.
	Inline bool
	// Save is called with each new state, never from within a call of a door.
	Save func(state.Saved) error
	Log  *slog.Logger
}

// Engine is safe for use by several goroutines.
type Engine struct {
	machine *topology.Topology
	dryRun  bool
	inline  bool
	save    func(state.Saved) error
	log     *slog.Logger

	seeMachine func() (*topology.Topology, error)
	returns    bool
	effective  func([]string) (policy.Pin, error)

	mu      sync.Mutex
	options config.Options
	policy  *policy.Policy
	state   policy.State
	version int // of the state, for whoever saves it
	others  []others.Found
	passive string // why nothing is changed; empty while the agent acts
	// standBack is why the agent cannot act beside the others.
	standBack string
	// hold is why nothing may be changed until a configuration is taken: the first one was refused.
	hold string
	// badConfig is a note on a later configuration that was refused, until there is a good one.
	badConfig []string
	// released: everybody has been given everything back, for good.
	released bool
	updater  Updater
	records  map[string]*record // by container id
	// unproven are the pins by a saved state that does not tell which of them the runtime was told.
	unproven map[string]policy.Pin
	auditAt  time.Time
	missing  map[string]*missing // by pod id
	counters Counters
	// goneSince is when the places that the state remembers were given up.
	goneSince map[string]time.Time

	kick chan struct{}

	addresses map[string][]string // of pods, by id; not there: nobody has told them
	changes   changes
}

// New makes an engine. Options that the machine cannot have are refused, like those that could not be read:
// the agent has to run even then, as kubelet may have no other way to the runtime. It keeps the state as it
// was saved until it has good ones, for only they tell which places are valid.
func New(s Settings) (*Engine, error) {
	e := &Engine{
		machine: s.Machine, dryRun: s.DryRun, inline: s.Inline, save: s.Save, log: s.Log, options: s.Options, others: s.Others,
		state: s.State.State, records: map[string]*record{}, missing: map[string]*missing{}, kick: make(chan struct{}, 1),
		addresses:  map[string][]string{},
		seeMachine: s.Look, returns: s.Returns, effective: s.Effective,
		policy: policy.New(s.Machine, policy.Options{Available: s.State.Available, Reserved: s.State.Reserved}),
	}
	for id, pin := range s.State.Told {
		e.records[id] = &record{told: pin, ours: true}
	}
	resolved, refused := policy.Options{}, s.Refused
	if refused == nil {
		resolved, e.standBack, refused = e.beside(s.Options, s.Others)
	}
	if refused != nil {
		e.log.Error("configuration refused; nothing is changed until there is a good one", "error", refused)
		e.hold = "the configuration was refused: " + refused.Error()
		e.counters.Refused++
		e.options = config.Default()
		var err error
		if resolved, e.standBack, err = e.beside(e.options, s.Others); err != nil {
			return nil, err
		}
	}
	if s.State.Told == nil {
		e.unproven = policy.New(s.Machine, resolved).Pins(s.State.State) // as that agent did, before anybody is placed again
	}
	e.adopt(resolved)
	e.setPassive()
	return e, nil
}

// Arrival is a container as a door sees it.
type Arrival struct {
	policy.Container
	Annotations map[string]string // of its pod
	// Seen is what the runtime has set for it already.
	Seen policy.Pin
	// Marked: it carries the mark that this agent puts on the containers which it pins at their creation.
	Marked bool
	// Cgroup are the paths where the kernel may have it.
	Cgroup []string
	// Addresses are those of its pod, where the runtime tells them (AddressesTold): none where it has the
	// node's network.
	Addresses     []string
	AddressesTold bool
}

// Mark is the annotation of a container, not of its pod, that proves that the agent has pinned it.
const Mark = "pinned-by.proxima.io"

// Create places a container that is about to be created. It returns the container's own pin and the changes
// to others; empty sets mean that nothing is to be set.
func (e *Engine) Create(a Arrival) (pin policy.Pin, changes []policy.Change) {
	e.guard("create", &a.Container, func() {
		e.look()
		r := e.record(a.ID)
		r.told, r.known, r.cgroup = a.Seen, true, a.Cgroup
		e.meetAt(&a)
		e.read(&a)
		if e.isForeign(&a) || (!a.Seen.Empty() && e.passive == "" && !e.isLeftover(&a)) {
			e.leaveAlone(&a) // another plugin before us, or kubelet, has set it: two owners of one field fail the pod
		}
		r.theirs = e.passive != "" && len(e.others) > 0 && !a.Seen.Empty()
		pin, changes = e.place(e.policy.Place(e.state, a.Container))
	})
	return pin, changes
}

// Stop takes a container off the books and returns the changes to others.
func (e *Engine) Stop(id string) (changes []policy.Change) {
	e.guard("stop", nil, func() {
		e.drop(id)
		changes = e.tell("")
	})
	return changes
}

// Drop is Stop for callers whose answer has no room for changes: the repair tells them.
func (e *Engine) Drop(id string) {
	e.guard("drop", nil, func() { e.drop(id) })
}

// DropPod drops a pod's containers, those too whose creation failed after we had placed them, and forgets the
// places that they could have come back to.
func (e *Engine) DropPod(podID string) {
	e.guard("drop pod", nil, func() {
		for _, c := range e.state.InOrder() {
			if c.PodID == podID {
				e.drop(c.ID)
			}
		}
		e.state = e.policy.ForgetPod(e.state, podID)
		delete(e.missing, podID)
		delete(e.addresses, podID)
	})
}

// drop takes a container off the books. The lock is held.
func (e *Engine) drop(id string) {
	e.state, _ = e.policy.Release(e.state, id)
	delete(e.records, id)
}

// Container returns a placed container.
func (e *Engine) Container(id string) (policy.Container, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c, ok := e.state.Placed[id]; ok {
		return c.Container, true
	}
	return policy.Container{}, false
}

// OfPod returns the ids of a pod's containers on the books.
func (e *Engine) OfPod(podID string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var ids []string
	for _, c := range e.state.InOrder() {
		if c.PodID == podID {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Rename gives a container the id that the runtime has chosen for it; the CRI door places it before it has
// one. The kernel has it below one of the paths then.
func (e *Engine) Rename(from, to string, cgroup []string) {
	e.guard("rename", nil, func() {
		if r, ok := e.records[from]; ok {
			delete(e.records, from)
			e.records[to] = r
			if r.unplaced != nil {
				waits := *r.unplaced
				waits.ID = to
				r.unplaced = &waits
			}
			r.cgroup = cgroup
			e.examine(r)
		}
		c, ok := e.state.Placed[from]
		if !ok {
			return
		}
		renamed := *c
		renamed.ID = to
		next := policy.State{Placed: maps.Clone(e.state.Placed), Gone: e.state.Gone, Next: e.state.Next}
		delete(next.Placed, from)
		next.Placed[to] = &renamed
		e.state = next
	})
}

// place notes a decision and works out what the runtime has to be told. The lock is held.
func (e *Engine) place(next policy.State, d policy.Decision) (policy.Pin, []policy.Change) {
	for id := range e.state.Placed { // a predecessor under another id may have been replaced
		if _, still := next.Placed[id]; !still {
			delete(e.records, id)
		}
	}
	e.state = next
	c := next.Placed[d.ID]
	e.record(c.ID).decision = &d
	e.counters.Decisions++
	if d.Place.Short != "" {
		e.counters.Short++
	}
	if e.passive != "" {
		return policy.Pin{}, nil
	}
	e.tellOne(c.ID, d.Pin)
	e.log.Info("placed", "container", c.Name, "pod", c.PodName, "pool", d.Place.Pool, "kind", d.Place.Kind,
		"cpus", d.Pin.CPUs, "memory", d.Pin.Memory, "because", d.Reason)
	return d.Pin, e.tell(c.ID)
}

// read reads the annotations, and says what is wrong with them. The lock is held.
func (e *Engine) read(a *Arrival) {
	var findings []annotation.Finding
	a.Wishes, findings = annotation.Read(a.Annotations, a.Name)
	if note := e.policy.Note(&a.Container); note != "" {
		findings = append(findings, annotation.Finding{Problem: annotation.Odd, Key: "of the pod", Message: note})
	}
	e.meet(a.PodID, a.Annotations, a.Name)
	r := e.record(a.ID)
	if slices.Equal(findings, r.findings) {
		return // said already, when it came
	}
	r.findings = findings
	e.say(findings, "container", a.Name, "pod", a.PodName, "namespace", a.Namespace)
}

// guard runs a step of a door under the lock, and lets the repair look what follows from it.
func (e *Engine) guard(what string, c *policy.Container, step func()) {
	e.protect(what, c, func() {
		e.version++
		step()
	})
	e.wake()
}

// protect runs a step under the lock. A panic inside is a fault of ours and must not become the pod's, or end
// the process: it is counted, and the container stays for the repair to place.
func (e *Engine) protect(what string, c *policy.Container, step func()) (whole bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.state
	defer func() {
		if fault := recover(); fault != nil {
			e.state = before
			e.counters.Faults++
			e.log.Error("fault inside; the container is left as it is", "step", what, "fault", fmt.Sprint(fault))
			if c != nil && c.ID != "" {
				e.record(c.ID).unplaced = c
			}
			whole = false
		}
	}()
	step()
	return true
}

// wake lets the repair look whether there is something to do.
func (e *Engine) wake() {
	e.changes.tell()
	select {
	case e.kick <- struct{}{}:
	default:
	}
}
