package policy

import "strings"

// Release takes a stopped container off the books; its place is remembered until its pod goes. Whoever got
// less than he was due is tried again with what became free.
func (p *Policy) Release(s State, id string) (State, []Change) {
	old, ok := s.Placed[id]
	if !ok {
		return s, nil
	}
	next := s.clone()
	delete(next.Placed, id)
	if len(next.Gone) < maxGone && old.Short == "" && old.Kind != Unpinned {
		next.Gone[goneKey(old.PodID, old.Name)] = old.Placement
	}
	next = p.retry(next)
	return next, p.changes(s, next, p.ledger(s, ""), p.ledger(next, ""), "")
}

// maxGone bounds what is remembered, should a runtime never tell that pods go.
const maxGone = 4096

// ForgetPod drops what is remembered of a pod that is gone.
func (p *Policy) ForgetPod(s State, podID string) State {
	next := s.clone()
	for key := range next.Gone {
		if strings.HasPrefix(key, podID+"/") {
			delete(next.Gone, key)
		}
	}
	return next
}

// ForgetGone drops one place that is remembered of a stopped container.
func (p *Policy) ForgetGone(s State, key string) State {
	next := s.clone()
	delete(next.Gone, key)
	return next
}

// retry places those again who got less than they were due, first come first served; a place that is no
// better is not worth the move.
func (p *Policy) retry(s State) State {
	books := p.ledger(s, "")
	for _, c := range s.InOrder() {
		if c.Short == "" || p.hopeless(books, c) {
			continue
		}
		if next, d := p.place(s, c.Container, p.ledger(s, c.ID), nil); d.Place.Short == "" {
			s = next
			books = p.ledger(s, "")
		}
	}
	return s
}

// hopeless tells by the books of the whole machine that a container cannot get all it is due. It saves
// looking at every pool for each of hundreds, at every stop, on a node that is over-promised; what it lets
// through may still fit nowhere.
func (p *Policy) hopeless(l *ledger, c *Placed) bool {
	d, top := p.demand(&c.Container), p.Tree.Top()
	own := c.Exclusive.Union(c.Idle).Union(c.Leaving).Len() // what it would give back first, and here what it is promised
	shared, reserved := c.Milli, 0
	if c.Kind == Reserved {
		shared, reserved = 0, c.Milli
	}
	isolated := p.isolated.Minus(l.taken).Union(p.isolated.Intersect(c.Exclusive)).Len()
	switch {
	case c.Container.Memory > p.left(l, p.allMemory)+c.Bytes, c.RequireIsolated && isolated < d.full:
		return true
	case d.kind == Shared:
		return p.freeShared(l, top.ID)+shared+1000*own < d.milli
	case d.kind == Reserved:
		return p.freeReserved(l, top.ID)+reserved < d.milli
	}
	return l.removable[top.ID]+own+(shared+999)/1000+isolated < d.full
}
