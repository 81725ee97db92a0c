package engine

import (
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/topology"
)

// Look looks whether the machine is still the one that is reckoned with.
func (e *Engine) Look() { e.guard("look", nil, e.look) }

// look is Look. Every arrival begins with it: a container must not be given a CPU that is gone. The lock is
// held.
func (e *Engine) look() {
	if e.seeMachine == nil {
		return
	}
	machine, err := e.seeMachine()
	if err != nil {
		e.log.Error("the machine cannot be read; the last that was known of it counts", "error", err)
	}
	if machine != nil {
		e.follow(machine)
	}
}

// follow goes over to a machine whose CPUs or memory are others. Who sat on CPUs that are gone is placed
// again, nobody else moves. The lock is held.
func (e *Engine) follow(machine *topology.Topology) {
	before, old := e.state, e.machine
	e.log.Warn("the machine has changed", "online", machine.Online, "gone", old.Online.Minus(machine.Online),
		"new", machine.Online.Minus(old.Online))
	e.machine = machine
	resolved, standBack, err := e.beside(e.options, e.others)
	if err != nil { // the options were good while the CPUs were there
		e.log.Error("the configuration does not fit the machine any more; what is left of it counts", "error", err)
		resolved, standBack = e.policy.Options, e.standBack
	}
	e.standBack = standBack
	e.adopt(resolved)
	e.setPassive()
	for _, c := range before.InOrder() {
		is := e.state.Placed[c.ID]
		if is != nil && !c.Exclusive.Empty() && is.Exclusive.Empty() {
			e.counters.Lost++
			e.log.Error("a container has lost its CPUs, and there are no others for it", "container", e.nameOf(c.ID),
				"had", c.Exclusive, "shares", is.Pool, "because", is.Short)
		}
	}
	e.examineAll()
	e.log.Info("the machine is followed", "told", len(e.pending("")))
}

// asOnline is what a pin that the runtime was told comes to on this machine. Where the kernel keeps offline
// CPUs in a cpuset, a container that only loses such CPUs, or gets them back, need not be told: each update
// is a call to the runtime, for all that share those CPUs. The lock is held.
func (e *Engine) asOnline(told policy.Pin) policy.Pin {
	if e.returns {
		told.CPUs = told.CPUs.Intersect(e.machine.Online)
	}
	return told
}

// adopt takes options and machine for the policy, and carries the state over. The lock is held, or not needed
// yet.
func (e *Engine) adopt(resolved policy.Options) {
	if e.released {
		resolved.PinCPU, resolved.PinMemory = false, false
	}
	p := policy.New(e.machine, resolved)
	if e.hold == "" {
		e.state = p.Reconcile(e.state) // first: should it fail, the old options stay
	}
	e.policy = p
}
