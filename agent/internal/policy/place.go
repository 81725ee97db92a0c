package policy

import (
	"fmt"
	"strconv"
	"strings"

	"proxima.io/agent/internal/pool"
)

// Decision is what Place found.
type Decision struct {
	ID         string      `json:"id"`
	Place      Placement   `json:"place"`
	Pin        Pin         `json:"pin"`
	Changes    []Change    `json:"changes,omitempty"` // other containers whose CPUs change with it
	Reason     string      `json:"reason"`
	Candidates []Candidate `json:"candidates,omitempty"` // in order of id; empty where there was nothing to choose
}

// Place finds a place for a container that comes, comes back after a stop, or (under the same ID) is resized.
func (p *Policy) Place(s State, c Container) (State, Decision) {
	was := p.ledger(s, "")
	books := was
	if _, resized := s.Placed[c.ID]; resized {
		books = p.ledger(s, c.ID)
	}
	next, d := p.place(s, c, books, nil)
	is := p.ledger(next, "")
	d.Pin, d.Changes = p.pin(is, next.Placed[c.ID]), p.changes(s, next, was, is, c.ID)
	return next, d
}

// place does it with the books of the state without the container. was is where the container runs, if that
// is not in the state.
func (p *Policy) place(s State, c Container, books *ledger, was *Placement) (State, Decision) {
	next := s.clone()
	r := &request{policy: p, ledger: books, who: &c, demand: p.demand(&c)}
	key, order := goneKey(c.PodID, c.Name), s.Next
	if old, ok := s.Placed[c.ID]; ok {
		r.had, r.runs, order = &old.Placement, true, old.Order
	} else if was != nil {
		r.had, r.runs = was, true
		next.Next++
	} else {
		next.Next++
		if gone, ok := s.Gone[key]; ok {
			r.had = &gone
		}
		if old := s.predecessor(&c); old != nil {
			r.had = &old.Placement
			delete(next.Placed, old.ID)
			s = next // its CPUs are free for whoever replaces it
			r.ledger = p.ledger(s, c.ID)
		}
	}
	delete(next.Gone, key)
	for k, gone := range next.Gone {
		if !strings.HasPrefix(k, c.PodID+"/") {
			r.ledger.held = r.ledger.held.Union(gone.Exclusive).Union(gone.Idle)
		}
	}
	d := r.decide(s)
	d.ID = c.ID
	next.Placed[c.ID] = &Placed{Container: c, Placement: d.Place, Order: order}
	return next, d
}

// predecessor returns the placed container that this one replaces: kubelet restarts a container under a new
// id, and not every runtime tells of the old one's end in time.
func (s State) predecessor(c *Container) *Placed {
	for _, old := range s.Placed {
		if old.PodID == c.PodID && old.Name == c.Name && old.ID != c.ID {
			return old
		}
	}
	return nil
}

// decide tries the place that the container had, then every pool, then less than it is due.
func (r *request) decide(s State) Decision {
	if r.demand.kind == Unpinned {
		return r.unpinned()
	}
	if d, ok := r.asBefore(); ok {
		return d
	}
	if d, ok := r.near(); ok {
		return d
	}
	r.pulls = r.policy.pulls(s, r.who)
	d, ok := r.best()
	for due := r.demand; !ok; d, ok = r.best() {
		switch r.demand.kind {
		case Reserved:
			r.demand.kind = Shared // the system's containers outgrew the reserve; that is no fault of theirs
		case Exclusive, Mixed:
			r.demand = demand{kind: Shared, milli: r.who.Request}
		default:
			return r.leftovers(due, d)
		}
		r.demand.short = fmt.Sprintf("due %s CPUs, but no pool has room for them", due.kind)
	}
	return r.noted(d)
}

// unpinned leaves a container as it is. What somebody else has given it is off the books for others.
func (r *request) unpinned() Decision {
	p, c := r.policy, r.who
	d := Decision{Place: Placement{Pool: p.Tree.Top().Name, Kind: Unpinned}, Reason: "its annotations ask to be left alone"}
	if c.Given.Empty() {
		return d
	}
	d.Reason = "somebody else has pinned it"
	d.Place.Foreign = c.Given.CPUs
	d.Place.Own = c.QOS == Guaranteed && c.Request > 0 && 1000*c.Given.CPUs.Len() == c.Request
	if nodes := c.Given.Memory.Intersect(p.allMemory); !nodes.Empty() && p.heldWherever(r.ledger, nodes, c.Memory) {
		d.Place.Memory, d.Place.Bytes = nodes, c.Memory
	}
	return d
}

// asBefore gives back the place it had: the same pool, and of its CPUs all that it is still due.
func (r *request) asBefore() (Decision, bool) {
	if r.had == nil || r.had.Kind != r.demand.kind || r.had.Short != "" {
		return Decision{}, false
	}
	at := r.home()
	had := r.had.own()
	if at == nil || had.Meets(r.ledger.taken) {
		return Decision{}, false
	}
	c := r.consider(at)
	kept := c.place.own().Within(had) || had.Within(c.place.own())
	if !c.Fits || !kept {
		return Decision{}, false
	}
	return r.noted(Decision{Place: c.place, Reason: "it keeps its place in " + at.Name}), true
}

