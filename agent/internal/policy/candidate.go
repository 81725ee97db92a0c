package policy

import (
	"cmp"
	"math"
	"slices"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/pool"
)

// Candidate is one pool as it was considered for a container. Its fields stand in the order in which they
// decide.
type Candidate struct {
	Pool     string  `json:"pool"`
	Fits     bool    `json:"fits"`          // enough CPUs of the right kind
	Why      string  `json:"why,omitempty"` // why it does not fit
	Isolated bool    `json:"isolated"`      // on isolated CPUs, where those are wished for
	Affinity float64 `json:"affinity"`      // weight × closeness, summed
	Splits   int     `json:"splits"`        // cores it would share with others
	Devices  int     `json:"devices"`       // devices it uses that are near
	MemFits  bool    `json:"memoryFits"`    // without widening
	Room     bool    `json:"room"`          // for a burstable container's limit
	MemNodes int     `json:"memoryNodes"`   // fewer are tighter
	Right    int     `json:"rightCores"`    // CPUs of the kind that the priority asks for
	Spares   bool    `json:"sparesHeld"`    // leaves alone what stopped containers may come back for
	Depth    int     `json:"depth"`         // deeper is tighter
	Free     int     `json:"free"`          // thousandths left before it comes
	Crowd    int     `json:"crowd"`         // containers that share CPUs here
	id       int
	place    Placement
}

// criterion compares two candidates by one field: below zero, the first is better.
type criterion struct {
	reason  string
	compare func(a, b *Candidate) int
}

// criteria are the rules of choice in order; the first that tells two pools apart decides.
var criteria = []criterion{
	{"it has enough CPUs", func(a, b *Candidate) int { return yesFirst(a.Fits, b.Fits) }},
	{"it has isolated CPUs", func(a, b *Candidate) int { return yesFirst(a.Isolated, b.Isolated) }},
	{"of affinity", func(a, b *Candidate) int {
		if math.Abs(a.Affinity-b.Affinity) < 1e-9 {
			return 0
		}
		return cmp.Compare(b.Affinity, a.Affinity)
	}},
	{"it has whole cores", func(a, b *Candidate) int { return cmp.Compare(a.Splits, b.Splits) }},
	{"its devices are near", func(a, b *Candidate) int { return cmp.Compare(b.Devices, a.Devices) }},
	{"its memory fits", func(a, b *Candidate) int { return yesFirst(a.MemFits, b.MemFits) }},
	{"it has room for the limit", func(a, b *Candidate) int { return yesFirst(a.Room, b.Room) }},
	{"its memory is on fewer nodes", func(a, b *Candidate) int { return cmp.Compare(a.MemNodes, b.MemNodes) }},
	{"its cores are of the kind asked for", func(a, b *Candidate) int { return cmp.Compare(b.Right, a.Right) }},
	{"it leaves alone CPUs that others may come back for", func(a, b *Candidate) int { return yesFirst(a.Spares, b.Spares) }},
	{"it is tighter", func(a, b *Candidate) int { return cmp.Compare(b.Depth, a.Depth) }},
	{"it has more free", func(a, b *Candidate) int { return cmp.Compare(b.Free, a.Free) }},
	{"fewer containers share it", func(a, b *Candidate) int { return cmp.Compare(a.Crowd, b.Crowd) }},
	{"it comes first", func(a, b *Candidate) int { return cmp.Compare(a.id, b.id) }},
}

func yesFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// better compares two candidates and tells the reason.
func better(a, b *Candidate) (int, string) {
	for _, c := range criteria {
		if order := c.compare(a, b); order != 0 {
			return order, c.reason
		}
	}
	return 0, ""
}

// request is one container's way through a decision.
type request struct {
	policy *Policy
	ledger *ledger
	who    *Container
	demand demand
	pulls  map[int]int
	// had is where the container was, if it comes back, is resized or has to move.
	had *Placement
	// runs: it runs there, and its memory lies there.
	runs bool
}

// memory returns the nodes on which the container's memory lies.
func (r *request) memory() cpuset.Set {
	if !r.runs {
		return cpuset.Set{}
	}
	return r.had.Memory
}

