package policy

// Reconcile carries a state over to this policy: after new options, or after the agent was away and the machine changed.
// Everybody whose place is still a valid one keeps it, be it less than he is due; the others are placed again in their order
// of arrival.
func (p *Policy) Reconcile(s State) State {
	next := State{Next: s.Next}.clone()
	var homeless []*Placed
	for _, c := range s.InOrder() {
		if adopted, ok := p.adopt(next, c); ok {
			next = adopted
		} else {
			homeless = append(homeless, c)
		}
	}
	for _, c := range homeless {
		next = p.anew(next, c)
	}
	next = p.retry(next)
	for key, gone := range s.Gone {
		if p.Tree.Named(gone.Pool) != nil && gone.Exclusive.Within(p.Available) {
			next.Gone[key] = gone
		}
	}
	return next
}

// anew places a container again, in its old order.
func (p *Policy) anew(s State, c *Placed) State {
	next, _ := p.place(s, c.Container, p.ledger(s, c.ID))
	moved := *next.Placed[c.ID]
	moved.Order = c.Order
	next.Placed[c.ID], next.Next = &moved, s.Next
	return next
}

// adopt puts a container exactly where it is, if this policy could have put it there.
func (p *Policy) adopt(s State, c *Placed) (State, bool) {
	had := c.Placement
	r := &request{policy: p, ledger: p.ledger(s, c.ID), who: &c.Container, demand: p.demand(&c.Container), had: &had}
	if c.Short != "" && r.demand.kind != Unpinned { // what it has, not what it is due
		r.demand = demand{kind: c.Kind, full: c.Exclusive.Len(), milli: c.Milli, isolated: r.demand.isolated, short: c.Short}
		had.Short = ""
	}
	// Isolated CPUs that are not on the books yet are others', and who wishes for some does not move for them.
	r.demand.isolated = r.demand.isolated && c.Exclusive.Meets(p.isolated)
	if r.demand.kind == Unpinned && c.Kind == Unpinned {
		next := s.clone()
		next.Placed[c.ID] = c
		return next, true
	}
	if c.Exclusive.Meets(p.Options.Reserved) {
		return s, false
	}
	d, ok := r.asBefore()
	if !ok || !d.Place.Exclusive.Equal(c.Exclusive) {
		return s, false
	}
	next := s.clone()
	next.Placed[c.ID] = &Placed{Container: c.Container, Placement: d.Place, Order: c.Order}
	return next, true
}

// Guess reads a container's place off the CPUs that it is seen to have, for when nothing else is known of it. Whether the
// guess could be right is for Reconcile to find out.
func (p *Policy) Guess(c Container, seen Pin) Placement {
	d := p.demand(&c)
	place := Placement{Pool: p.Tree.Smallest(seen.CPUs).Name, Kind: d.kind, Memory: seen.Memory}
	if d.kind == Exclusive && seen.CPUs.Len() == d.full {
		place.Exclusive = seen.CPUs
	}
	return place
}
