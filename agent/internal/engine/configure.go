package engine

import (
	"errors"
	"strings"

	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/others"
	"proxima.io/agent/internal/policy"
)

// Configure changes the options under running containers. Options that this machine cannot have are refused,
// and the old ones stay.
func (e *Engine) Configure(o config.Options, found []others.Found) error {
	var err error
	e.guard("configure", nil, func() {
		var resolved policy.Options
		var standBack string
		if resolved, standBack, err = e.beside(o, found); err != nil {
			return
		}
		hold := e.hold
		e.hold = ""
		defer func() {
			if fault := recover(); fault != nil { // the old options stay, and what was held is held
				e.hold = hold
				panic(fault)
			}
		}()
		e.adopt(resolved)
		e.options, e.others, e.standBack, e.badConfig = o, found, standBack, nil
		e.setPassive()
	})
	if err != nil {
		e.Refuse(err)
		return err
	}
	return nil
}

// Refuse notes that a new configuration was refused and the old one stays, until there is a good one.
func (e *Engine) Refuse(because error) {
	e.guard("refuse", nil, func() {
		e.badConfig = []string{"the configuration was refused, the old one stays: " + because.Error()}
		e.counters.Refused++
	})
}

// Release gives every container all CPUs and memory nodes back that others leave, and pins nobody any more:
// the way to remove the agent. It is done even where the agent stands back or holds, for that is how a node
// passes from one that pins to another. It returns how many containers the runtime has to be told about.
func (e *Engine) Release() (containers int, err error) {
	if e.dryRun {
		return 0, errors.New("the agent is in a dry run and changes nothing; start it without --dry-run to release")
	}
	e.guard("release", nil, func() {
		e.released = true
		options := e.policy.Options
		options.PinCPU, options.PinMemory = false, false
		e.policy = policy.New(e.machine, options)
		e.setPassive()
		containers = len(e.pending(""))
		e.log.Warn("released: nobody is pinned until the agent is started again", "containers", containers)
	})
	return containers, nil
}

// beside turns options into those of the policy beside the others that pin. why says that there is no way to
// live with them: the agent has to stand back.
func (e *Engine) beside(o config.Options, found []others.Found) (resolved policy.Options, why string, err error) {
	resolved, err = o.Resolve(e.machine, e.had())
	if err != nil || len(found) == 0 || o.Others == config.Ignore {
		return resolved, "", err
	}
	if o.Others == config.StandBack {
		var names []string
		for _, f := range found {
			names = append(names, f.Name+" ("+f.Why+")")
		}
		return resolved, "containers on this node are pinned by " + strings.Join(names, ", "), nil
	}
	left := resolved.Available
	for _, f := range found {
		if f.MemoryOnly {
			continue // whom it has given memory is left alone, container by container
		}
		if f.Leaves == nil {
			return resolved, "what " + f.Name + " leaves cannot be known", nil
		}
		if left = left.Intersect(*f.Leaves); left.Empty() {
			return resolved, f.Name + " leaves none of the available CPUs " + resolved.Available.String(), nil
		}
	}
	o.Available = config.CPUs{Set: left}
	rest, err := o.Resolve(e.machine, e.had())
	if err != nil { // the configuration is good; it is the others who leave too little for it
		return resolved, "with the CPUs " + left.String() + " that others leave, " + err.Error(), nil //nolint:nilerr // it is the reason
	}
	return rest, "", nil
}

// had is what amounts of CPUs were made of, and whose they are not. The lock is held, or not needed yet.
func (e *Engine) had() config.Had {
	return config.Had{Available: e.policy.Available, Reserved: e.policy.Reserved, Taken: owned(e.state)}
}

// setPassive decides whether the agent acts, and says so when it stops or starts. The lock is held, or not
// needed yet.
func (e *Engine) setPassive() {
	why := e.hold
	if e.dryRun {
		why = "dry run"
	}
	if e.standBack != "" {
		why = "standing back: " + e.standBack
	}
	if e.released {
		e.passive = ""
		return
	}
	if why == "" && e.passive != "" {
		e.takeOver()
	}
	if why != e.passive && why != "" {
		e.log.Warn("nothing will be changed", "because", why)
	}
	if why == "" && e.passive != "" {
		e.log.Info("acting again")
	}
	e.passive = why
}

// takeOver begins to act where others did, or nobody: what another has pinned meanwhile and may still need is
// left alone. The lock is held.
func (e *Engine) takeOver() {
	for id, r := range e.records {
		c := e.state.Placed[id]
		r.theirs = false
		if c == nil || !r.known || r.ours || r.told.Empty() || r.foreign != "" || e.options.Others == config.Ignore {
			continue
		}
		a := Arrival{Container: c.Container, Seen: r.told}
		if e.isLeftover(&a) {
			continue
		}
		e.leaveAlone(&a)
		e.state, _ = e.policy.Place(e.state, a.Container)
	}
}
