package engine

import (
	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
)

// left returns the CPUs that kubelet's static manager has given to nobody; any is false where there is no
// such manager. It sets a cpuset for every container: CPUs of its own for some, and these for all the others.
func (e *Engine) left() (cpus cpuset.Set, any bool) {
	for _, f := range e.others {
		if f.Leaves != nil {
			return *f.Leaves, true
		}
	}
	return cpuset.Set{}, false
}

// isForeign tells whether kubelet has given a container CPUs of its own.
func (e *Engine) isForeign(a *Arrival) bool {
	left, any := e.left()
	return any && !a.Seen.CPUs.Within(left)
}

// isLeftover tells whether a container's cpuset is what kubelet leaves to everybody: ours may take its place.
// What is known of that set may be a moment older than the container; CPUs of its own kubelet gives in the
// very number that is asked for.
func (e *Engine) isLeftover(a *Arrival) bool {
	left, any := e.left()
	own := a.QOS == policy.Guaranteed && 1000*a.Seen.CPUs.Len() == a.Request
	return any && !own && a.Seen.CPUs.Within(left) && a.Seen.Memory.Empty()
}

// leaveAlone takes a container as it is, and says so once. The lock is held.
func (e *Engine) leaveAlone(a *Arrival) {
	a.KeepCPUs, a.KeepMemory, a.Given = true, true, a.Seen
	r := e.record(a.ID)
	r.ours = false
	if r.foreign != "" {
		return
	}
	r.foreign = a.Seen.String()
	e.counters.Foreign++
	e.log.Warn("left alone: it carries a cpuset already", "container", a.Name, "pod", a.PodName, "cpuset", a.Seen)
}

// recognize tells whose pin a container carries that a runtime says is running. Ours is what the saved state,
// or the mark that it was created with, proves ours; everything else is left alone. The lock is held.
func (e *Engine) recognize(a *Arrival, r *record) {
	switch {
	case a.Seen.Empty():
		return
	case a.Marked, e.unproven[a.ID].Equal(a.Seen):
		r.ours = true
	}
	if r.ours && a.Seen.Equal(r.told) {
		return
	}
	switch {
	case e.isForeign(a):
		e.leaveAlone(a)
	case !r.ours && e.standBack == "" && !e.released && e.options.Others != config.Ignore && !e.isLeftover(a):
		e.leaveAlone(a)
	}
	if len(e.others) > 0 && (e.passive != "" || e.released) {
		r.theirs = true
	}
}