// consider works out what a pool would give.
func (r *request) consider(at *pool.Pool) Candidate {
	p, l := r.policy, r.ledger
	c := Candidate{
		Pool: at.Name, id: at.ID, Depth: at.Depth, Affinity: p.affinity(r.pulls, at.ID), Spares: true,
		Free: p.freeShared(l, at.ID) - 1000*l.held.Intersect(at.CPUs).Len(), Crowd: l.sharers[at.ID],
		Devices: r.devicesNear(at.ID), Room: r.hasRoom(at),
	}
	c.place = Placement{Pool: at.Name, Kind: r.demand.kind, Milli: r.demand.milli}
	switch r.demand.kind {
	case Shared:
		c.Fits, c.Why = enough(p.freeShared(l, at.ID), r.demand.milli, "shared", !l.shared[at.ID].Empty())
	case Reserved:
		c.Fits, c.Why = enough(p.freeReserved(l, at.ID), r.demand.milli, "reserved", !p.reserved[at.ID].Empty())
	case Exclusive, Mixed:
		r.exclusive(at, &c)
	}
	o := p.memoryOffer(l, at.ID, r.who, r.memory())
	c.MemFits, c.MemNodes = !o.wide, o.nodes.Len()
	c.place.Memory, c.place.Bytes = o.nodes, o.bytes
	if o.short {
		c.place.Short = "more memory is promised than the machine has"
	}
	return c
}

func enough(free, want int, kind string, any bool) (bool, string) {
	switch {
	case !any:
		return false, "no " + kind + " CPUs"
	case free < want:
		return false, thousandths(want) + " " + kind + " CPUs wanted, " + thousandths(max(0, free)) + " free"
	}
	return true, ""
}

// exclusive tries the ways to cut exclusive CPUs out of the pool, best first.
func (r *request) exclusive(at *pool.Pool, c *Candidate) {
	p, d := r.policy, r.demand
	priority := cmp.Or(r.who.Priority, p.Priority)
	how := cut{
		count: d.full, low: priority == "low", split: r.who.SplitCores, hideThreads: r.who.HideThreads.Or(false),
	}
	if r.had != nil {
		how.keep, how.used = r.had.own(), r.had.Exclusive
	}
	for _, isolated := range []bool{true, false} {
		if isolated && !d.isolated {
			continue
		}
		for _, spare := range []bool{true, false} {
			how.isolated, how.spareHeld = isolated, spare
			got, ok := p.pick(r.ledger, at.ID, how)
			if !ok || !r.fractionFits(at.ID, got, isolated) {
				continue
			}
			c.Fits, c.Isolated, c.Splits, c.Spares = true, isolated, got.splits, spare
			c.place.Exclusive, c.place.Idle = got.cpus, got.idle
			if priority == "high" || priority == "low" {
				c.Right = p.rightKind(got.cpus, how.low)
			}
			return
		}
	}
	c.Why = thousandths(1000*d.full+d.milli) + " exclusive CPUs wanted, and no shared set may become empty or too small"
}

// fractionFits checks a mixed container's share of what is left after its exclusive CPUs are gone.
func (r *request) fractionFits(id int, got picked, isolated bool) bool {
	if r.demand.milli == 0 {
		return true
	}
	gone := got.cpus.Union(got.idle)
	if isolated { // which nobody shared
		gone = cpuset.Set{}
	}
	fits := !r.ledger.shared[id].Minus(gone).Empty()
	r.policy.Tree.Ancestors(id, func(a *pool.Pool) bool {
		left := 1000*r.ledger.shared[a.ID].Minus(gone).Len() - r.ledger.promised[a.ID]
		fits = fits && left >= r.demand.milli
		return fits
	})
	return fits
}

func (r *request) devicesNear(id int) int {
	if !r.who.DeviceHints.Or(true) {
		return 0
	}
	near := 0
	for _, names := range [][]string{r.who.Uses, r.who.Devices} {
		for _, name := range names {
			at, known := r.policy.deviceAt[name]
			if known && (r.policy.Tree.Holds(id, at) || r.policy.Tree.Holds(at, id)) {
				near++
			}
		}
	}
	return near
}

// hasRoom tells whether a burstable container can reach its limit here; one without a limit wants the level
// that its annotation or the configuration names.
func (r *request) hasRoom(at *pool.Pool) bool {
	if r.demand.kind != Shared || r.who.Request == 0 || r.who.QOS == Guaranteed {
		return true
	}
	if r.who.Limit > 0 {
		return 1000*r.ledger.shared[at.ID].Len() >= r.who.Limit
	}
	level, ok := levelOf(cmp.Or(r.who.Unlimited, r.policy.Unlimited))
	return !ok || at.Level <= level || at.Parent < 0
}

// levelOf turns a word of unlimited-burstable into the level of the tree.
func levelOf(word string) (pool.Level, bool) {
	level, ok := map[string]pool.Level{
		"system": pool.Root, "package": pool.Socket, "die": pool.Die, "numa": pool.Node, "l3cache": pool.Cache,
	}[word]
	return level, ok
}

// BestFirst returns the candidates in the order of preference.
func BestFirst(candidates []Candidate) []Candidate {
	sorted := slices.Clone(candidates)
	slices.SortFunc(sorted, func(a, b Candidate) int {
		order, _ := better(&a, &b)
		return order
	})
	return sorted
}
