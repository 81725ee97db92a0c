package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/state"
)

// Times of the repair. Who has no place, or was not told, waits for less than 10 s, unless the runtime
// refuses again and again.
const (
	retryAfter = 2 * time.Second
	retryLast  = 8 * time.Second
	refuseLast = 5 * time.Minute // a container that is refused is tried less and less often, up to this; others do not wait for it
	batch      = 50              // updates in one call, so that a call stays well below a runtime's time-out
	// comeBack is how long a stopped container's place is remembered. Kubelet starts it again within five
	// minutes; that its pod has gone is not always told (containerd 1.7 does not, of pods that are older than
	// itself).
	comeBack = 15 * time.Minute
)

// tell returns what the runtime has to be told about containers other than one with the answer to a call, and
// notes it as told. The lock is held.
func (e *Engine) tell(except string) []policy.Change {
	if !e.inline {
		return nil
	}
	changes := e.pending(except)
	for _, c := range changes {
		e.tellOne(c.ID, c.Pin)
	}
	return changes
}

// pending compares what containers should have with what the runtime was told. The lock is held.
func (e *Engine) pending(except string) []policy.Change {
	if e.passive != "" {
		return nil
	}
	var changes []policy.Change
	for id, pin := range e.policy.Pins(e.state) {
		r := e.records[id]
		if id == except || r == nil || !r.known || r.foreign != "" || (e.released && r.theirs) {
			continue
		}
		if want := e.freed(pin, r.told); !want.Equal(e.asOnline(r.told)) {
			changes = append(changes, policy.Change{ID: id, Pin: want})
		}
	}
	slices.SortFunc(changes, func(a, b policy.Change) int { return cmp.Compare(a.ID, b.ID) })
	return changes
}

// freed turns "not pinned any more" into everything that others leave: to a runtime an empty set means no
// change.
func (e *Engine) freed(pin, told policy.Pin) policy.Pin {
	if pin.CPUs.Empty() && !told.CPUs.Empty() {
		pin.CPUs = e.machine.Online
		if left, any := e.left(); any && left.Meets(pin.CPUs) {
			pin.CPUs = pin.CPUs.Intersect(left)
		}
	}
	if pin.Memory.Empty() && !told.Memory.Empty() {
		pin.Memory = e.machine.MemoryNodes()
	}
	return pin
}

// Attach gives the engine a way to reach the runtime, or takes it away (nil).
func (e *Engine) Attach(u Updater) {
	e.mu.Lock()
	e.updater = u
	e.mu.Unlock()
	e.wake()
}

// Run repairs and saves until the context ends. It sleeps while nothing happens.
func (e *Engine) Run(ctx context.Context) {
	var again, expiry <-chan time.Time
	saved, delay := -1, retryAfter
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.kick:
		case <-again:
		case <-expiry:
		}
		again, expiry = nil, nil
		next := time.Duration(0)
		for _, look := range []func(time.Time) (time.Duration, bool){e.forgetGone, e.sayMissing, e.doubtResizes, e.auditNow} {
			if wait, any := look(time.Now()); any {
				next = min(cmp.Or(next, wait), wait)
			}
		}
		if next > 0 {
			expiry = time.After(next)
		}
		placed, refused, kept := e.placeUnplaced(), e.repair(ctx, time.Now()), e.persist(&saved)
		if placed && kept {
			delay = retryAfter
		} else {
			refused = min(cmp.Or(refused, delay), delay)
			delay = min(2*delay, retryLast)
		}
		if refused > 0 {
			again = time.After(refused)
		}
		e.changes.tell() // what the runtime has taken meanwhile
	}
}

// forgetGone forgets the places of those who have not come back in time, and tells when it has to look again.
func (e *Engine) forgetGone(now time.Time) (next time.Duration, any bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	since := map[string]time.Time{}
	next = comeBack
	for key := range e.state.Gone {
		when, known := e.goneSince[key]
		if !known {
			when = now
		}
		if left := when.Add(comeBack).Sub(now); left > 0 {
			since[key], next = when, min(next, left)
		} else {
			e.state = e.policy.ForgetGone(e.state, key)
			e.version++
		}
	}
	e.goneSince = since
	return next, len(since) > 0
}