// home is the pool where the container was. CPUs come and go, and with them the pools that say something new:
// of one that is there no more, the smallest pool with what is left of its CPUs, else of its memory, takes
// the place.
func (r *request) home() *pool.Pool {
	p := r.policy
	if at := p.Tree.Named(r.had.Pool); at != nil {
		return at
	}
	if !r.runs {
		return nil
	}
	if rest := r.had.own().Intersect(p.Available); !rest.Empty() {
		return p.Tree.Smallest(rest)
	}
	var home *pool.Pool
	for i := range p.Tree.Pools {
		at := &p.Tree.Pools[i]
		if !r.had.Memory.Empty() && r.had.Memory.Within(at.Memory) && (home == nil || at.Depth > home.Depth) {
			home = at
		}
	}
	return home
}

// near finds the least movement for a container that runs and cannot stay as it is: it keeps what it still
// can have of its CPUs, and gets the others in its pool or in the smallest pool around that has them.
func (r *request) near() (Decision, bool) {
	if r.had == nil || !r.runs || r.had.Kind != r.demand.kind || r.had.Short != "" {
		return Decision{}, false
	}
	at := r.home()
	if at == nil {
		return Decision{}, false
	}
	stays := r.had.own().Intersect(r.policy.Available).Minus(r.policy.Options.Reserved).Minus(r.ledger.taken)
	found, ok := Decision{}, false
	r.policy.Tree.Ancestors(at.ID, func(a *pool.Pool) bool {
		c := r.consider(a)
		if ok = c.Fits && (stays.Within(c.place.own()) || c.place.own().Within(stays)); ok {
			found = r.noted(Decision{Place: c.place, Reason: "it moves as little as it can, to " + a.Name})
		}
		return !ok
	})
	return found, ok
}

func (r *request) best() (Decision, bool) {
	tree := r.policy.Tree
	candidates := make([]Candidate, len(tree.Pools))
	best := 0
	for i := range tree.Pools {
		candidates[i] = r.consider(&tree.Pools[i])
		if order, _ := better(&candidates[i], &candidates[best]); order < 0 {
			best = i
		}
	}
	d := Decision{Place: candidates[best].place, Candidates: candidates, Reason: reasonFor(candidates, best)}
	return d, candidates[best].Fits
}

// reasonFor names the rule that told the chosen pool from the strongest of the others.
func reasonFor(candidates []Candidate, best int) string {
	second := -1
	for i := range candidates {
		if i == best {
			continue
		}
		if second < 0 {
			second = i
		} else if order, _ := better(&candidates[i], &candidates[second]); order < 0 {
			second = i
		}
	}
	chosen := &candidates[best]
	if second < 0 {
		return chosen.Pool + " is the only pool"
	}
	_, why := better(chosen, &candidates[second])
	return fmt.Sprintf("%s before %s, because %s", chosen.Pool, candidates[second].Pool, why)
}

// leftovers is for a container that fits nowhere: it runs on the widest shared set and is promised what is
// left of it.
func (r *request) leftovers(due demand, d Decision) Decision {
	p, top := r.policy, r.policy.Tree.Top()
	if r.ledger.shared[top.ID].Empty() {
		d.Place = Placement{Pool: top.Name, Kind: Unpinned, Short: "there are no shared CPUs at all"}
		d.Reason = d.Place.Short
		return d
	}
	o := p.memoryOffer(r.ledger, top.ID, r.who, r.memory())
	d.Place = Placement{
		Pool: top.Name, Kind: Shared, Memory: o.nodes, Bytes: o.bytes, Milli: max(0, min(r.demand.milli, p.freeShared(r.ledger, top.ID))),
		Short: fmt.Sprintf("due %s %s CPUs, promised %s", thousandths(1000*due.full+due.milli), due.kind,
			thousandths(max(0, min(r.demand.milli, p.freeShared(r.ledger, top.ID))))),
	}
	d.Reason = "no pool has enough: " + d.Place.Short
	return d
}

func (r *request) noted(d Decision) Decision {
	if r.demand.note != "" {
		d.Reason += "; " + r.demand.note
	}
	if r.demand.short != "" {
		d.Place.Short = r.demand.short
		d.Reason += "; " + r.demand.short
	}
	if r.who.RequireIsolated && !d.Place.Exclusive.Empty() && !d.Place.Exclusive.Within(r.policy.isolated) {
		d.Place.Short = "requires isolated CPUs, and none are free"
		d.Reason += "; " + d.Place.Short
	}
	return d
}

// thousandths writes 1500 as 1.5.
func thousandths(milli int) string { return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64) }

// Explain returns the decision that would be made for a container, with every pool that would be considered.
func (p *Policy) Explain(s State, c Container) Decision {
	r := &request{policy: p, ledger: p.ledger(s, c.ID), who: &c, demand: p.demand(&c), pulls: p.pulls(s, &c)}
	d, _ := r.best()
	return r.noted(d)
}

// Room is what is left in a pool.
type Room struct {
	Exclusive int   // CPUs that could become exclusive
	Milli     int   // thousandths of shared CPUs
	Bytes     int64 // of memory
}

// Room returns what is left in each pool, by its id.
func (p *Policy) Room(s State) []Room {
	l := p.ledger(s, "")
	rooms := make([]Room, len(p.Tree.Pools))
	for i := range rooms {
		at := &p.Tree.Pools[i]
		rooms[i] = Room{Exclusive: min(l.removable[i], l.shared[i].Minus(l.foreign).Len()), Milli: max(0, p.freeShared(l, i)), Bytes: max(0, p.left(l, at.Memory))}
		p.Tree.Ancestors(i, func(a *pool.Pool) bool {
			rooms[i].Exclusive = min(rooms[i].Exclusive, l.removable[a.ID])
			return true
		})
	}
	return rooms
}
