package policy

import (
	"cmp"
	"maps"
	"slices"

	"proxima.io/agent/internal/cpuset"
)

// Placement is where a container sits, and what it was promised there.
type Placement struct {
	Pool      string     `json:"pool"`
	Kind      Kind       `json:"kind"`
	Exclusive cpuset.Set `json:"exclusive,omitzero"` // its own CPUs
	Idle      cpuset.Set `json:"idle,omitzero"`      // siblings of its own CPUs, kept free of everybody
	// Leaving are CPUs that it had to itself before a resize which the runtime has yet to take; nobody else
	// gets them until then.
	Leaving cpuset.Set `json:"leaving,omitzero"`
	// Foreign are the CPUs that somebody else has given a container which is left alone. None of them becomes
	// exclusive, and where they are its own (Own), the shared sets avoid them as far as they can.
	Foreign cpuset.Set `json:"foreign,omitzero"`
	Own     bool       `json:"own,omitempty"`
	Milli   int        `json:"milli"`  // thousandths promised of the pool's shared or reserved CPUs
	Memory  cpuset.Set `json:"memory"` // nodes
	Bytes   int64      `json:"bytes"`  // promised on them
	// Short says what the container is due and did not get, and why; it keeps what it has, and is tried again
	// whenever something is given back.
	Short string `json:"short,omitempty"`
}

// Alone are the CPUs that it was given to itself, by the agent or by somebody else.
func (p *Placement) Alone() cpuset.Set {
	if p.Own {
		return p.Exclusive.Union(p.Foreign)
	}
	return p.Exclusive
}

// own are the CPUs that nobody else has.
func (p *Placement) own() cpuset.Set { return p.Exclusive.Union(p.Idle) }

// Placed is a container with its place. It never changes: a new place is a new Placed.
type Placed struct {
	Container `json:"container"`
	Placement `json:"placement"`
	Order     int `json:"order"` // of arrival
}

// State is who sits where. States share what did not change between them.
type State struct {
	Placed map[string]*Placed `json:"placed"` // by container id
	// Gone remembers the places of stopped containers by pod id and name, until their pod goes: who comes
	// back gets the same CPUs if they are still free, and others take them last.
	Gone map[string]Placement `json:"gone,omitempty"`
	Next int                  `json:"next"` // the next Order
}

func (s State) clone() State {
	c := State{Placed: maps.Clone(s.Placed), Gone: maps.Clone(s.Gone), Next: s.Next}
	if c.Placed == nil {
		c.Placed = map[string]*Placed{}
	}
	if c.Gone == nil {
		c.Gone = map[string]Placement{}
	}
	return c
}

// InOrder returns the placed containers in their order of arrival.
func (s State) InOrder() []*Placed {
	return slices.SortedFunc(maps.Values(s.Placed), func(a, b *Placed) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID))
	})
}

func goneKey(podID, name string) string { return podID + "/" + name }

// Pin is what a runtime is told: the CPUs and memory nodes a container may use. An empty set means "leave it
// as it is".
type Pin struct {
	CPUs   cpuset.Set `json:"cpus"`
	Memory cpuset.Set `json:"memory"`
}

// Equal tells whether both pin to the same.
func (a Pin) Equal(b Pin) bool { return a.CPUs.Equal(b.CPUs) && a.Memory.Equal(b.Memory) }

// Empty tells whether the pin leaves everything as it is.
func (a Pin) Empty() bool { return a.CPUs.Empty() && a.Memory.Empty() }

// With returns what is set after another pin was told: an empty set changes nothing.
func (a Pin) With(b Pin) Pin {
	if !b.CPUs.Empty() {
		a.CPUs = b.CPUs
	}
	if !b.Memory.Empty() {
		a.Memory = b.Memory
	}
	return a
}

func (a Pin) String() string { return "CPUs " + a.CPUs.String() + " memory " + a.Memory.String() }

// Change is a new pin for a container.
type Change struct {
	ID string `json:"id"`
	Pin
}

// Pins returns what every placed container may use at the moment.
func (p *Policy) Pins(s State) map[string]Pin {
	l := p.ledger(s, "")
	pins := make(map[string]Pin, len(s.Placed))
	for id, placed := range s.Placed {
		pins[id] = p.pin(l, placed)
	}
	return pins
}

func (p *Policy) pin(l *ledger, c *Placed) Pin {
	var pin Pin
	if p.PinCPU && c.Kind != Unpinned {
		pin.CPUs = c.Exclusive
		if at := p.Tree.Named(c.Pool); at != nil {
			switch c.Kind {
			case Shared, Mixed:
				pin.CPUs = pin.CPUs.Union(l.shared[at.ID]).Union(c.Leaving.Intersect(p.sharable[at.ID]))
			case Reserved:
				pin.CPUs = p.reserved[at.ID]
			}
		}
	}
	if p.PinMemory && !c.KeepMemory && c.Kind != Unpinned {
		pin.Memory = c.Placement.Memory
		if c.NoMemoryLimit { // the kernel fills the nodes nearest to its CPUs first, and spills before it kills
			pin.Memory = pin.Memory.Union(p.ofKinds(p.allMemory, c.memoryKinds()))
		}
	}
	return pin
}

// changes returns the pins that differ between two states, whose books are was and is, in order of id, but
// for the one container that is told apart. Only who moved, or shares a pool whose shared set changed, is
// looked at closely.
func (p *Policy) changes(before, after State, was, is *ledger, except string) []Change {
	changed := map[string]bool{}
	for i := range p.Tree.Pools {
		if !was.shared[i].Equal(is.shared[i]) {
			changed[p.Tree.Pools[i].Name] = true
		}
	}
	var list []Change
	for id, c := range after.Placed {
		old, known := before.Placed[id]
		if id == except || (old == c && !changed[c.Pool]) {
			continue
		}
		pin := p.pin(is, c)
		if !known || !p.pin(was, old).Equal(pin) {
			list = append(list, Change{id, pin})
		}
	}
	slices.SortFunc(list, func(a, b Change) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// PinOf returns what one placed container may use at the moment.
func (p *Policy) PinOf(s State, id string) Pin {
	c, ok := s.Placed[id]
	if !ok {
		return Pin{}
	}
	return p.pin(p.ledger(s, ""), c)
}
