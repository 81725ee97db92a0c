package policy

import (
	"cmp"
	"slices"
	"strings"

	"proxima.io/agent/internal/annotation"
	"proxima.io/agent/internal/cpuset"
)

// Reconcile carries a state over to this policy: after new options, or after the agent was away and the
// machine changed. Everybody whose place is still a valid one keeps it, be it less than he is due; the others
// are placed again in their order of arrival.
func (p *Policy) Reconcile(s State) State {
	s = s.sane()
	next := State{Next: s.Next}.clone()
	var homeless []*Placed
	inOrder := s.InOrder()
	for _, own := range []bool{true, false} { // CPUs of one's own first: where some have gone, who shares can share with more
		for _, c := range inOrder {
			if own == c.Exclusive.Empty() {
				continue
			}
			if adopted, ok := p.adopt(next, c); ok {
				next = adopted
			} else {
				homeless = append(homeless, c)
			}
		}
	}
	slices.SortStableFunc(homeless, func(a, b *Placed) int { return cmp.Compare(a.Order, b.Order) })
	for _, c := range homeless {
		next = p.anew(next, c)
	}
	next = p.retry(next)
	for key, gone := range s.Gone {
		if len(next.Gone) < maxGone && p.Tree.Named(gone.Pool) != nil && gone.Exclusive.Within(p.Available) {
			next.Gone[key] = gone
		}
	}
	return next
}

// anew places a container again, in its old order.
func (p *Policy) anew(s State, c *Placed) State {
	next, _ := p.place(s, c.Container, p.ledger(s, c.ID), &c.Placement)
	moved := *next.Placed[c.ID]
	moved.Order = c.Order
	next.Placed[c.ID], next.Next = &moved, s.Next
	return next
}

// adopt puts a container exactly where it is, if this policy could have put it there.
func (p *Policy) adopt(s State, c *Placed) (State, bool) {
	had := c.Placement
	r := &request{policy: p, ledger: p.ledger(s, c.ID), who: &c.Container, demand: p.demand(&c.Container), had: &had, runs: true}
	if c.Short != "" && r.demand.kind != Unpinned { // what it has, not what it is due
		r.demand = demand{kind: c.Kind, full: c.own().Len(), milli: c.Milli, isolated: r.demand.isolated, short: c.Short}
		had.Short = ""
	}
	// Isolated CPUs that are not on the books yet are others', and who wishes for some does not move for
	// them.
	r.demand.isolated = r.demand.isolated && c.Exclusive.Meets(p.isolated)
	if r.demand.kind == Unpinned && c.Kind == Unpinned {
		place := r.unpinned().Place
		place.Short = r.demand.short
		next := s.clone()
		next.Placed[c.ID] = &Placed{Container: c.Container, Placement: place, Order: c.Order}
		return next, true
	}
	nothing := (c.Kind == Exclusive || c.Kind == Mixed) && c.Exclusive.Empty()
	if nothing || c.Exclusive.Meets(p.Options.Reserved) {
		return s, false
	}
	d, ok := r.asBefore()
	if !ok || !d.Place.Exclusive.Equal(c.Exclusive) {
		return s, false
	}
	d.Place.Leaving = c.Leaving.Intersect(p.Available).Minus(d.Place.Exclusive).Minus(d.Place.Idle).Minus(p.Options.Reserved)
	next := s.clone()
	next.Placed[c.ID] = &Placed{Container: c.Container, Placement: d.Place, Order: c.Order}
	if !d.Place.Leaving.Empty() && (d.Place.Leaving.Meets(r.ledger.taken) || !p.sound(p.ledger(next, ""))) {
		d.Place.Leaving = cpuset.Set{}
		next.Placed[c.ID] = &Placed{Container: c.Container, Placement: d.Place, Order: c.Order}
	}
	return next, true
}

// Guess reads a container's place off the CPUs that it is seen to have, for when nothing else is known of it.
// Whether the guess could be right is for Reconcile to find out.
func (p *Policy) Guess(c Container, seen Pin) Placement {
	d := p.demand(&c)
	place := Placement{Pool: p.Tree.Smallest(seen.CPUs).Name, Kind: d.kind, Memory: seen.Memory}
	if d.kind == Exclusive && seen.CPUs.Len() == d.full {
		place.Exclusive = seen.CPUs
	}
	return place
}

// Bounds of what a container can ask for, so that sums of them cannot overflow.
const (
	mostMilli = 1000 * (cpuset.MaxID + 1)
	mostBytes = 1 << 60 / 4096
	mostOrder = 1 << 40
)

// sane is the state without what no runtime and no policy can have written: a state comes out of a file.
// Whether the places in it are possible ones is for adopt to find out.
func (s State) sane() State {
	next := State{Next: min(max(0, s.Next), mostOrder)}.clone()
	for id, c := range s.Placed {
		if c == nil || c.ID != id {
			continue
		}
		fixed := *c
		fixed.Request, fixed.Limit = bound(c.Request, mostMilli), bound(c.Limit, mostMilli)
		fixed.Container.Memory = bound(c.Container.Memory, mostBytes)
		fixed.Milli, fixed.Bytes, fixed.Order = bound(c.Milli, mostMilli), bound(c.Bytes, mostBytes), bound(c.Order, mostOrder)
		fixed.Affinities = sensible(c.Affinities)
		next.Placed[id] = &fixed
		next.Next = max(next.Next, fixed.Order+1)
	}
	for key, gone := range s.Gone {
		if strings.Contains(key, "/") {
			next.Gone[key] = gone
		}
	}
	return next
}

func bound[N int | int64](n, most N) N { return min(max(0, n), most) }

// sensible leaves out affinities that no annotation can have said.
func sensible(list []annotation.Affinity) []annotation.Affinity {
	var kept []annotation.Affinity
	for i := range list {
		if list[i].Check() == nil {
			kept = append(kept, list[i])
		}
	}
	return kept
}
