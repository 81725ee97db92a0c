package engine

import (
	"cmp"
	"time"

	"proxima.io/agent/internal/policy"
)

// settled is how long runtime and kernel are given before their word is compared with what they were told.
const settled = 300 * time.Millisecond

// turn is how long a runtime may take over one container on a busy node; most take a tenth of it, one
// container after the other.
const turn = 500 * time.Millisecond

// examine lets a container's cpuset be compared with what the runtime was told, in a moment. The lock is
// held.
func (e *Engine) examine(r *record) {
	if e.effective == nil || len(r.cgroup) == 0 {
		return
	}
	r.audit, e.auditAt = true, time.Now().Add(settled)
}

// examineAll is examine for everybody. The lock is held.
func (e *Engine) examineAll() {
	for _, r := range e.records {
		e.examine(r)
	}
}

// auditNow compares what the kernel lets containers use with what the runtime was told, and tells when it has
// to look again. The two differ where CPUs went offline, or somebody else has written into a cgroup. What is
// still lost a little later is said, and told again, after longer and longer.
func (e *Engine) auditNow(now time.Time) (next time.Duration, any bool) {
	e.mu.Lock()
	if e.auditAt.IsZero() {
		e.mu.Unlock()
		return 0, false
	}
	if wait := e.auditAt.Sub(now); wait > 0 {
		e.mu.Unlock()
		return wait, true
	}
	e.auditAt = time.Time{}
	type question struct {
		cgroup []string
		told   policy.Pin
	}
	questions := map[string]question{}
	for id, r := range e.records {
		if r.audit && r.known && r.ours && e.passive == "" && r.resize == nil && r.foreign == "" && !r.told.Empty() {
			questions[id] = question{r.cgroup, r.told}
		}
		r.audit = false
	}
	e.mu.Unlock()
	answers := map[string]policy.Pin{}
	var unseen []string
	for id, q := range questions {
		if has, err := e.effective(q.cgroup); err == nil {
			answers[id] = has
		} else {
			unseen = append(unseen, id) // it has not begun yet, or has ended
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	progress, waiting := false, 0 // a container has what was told only now; so many still have not
	for id, has := range answers {
		r := e.records[id]
		if r != nil {
			r.unseen = time.Time{}
		}
		if r == nil || !r.told.Equal(questions[id].told) {
			delete(answers, id) // changed meanwhile: it is examined again
		} else if !e.follows(r, has) {
			waiting++
		} else if r.doubt != nil {
			progress = true
		}
	}
	grace := retryAfter + time.Duration(waiting)*turn
	for id, has := range answers {
		if wait := e.compare(id, e.records[id], has, now, grace, progress); wait > 0 {
			next = min(cmp.Or(next, wait), wait)
		}
	}
	for _, id := range unseen {
		if wait := e.awaitStart(e.records[id], now); wait > 0 {
			next = min(cmp.Or(next, wait), wait)
		}
	}
	if next > 0 {
		e.auditAt = now.Add(next)
	}
	return next, next > 0
}

// awaitStart returns after how long to look again for a container that the kernel does not have; 0 is not. A
// runtime that is told of a container which it is still creating may lose the word: only after its start is
// there something to compare. The lock is held.
func (e *Engine) awaitStart(r *record, now time.Time) time.Duration {
	if r == nil {
		return 0
	}
	if r.unseen.IsZero() {
		r.unseen = now
	}
	waited := now.Sub(r.unseen)
	if waited >= refuseLast {
		return 0
	}
	r.audit = true
	return max(retryAfter, waited)
}

// follows tells whether the kernel gives a container what the runtime was told. The lock is held.
func (e *Engine) follows(r *record, has policy.Pin) bool {
	want := e.asOnline(r.told)
	return (want.CPUs.Empty() || has.CPUs.Equal(want.CPUs)) && (want.Memory.Empty() || has.Memory.Empty() || has.Memory.Equal(want.Memory))
}

// compare notes what the kernel says of a container, and returns after how long it is to be asked again; 0 is
// not. A container is doubted after the grace; it begins anew while the runtime makes progress. The lock is
// held.
func (e *Engine) compare(id string, r *record, has policy.Pin, now time.Time, grace time.Duration, progress bool) time.Duration {
	want := e.asOnline(r.told)
	if e.follows(r, has) {
		if r.lost != "" {
			e.log.Info("has what it was told again", "container", e.nameOf(id), "cpuset", has)
		}
		r.lost, r.doubt = "", nil
		return 0
	}
	if r.doubt == nil || !r.doubt.pin.Equal(want) {
		r.doubt = &refusal{pin: want, delay: retryAfter, next: now.Add(grace)}
	}
	if next := now.Add(grace); progress && r.doubt.next.Before(next) {
		r.doubt.next = next
	}
	if wait := r.doubt.next.Sub(now); wait > 0 {
		r.audit = true
		return wait
	}
	lost := "the kernel gives it " + has.String() + ", not " + want.String()
	if has.CPUs.Empty() {
		lost = "its processes have left its cpuset, which had lost all its CPUs; restart it"
	}
	if lost != r.lost {
		r.lost = lost
		e.counters.Lost++
		e.log.Error("a container does not have the CPUs that it was given", "container", e.nameOf(id), "because", lost,
			"remedy", "CPUs went offline, or somebody else writes into its cgroup; it is told again")
	}
	r.doubt.next, r.doubt.delay = now.Add(r.doubt.delay), min(2*r.doubt.delay, refuseLast)
	r.told = policy.Pin{} // so that the repair tells it, and it is examined again
	e.wake()
	return 0
}

func (e *Engine) nameOf(id string) string {
	if c := e.state.Placed[id]; c != nil {
		return c.Namespace + "/" + c.PodName + "/" + c.Name
	}
	return id
}
