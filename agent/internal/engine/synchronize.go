package engine

import (
	"strings"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
)

// Synchronize takes over what a runtime says is running: it knows best who is there, we know where each was
// put. Who was there before keeps its place, who came meanwhile is placed, who went is taken off, and who was
// started again in its pod has the place of its predecessor. It returns what has to change, if that can ride
// on the answer.
//
// The pods are the names of their containers, ended ones too, by id.
func (e *Engine) Synchronize(running []Arrival, pods map[string][]string) (changes []policy.Change) {
	e.guard("synchronize", nil, func() {
		e.look()
		known := e.state
		next := policy.State{Placed: map[string]*policy.Placed{}, Gone: map[string]policy.Placement{}, Next: known.Next}
		before := e.records
		e.records = map[string]*record{}
		ended := map[string]*policy.Placed{} // by pod and name
		for _, c := range known.Placed {
			ended[c.PodID+"/"+c.Name] = c
		}
		for i := range running {
			if c := known.Placed[running[i].ID]; c != nil && ended[c.PodID+"/"+c.Name] == c {
				delete(ended, c.PodID+"/"+c.Name)
			}
		}
		for key, gone := range known.Gone {
			next.Gone[key] = gone
		}
		for i := range running {
			a := &running[i]
			placed := e.meetAgain(a, before[a.ID], known, next, ended)
			if placed.Order == next.Next {
				next.Next++
			}
			next.Placed[a.ID] = placed
		}
		for key, c := range ended {
			if _, there := pods[c.PodID]; there && c.Short == "" && c.Kind != policy.Unpinned {
				next.Gone[key] = c.Placement // it stopped while we were away, and may come back
			}
		}
		e.state = next
		if e.hold == "" {
			e.state = e.policy.Reconcile(next)
		}
		e.unproven = nil
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
		for pod := range e.addresses {
			if _, there := pods[pod]; !there {
				delete(e.addresses, pod)
			}
		}
		changes = e.tell("")
		e.examineAll()
		e.counters.Repaired += len(changes)
		e.log.Info("synchronized", "containers", len(running), "pods", len(pods), "changes", len(changes))
	})
	return changes
}

// meetAgain says where a container that is running is, as far as that is known: by the books, by its
// predecessor's place, or by the pin that it carries. The lock is held.
func (e *Engine) meetAgain(a *Arrival, r *record, known, next policy.State, ended map[string]*policy.Placed) *policy.Placed {
	if r == nil {
		r = &record{}
	}
	e.records[a.ID] = r
	e.meetAt(a)
	e.read(a)
	was := known.Placed[a.ID]
	resize := r.resize
	doubted := r.doubt != nil && r.told.Empty() // the kernel does not follow: it is told again, whatever the runtime believes
	e.recognize(a, r)
	if was != nil && was.KeepCPUs && !a.KeepCPUs { // left alone then, left alone now
		seen := a.Seen
		if seen.Empty() {
			seen = was.Given
		}
		a.KeepCPUs, a.KeepMemory, a.Given = true, true, seen
		r.foreign, r.ours = seen.String(), false
	}
	r.told, r.known, r.resize, r.refusal, r.unplaced, r.cgroup = a.Seen, true, nil, nil, nil, a.Cgroup
	if resize != nil || doubted {
		e.unsure(a.ID) // runc leaves in the cgroup what it wrote before it failed
	}
	key := a.PodID + "/" + a.Name
	gone, stopped := next.Gone[key]
	delete(next.Gone, key)
	placed := &policy.Placed{Container: a.Container, Order: next.Next}
	switch {
	case was != nil:
		if resize != nil && resize.refused(&a.Container) {
			was = resize.was
		}
		placed.Placement, placed.Order = was.Placement, was.Order
		placed.Leaving = cpuset.Set{} // the runtime has told what became of a resize
	case r.ours && !a.Seen.CPUs.Empty():
		placed.Placement = e.policy.Guess(a.Container, a.Seen)
	case ended[key] != nil:
		placed.Placement, placed.Order = ended[key].Placement, ended[key].Order
		delete(ended, key)
	case stopped:
		placed.Placement = gone
	case !a.Seen.CPUs.Empty() && !a.KeepCPUs:
		placed.Placement = e.policy.Guess(a.Container, a.Seen)
	}
	return placed
}

// podsOf lists the pods of which places are remembered.
func podsOf(s policy.State) map[string]bool {
	pods := map[string]bool{}
	for key := range s.Gone {
		if at := strings.LastIndexByte(key, '/'); at >= 0 {
			pods[key[:at]] = true
		}
	}
	return pods
}
