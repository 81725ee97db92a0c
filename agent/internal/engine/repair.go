package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"proxima.io/agent/internal/policy"
)

// Times of the repair. Who has no place, or was not told, waits for less than 10 s, unless the runtime refuses again and again.
const (
	retryAfter = 2 * time.Second
	retryLast  = 8 * time.Second
	refuseLast = 5 * time.Minute // a container that is refused is tried less and less often, up to this; others do not wait for it
	batch      = 50              // updates in one call, so that a call stays well below a runtime's time-out
	// comeBack is how long a stopped container's place is remembered. Kubelet starts it again within five minutes; that its
	// pod has gone is not always told (containerd 1.7 does not, of pods that are older than itself).
	comeBack = 15 * time.Minute
)

// tell returns what the runtime has to be told about containers other than one with the answer to a call, and notes it as
// told. The lock is held.
func (e *Engine) tell(except string) []policy.Change {
	if !e.inline {
		return nil
	}
	changes := e.pending(except)
	for _, c := range changes {
		e.told[c.ID] = c.Pin
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
		told, known := e.told[id]
		if id == except || !known {
			continue // one that is not known to the runtime yet comes with its own answer
		}
		if e.released && e.theirs[id] {
			continue
		}
		want := e.freed(pin, told)
		if _, foreign := e.foreign[id]; !foreign && !want.Equal(told) {
			changes = append(changes, policy.Change{ID: id, Pin: want})
		}
	}
	slices.SortFunc(changes, func(a, b policy.Change) int { return cmp.Compare(a.ID, b.ID) })
	return changes
}

// freed turns "not pinned any more" into everything that others leave: to a runtime an empty set means no change.
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
		for _, look := range []func(time.Time) (time.Duration, bool){e.forgetGone, e.sayMissing, e.doubtResizes} {
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

// placeUnplaced tries those again whom a fault inside kept from a decision, and returns whether all of them have a place.
func (e *Engine) placeUnplaced() bool {
	e.mu.Lock()
	waiting := slices.SortedFunc(maps.Values(e.unplaced), func(a, b policy.Container) int { return cmp.Compare(a.ID, b.ID) })
	e.mu.Unlock()
	done := true
	for _, c := range waiting {
		done = e.protect("repair", &c, func() {
			if _, still := e.unplaced[c.ID]; !still {
				return // it has gone, or has its id, since
			}
			e.state, _ = e.policy.Place(e.state, c)
			delete(e.unplaced, c.ID)
			e.version++
		}) && done
	}
	return done
}

// refusal is a pin that the runtime did not take, and when it is told again.
type refusal struct {
	pin   policy.Pin
	delay time.Duration
	next  time.Time
}

// repair tells the runtime what is pending, in batches, and returns after how long it is to be called again; 0 is never.
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
			if err != nil || slices.Contains(refused, c.ID) {
				r := refusal{pin: c.Pin, delay: retryAfter}
				if before, ok := e.refused[c.ID]; ok && before.pin.Equal(c.Pin) {
					r.delay = min(2*before.delay, refuseLast)
				}
				r.next = now.Add(r.delay)
				e.refused[c.ID] = r
				again = min(cmp.Or(again, r.delay), r.delay)
				continue
			}
			delete(e.refused, c.ID)
			if _, still := e.state.Placed[c.ID]; still {
				e.told[c.ID] = c.Pin
			}
			e.counters.Repaired++
		}
		e.mu.Unlock()
		if err != nil {
			return again // there is no runtime for the rest either, and the repair is called when there is
		}
	}
	return again
}

// due returns what the runtime is to be told now, and after how long the first of those that it has refused is due. The lock is
// held.
func (e *Engine) due(now time.Time) (due []policy.Change, again time.Duration, updater Updater) {
	if e.updater == nil {
		return nil, 0, nil // a runtime that comes back asks for everything anyway
	}
	refused := map[string]refusal{}
	for _, c := range e.pending("") {
		r, ok := e.refused[c.ID]
		wait := r.next.Sub(now)
		if !ok || !r.pin.Equal(c.Pin) || wait <= 0 {
			due, wait = append(due, c), 0
		}
		if ok {
			refused[c.ID] = r
		}
		if wait > 0 {
			again = min(cmp.Or(again, wait), wait)
		}
	}
	e.refused = refused // without those that are as they should be
	return due, again, e.updater
}

// persist saves the state if it is another than the last one that was saved.
func (e *Engine) persist(saved *int) bool {
	e.mu.Lock()
	s, version := e.state, e.version
	e.mu.Unlock()
	if e.save == nil || version == *saved {
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
	s := e.state
	e.mu.Unlock()
	if e.save == nil {
		return nil
	}
	return e.save(s)
}
