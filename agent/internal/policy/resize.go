package policy

import (
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/pool"
)

// Resize places a container whose resources change. The CPUs that it no longer has are given to nobody until
// Settle: the runtime may refuse, and then the container still runs on them.
func (p *Policy) Resize(s State, c Container) (State, Decision) {
	old, ok := s.Placed[c.ID]
	if !ok {
		return p.Place(s, c)
	}
	next, d := p.place(s, c, p.ledger(s, c.ID), nil)
	d.Place.Leaving = old.Exclusive.Union(old.Idle).Union(old.Leaving).Minus(d.Place.Exclusive).Minus(d.Place.Idle)
	next.Placed[c.ID] = &Placed{Container: c, Placement: d.Place, Order: old.Order}
	was, is := p.ledger(s, ""), p.ledger(next, "")
	if !p.sound(is) { // it moved, and there is no room for both places
		d.Place.Leaving = cpuset.Set{}
		next.Placed[c.ID] = &Placed{Container: c, Placement: d.Place, Order: old.Order}
		is = p.ledger(next, "")
	}
	d.Pin, d.Changes = p.pin(is, next.Placed[c.ID]), p.changes(s, next, was, is, c.ID)
	return next, d
}

// sound tells whether no shared set is empty that must not be, or worth less than is promised.
func (p *Policy) sound(l *ledger) bool {
	for i := range l.shared {
		needed := l.sharers[i] > 0 || p.Tree.Pools[i].Level <= pool.Node && !p.sharable[i].Empty()
		if needed && l.shared[i].Empty() || 1000*l.shared[i].Len() < l.promised[i] {
			return false
		}
	}
	return true
}

// Settle ends a resize that the runtime has taken: what the container had is given back.
func (p *Policy) Settle(s State, id string) State {
	old, ok := s.Placed[id]
	if !ok {
		return s
	}
	settled := *old
	settled.Leaving = cpuset.Set{}
	next := s.clone()
	next.Placed[id] = &settled
	return p.retry(next)
}

// Undo ends a resize that the runtime has refused: the container is what it was, where it was.
func (p *Policy) Undo(s State, was *Placed) State {
	back, ok := p.adopt(s, was)
	if !ok { // others have come to its shared CPUs or memory, or the options are new
		back = p.anew(s, was)
	}
	return p.retry(back)
}
