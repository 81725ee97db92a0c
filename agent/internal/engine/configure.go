package engine

import (
	"strings"

	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/others"
	"proxima.io/agent/internal/policy"
)

// Configure changes the options under running containers. Options that this machine cannot have are refused, and the old
// ones stay.
func (e *Engine) Configure(o config.Options, found []others.Found) error {
	resolved, err := e.resolve(o, found)
	if err != nil {
		e.Refuse(err)
		return err
	}
	e.guard("configure", nil, func() {
		if e.released {
			resolved.PinCPU, resolved.PinMemory = false, false
		}
		p := policy.New(e.machine, resolved)
		e.state = p.Reconcile(e.state)
		e.policy, e.options, e.others, e.hold, e.badConfig = p, o, found, "", nil
		e.setPassive()
	})
	return nil
}

// Hold changes nothing until a configuration is taken: the agent has to run even with one that it refuses, as kubelet may
// have no other way to the runtime.
func (e *Engine) Hold(because error) {
	e.guard("hold", nil, func() {
		e.hold = "the configuration was refused: " + because.Error()
		e.counters.Refused++
		e.setPassive()
	})
}

// Release gives every container all CPUs and memory nodes back and pins nobody any more: the way to remove the agent.
func (e *Engine) Release() {
	e.guard("release", nil, func() {
		e.released = true
		options := e.policy.Options
		options.PinCPU, options.PinMemory = false, false
		e.policy = policy.New(e.machine, options)
		e.log.Warn("released: nobody is pinned until the agent is started again")
	})
}

// resolve also takes out the CPUs that others hand out, where only the rest is to be used.
func (e *Engine) resolve(o config.Options, found []others.Found) (policy.Options, error) {
	if o.Others == config.TakeRest {
		for _, f := range found {
			if f.Leaves != nil {
				left := f.Leaves.Intersect(e.machine.Online)
				if !o.Available.Set.Empty() || o.Available.Milli > 0 {
					resolved, err := o.Resolve(e.machine)
					if err != nil {
						return policy.Options{}, err
					}
					left = left.Intersect(resolved.Available)
				}
				o.Available = config.CPUs{Set: left}
			}
		}
	}
	return o.Resolve(e.machine)
}

// setPassive decides whether the agent acts, and says so when it stops or starts. The lock is held, or not needed yet.
func (e *Engine) setPassive() {
	why := e.hold
	if e.dryRun {
		why = "dry run"
	}
	if len(e.others) > 0 && e.options.Others == config.StandBack {
		var names []string
		for _, f := range e.others {
			names = append(names, f.Name+" ("+f.Why+")")
		}
		why = "standing back: containers on this node are pinned by " + strings.Join(names, ", ")
	}
	if e.options.Others == config.TakeRest {
		for _, f := range e.others {
			if f.Leaves == nil {
				why = "standing back: what " + f.Name + " leaves cannot be known"
			}
		}
	}
	if why != e.passive && why != "" {
		e.log.Warn("nothing will be changed", "because", why)
	}
	if why == "" && e.passive != "" {
		e.log.Info("acting again")
	}
	e.passive = why
}
