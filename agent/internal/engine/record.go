package engine

import (
	"time"

	"proxima.io/agent/internal/annotation"
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
)

// record is what is known of one container beside its place.
type record struct {
	// told is what the runtime has been told, or was seen to have.
	told policy.Pin
	// known: the runtime has it. One that it does not have yet comes with its own answer.
	known bool
	// ours: the agent has pinned it. Nobody else's container is ever changed.
	ours bool
	// theirs: another has pinned it beside us, or again after us; a release is not for it.
	theirs bool
	// foreign is the cpuset with which it came, for which it is left alone.
	foreign string
	// resize is one that the runtime has yet to take.
	resize *resize
	// refusal is the pin that the runtime did not take.
	refusal *refusal
	// unplaced is the container that a fault inside kept from a decision.
	unplaced *policy.Container
	findings []annotation.Finding
	decision *policy.Decision

	// cgroup is where the kernel's word on it is found; see audit.go.
	cgroup []string
	audit  bool      // the kernel's word is to be compared
	unseen time.Time // since when the kernel has not had it; zero: it has, or was not asked
	lost   string    // how the kernel's word differs
	doubt  *refusal  // the pin that the kernel does not follow
}

// record returns what is known of a container, and begins with nothing. The lock is held.
func (e *Engine) record(id string) *record {
	r := e.records[id]
	if r == nil {
		r = &record{}
		e.records[id] = r
	}
	return r
}

// tellOne notes that the runtime has been told, or is being told, a container's pin. The lock is held.
func (e *Engine) tellOne(id string, pin policy.Pin) {
	r := e.record(id)
	r.told = r.told.With(pin)
	r.ours = r.ours || !pin.Empty()
	e.examine(r)
}

// owned are all CPUs that containers have to themselves.
func owned(s policy.State) cpuset.Set {
	all := cpuset.Set{}
	for _, c := range s.Placed {
		all = all.Union(c.Exclusive).Union(c.Idle)
	}
	return all
}

// refusal is a pin that was not taken, and when it is told again.
type refusal struct {
	pin   policy.Pin
	delay time.Duration
	next  time.Time
}
