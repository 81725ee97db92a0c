package engine

import (
	"strings"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
)

// Synchronize takes over what a runtime says is running: it knows best who is there, we know where each was put. Who was
// there before keeps its place, who came meanwhile is placed, who went is taken off. It returns what has to change, if that
// can ride on the answer.
//
// The pods are the names of their containers, ended ones too, by id.
func (e *Engine) Synchronize(running []Arrival, pods map[string][]string) (changes []policy.Change) {
	e.guard("synchronize", nil, func() {
		known := e.state
		next := policy.State{Placed: map[string]*policy.Placed{}, Gone: map[string]policy.Placement{}, Next: known.Next}
		told, pins, resizing := e.told, e.policy.Pins(known), e.resizing
		e.told, e.resizing = map[string]policy.Pin{}, map[string]*resize{}
		for i := range running {
			a := &running[i]
			e.read(a)
			e.told[a.ID] = a.Seen
			ours, ok := told[a.ID]
			if !ok {
				ours = pins[a.ID] // what the agent told it before it was started again
			}
			if !a.Seen.Empty() && !a.Seen.Equal(ours) {
				if e.isForeign(a) {
					e.leaveAlone(a)
				}
				if len(e.others) > 0 && (e.passive != "" || e.released) {
					e.theirs[a.ID] = true
				}
			}
			if resizing[a.ID] != nil {
				e.unsure(a.ID) // runc leaves in the cgroup what it wrote before it failed
			}
			placed := &policy.Placed{Container: a.Container}
			if was, ok := known.Placed[a.ID]; ok {
				if r := resizing[a.ID]; r != nil && r.refused(&a.Container) {
					was = r.was
				}
				placed.Placement, placed.Order = was.Placement, was.Order
				placed.Leaving = cpuset.Set{} // the runtime has told what became of a resize
				if was.KeepCPUs && !a.KeepCPUs {
					e.leaveAlone(a) // left alone then, left alone now
					placed.KeepCPUs, placed.KeepMemory = true, true
				}
			} else {
				placed.Order = next.Next
				next.Next++
				if !a.Seen.CPUs.Empty() {
					placed.Placement = e.policy.Guess(a.Container, a.Seen)
				}
			}
			next.Placed[a.ID] = placed
		}
		for id, c := range known.Placed {
			if _, there := pods[c.PodID]; there && next.Placed[id] == nil && c.Short == "" {
				next.Gone[c.PodID+"/"+c.Name] = c.Placement // it stopped while we were away, and may come back
			}
		}
		for key, gone := range known.Gone {
			next.Gone[key] = gone
		}
		e.state = e.reconcile(next)
		for pod := range podsOf(e.state) {
			if _, there := pods[pod]; !there {
				e.state = e.policy.ForgetPod(e.state, pod)
			}
		}
		for pod, m := range e.missing {
			if names, there := pods[pod]; there {
				e.meet(pod, m.annotations, names...)
			} else {
				delete(e.missing, pod)
			}
		}
		for id := range known.Placed {
			if e.state.Placed[id] == nil {
				e.forget(id)
			}
		}
		clear(e.refused)
		changes = e.tell("")
		e.counters.Repaired += len(changes)
		e.log.Info("synchronized", "containers", len(running), "pods", len(pods), "changes", len(changes))
	})
	return changes
}

// podsOf lists the pods of which places are remembered.
func podsOf(s policy.State) map[string]bool {
	pods := map[string]bool{}
	for key := range s.Gone {
		pods[key[:strings.LastIndexByte(key, '/')]] = true
	}
	return pods
}
