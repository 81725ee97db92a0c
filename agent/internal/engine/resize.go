package engine

import (
	"cmp"
	"time"

	"proxima.io/agent/internal/policy"
)

// answerWithin is how long a runtime may take over a resize. NRI tells when one is taken and not when it is
// refused: after this the runtime is asked what the container has.
const answerWithin = 10 * time.Second

// resize is a container as it was before a resize that the runtime has yet to take.
type resize struct {
	was   *policy.Placed
	since time.Time
	asked bool // the runtime, what has become of it
}

// refused tells by what a container has that the runtime did not take the resize.
func (r *resize) refused(has *policy.Container) bool {
	return r.was.Request == has.Request && r.was.Limit == has.Limit && r.was.Container.Memory == has.Memory
}

// Resize places a container whose resources change. Resized is to be called when the runtime has taken or
// refused it.
func (e *Engine) Resize(id string, fill func(*policy.Container)) (pin policy.Pin, changes []policy.Change) {
	c := policy.Container{}
	e.guard("resize", &c, func() {
		e.look()
		old, ok := e.state.Placed[id]
		if !ok {
			return
		}
		c = old.Container
		fill(&c)
		record := e.record(id)
		r := &resize{was: old, since: time.Now()}
		if before := record.resize; before != nil { // one that was never ended: the runtime still has what was before it
			r.was = before.was
		}
		record.resize = r
		pin, changes = e.place(e.policy.Resize(e.state, c))
	})
	return pin, changes
}

// Resized ends a resize. Only now do others get what the container gave up, or it gets back what it was if
// the runtime has refused; the repair tells them.
func (e *Engine) Resized(id string, taken bool) {
	e.guard("resized", nil, func() {
		if e.state.Placed[id] == nil {
			return
		}
		record := e.record(id)
		r := record.resize
		record.resize = nil
		switch {
		case r == nil: // it began before the runtime told what is running, and may be newer than that
			e.unsure(id)
		case taken:
			e.state = e.policy.Settle(e.state, id)
		default:
			record.unplaced = nil
			e.state = e.policy.Undo(e.state, r.was)
			e.unsure(id) // it may have taken a part
		}
	})
}

// unsure notes that it is not known what the runtime has set for a container: the repair tells or asks it.
// The lock is held.
func (e *Engine) unsure(id string) {
	if e.passive == "" {
		e.record(id).told = policy.Pin{}
	}
}

// doubtResizes lets the runtime be asked about resizes that it has not taken in time, and tells when it has
// to look again.
func (e *Engine) doubtResizes(now time.Time) (next time.Duration, any bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, record := range e.records {
		r := record.resize
		if r == nil || r.asked {
			continue
		}
		if wait := r.since.Add(answerWithin).Sub(now); wait > 0 {
			next, any = min(cmp.Or(next, wait), wait), true
			continue
		}
		r.asked = true
		e.unsure(id)
	}
	return next, any
}