// placeUnplaced tries those again whom a fault inside kept from a decision, and returns whether all of them
// have a place.
func (e *Engine) placeUnplaced() bool {
	e.mu.Lock()
	waiting := e.unplaced()
	e.mu.Unlock()
	done := true
	for _, c := range waiting {
		done = e.protect("repair", &c, func() {
			r := e.records[c.ID]
			if r == nil || r.unplaced == nil {
				return // it has gone, or has its id, since
			}
			e.state, _ = e.policy.Place(e.state, c)
			r.unplaced = nil
			e.version++
		}) && done
	}
	return done
}

// unplaced lists the containers that a fault inside kept from a decision. The lock is held.
func (e *Engine) unplaced() []policy.Container {
	var waiting []policy.Container
	for _, r := range e.records {
		if r.unplaced != nil {
			waiting = append(waiting, *r.unplaced)
		}
	}
	slices.SortFunc(waiting, func(a, b policy.Container) int { return cmp.Compare(a.ID, b.ID) })
	return waiting
}

// repair tells the runtime what is pending, in batches, and returns after how long it is to be called again;
// 0 is never.
func (e *Engine) repair(ctx context.Context, now time.Time) (again time.Duration) {
	var due []policy.Change
	var updater Updater
	if !e.protect("repair", nil, func() { due, again, updater = e.due(now) }) {
		return retryAfter
	}
	for part := range slices.Chunk(due, batch) {
		refused, err := updater.Update(ctx, part)
		if err != nil {
			e.log.Warn("the runtime did not take an update; trying again", "containers", len(part), "error", err)
		}
		e.mu.Lock()
		for _, c := range part {
			record := e.records[c.ID]
			if record == nil {
				continue // it has gone meanwhile
			}
			if err != nil || slices.Contains(refused, c.ID) {
				r := &refusal{pin: c.Pin, delay: retryAfter}
				if before := record.refusal; before != nil && before.pin.Equal(c.Pin) {
					r.delay = min(2*before.delay, refuseLast)
				}
				r.next = now.Add(r.delay)
				record.refusal = r
				again = min(cmp.Or(again, r.delay), r.delay)
				continue
			}
			record.refusal = nil
			e.tellOne(c.ID, c.Pin)
			e.counters.Repaired++
			e.version++
		}
		e.mu.Unlock()
		if err != nil {
			return again // there is no runtime for the rest either, and the repair is called when there is
		}
	}
	return again
}

// due returns what the runtime is to be told now, and after how long the first of those that it has refused
// is due. The lock is held.
func (e *Engine) due(now time.Time) (due []policy.Change, again time.Duration, updater Updater) {
	if e.updater == nil {
		return nil, 0, nil // a runtime that comes back asks for everything anyway
	}
	pending := e.pending("")
	refused := map[string]bool{}
	for _, c := range pending {
		r := e.records[c.ID].refusal
		if r == nil || !r.pin.Equal(c.Pin) || !r.next.After(now) {
			due = append(due, c)
		} else {
			wait := r.next.Sub(now)
			again = min(cmp.Or(again, wait), wait)
		}
		refused[c.ID] = true
	}
	for id, r := range e.records {
		if !refused[id] {
			r.refusal = nil // it is as it should be
		}
	}
	return due, again, e.updater
}

// persist saves the state if it is another than the last one that was saved.
func (e *Engine) persist(saved *int) bool {
	if e.save == nil {
		return true
	}
	e.mu.Lock()
	version := e.version
	var s state.Saved
	if version != *saved {
		s = e.saved()
	}
	e.mu.Unlock()
	if version == *saved {
		return true
	}
	if err := e.save(s); err != nil {
		e.log.Warn("the state could not be saved; trying again", "error", err)
		return false
	}
	*saved = version
	return true
}

// Save saves the state now; for the moment before the process ends.
func (e *Engine) Save() error {
	e.mu.Lock()
	s := e.saved()
	e.mu.Unlock()
	if e.save == nil {
		return nil
	}
	return e.save(s)
}

// saved is what is to be known after a restart. The lock is held.
func (e *Engine) saved() state.Saved {
	s := state.Saved{State: e.state, Told: map[string]policy.Pin{}, Available: e.policy.Available, Reserved: e.policy.Reserved}
	for id, r := range e.records {
		if r.ours {
			s.Told[id] = r.told
		}
	}
	return s
}
