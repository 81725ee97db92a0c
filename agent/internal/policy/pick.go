package policy

import (
	"cmp"
	"slices"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/topology"
)

// cut says how exclusive CPUs are to be cut out of a pool.
type cut struct {
	count       int
	isolated    bool       // of the kernel-isolated CPUs, else of the shared ones
	spareHeld   bool       // leave alone what stopped containers may come back for
	hideThreads bool       // use one CPU of each core, and leave the others that it gets there idle
	split       bool       // single threads will do
	low         bool       // efficiency cores first, else performance cores
	keep        cpuset.Set // CPUs to take first: those the container has or had
	used        cpuset.Set // of these, those that it does not leave idle
}

// picked is the outcome of a cut.
type picked struct {
	cpus, idle cpuset.Set
	splits     int // cores of which the container has some threads and others have or can have the rest
}

// picker is one cut in progress.
type picker struct {
	policy   *Policy
	eligible cpuset.Set
	budget   []int // CPUs that each pool can still lose; nil for isolated CPUs, which nobody shares
	cut      cut
	got      []int
	splits   int
	scratch  []int
}

// pick cuts exclusive CPUs out of a pool, or tells that it cannot.
func (p *Policy) pick(l *ledger, id int, c cut) (picked, bool) {
	k := &picker{policy: p, cut: c}
	if c.isolated {
		k.eligible = p.isolated.Intersect(p.Tree.Pools[id].CPUs).Minus(l.taken)
	} else {
		k.eligible, k.budget = l.shared[id], slices.Clone(l.removable)
	}
	k.eligible = k.eligible.Minus(l.foreign.Minus(c.keep)) // whom others join on its own CPUs does not lose them for it
	if c.spareHeld {
		k.eligible = k.eligible.Minus(l.held)
	}
	if k.eligible.Len() < c.count {
		return picked{}, false
	}
	k.run(id)
	if len(k.got) < c.count {
		return picked{}, false
	}
	got := cpuset.Of(k.got...)
	idle := cpuset.Set{}
	if c.hideThreads {
		idle = k.hidden(p.cores[id], got)
	}
	return picked{got.Minus(idle), idle, k.splits}, true
}

// hidden returns what a container has of each core beyond one CPU, which is the one that it has used already
// if there is one.
func (k *picker) hidden(cores []*core, got cpuset.Set) cpuset.Set {
	var idle []int
	for _, c := range cores {
		mine := intersect(c.cpus, got)
		if len(mine) < 2 {
			continue
		}
		used := max(0, slices.IndexFunc(mine, k.cut.used.Has))
		idle = append(idle, slices.Delete(mine, used, used+1)...)
	}
	return cpuset.Of(idle...)
}

func (k *picker) run(id int) {
	if kept := k.cut.keep.Intersect(k.eligible); kept.Len() >= k.cut.count {
		k.eligible = kept // it shrinks: keep some of its own
	} else if !kept.Empty() {
		for _, c := range k.policy.cores[id] {
			k.take(c, intersect(c.cpus, kept))
		}
	}
	cores := k.ordered(id)
	if !k.cut.split {
		k.wholeCores(cores)
	}
	k.threads(cores)
}

func (k *picker) missing() int { return k.cut.count - len(k.got) }

// free returns the CPUs of a core that can still be had. The slice is good until the next call.
func (k *picker) free(c *core) []int {
	free := k.scratch[:0]
	for _, id := range c.cpus {
		if k.eligible.Has(id) && !slices.Contains(k.got, id) {
			free = append(free, id)
		}
	}
	k.scratch = free
	return free
}

func intersect(ids []int, set cpuset.Set) []int {
	var both []int
	for _, id := range ids {
		if set.Has(id) {
			both = append(both, id)
		}
	}
	return both
}

// afford tells whether every pool that holds the core can lose n CPUs, and charges them.
func (k *picker) afford(c *core, n int) bool {
	if k.budget == nil {
		return true
	}
	for _, id := range c.pools {
		if k.budget[id] < n {
			return false
		}
	}
	for _, id := range c.pools {
		k.budget[id] -= n
	}
	return true
}

func (k *picker) take(c *core, cpus []int) bool {
	if len(cpus) == 0 || len(cpus) > k.missing() || !k.afford(c, len(cpus)) {
		return false
	}
	k.got = append(k.got, cpus...)
	return true
}

func (k *picker) wholeCores(cores []*core) {
	for _, c := range cores {
		if k.missing() == 0 {
			return
		}
		if len(c.cpus) > k.missing() {
			continue
		}
		if free := k.free(c); len(free) == len(c.cpus) {
			k.take(c, free)
		}
	}
}

// threads takes single CPUs: first of cores that are broken already, then of others.
func (k *picker) threads(cores []*core) {
	for _, broken := range []bool{true, false} {
		for _, c := range cores {
			if k.missing() == 0 {
				return
			}
			free := k.free(c)
			if broken != (len(free) < len(c.cpus)) {
				continue
			}
			for _, cpu := range free {
				if k.take(c, []int{cpu}) && len(c.cpus) > 1 {
					k.splits++
				}
			}
		}
	}
}

// ordered returns the pool's cores in the order to take them: those the container has already, then the right
// kind, then packed so that as few child pools as can be are broken into.
func (k *picker) ordered(id int) []*core {
	cores := k.packed(id, make([]*core, 0, len(k.policy.cores[id])))
	if k.cut.keep.Empty() && !k.policy.hybrid {
		return cores
	}
	rank := func(c *core) int {
		r := 0
		if c.efficiency != k.cut.low {
			r = 1
		}
		if !slices.ContainsFunc(c.cpus, k.cut.keep.Has) {
			r += 2
		}
		return r
	}
	slices.SortStableFunc(cores, func(a, b *core) int { return cmp.Compare(rank(a), rank(b)) })
	return cores
}

// packed lists the cores child by child: the tightest child that can take all first, else the roomiest.
func (k *picker) packed(id int, list []*core) []*core {
	own := &k.policy.Tree.Pools[id]
	children := slices.Clone(own.Children)
	room := func(child int) int {
		n := k.eligible.Intersect(k.policy.Tree.Pools[child].CPUs).Len()
		if k.budget != nil {
			n = min(n, k.budget[child])
		}
		return n
	}
	slices.SortStableFunc(children, func(a, b int) int {
		x, y := room(a), room(b)
		fits := func(n int) bool { return n >= k.cut.count }
		switch {
		case fits(x) && fits(y):
			return cmp.Compare(x, y)
		case fits(x):
			return -1
		case fits(y):
			return 1
		}
		return cmp.Compare(y, x)
	})
	for _, child := range children {
		list = k.packed(child, list)
	}
	for _, c := range k.policy.cores[id] {
		if c.pools[0] == id { // in no child
			list = append(list, c)
		}
	}
	return list
}

// rightKind returns how many of the CPUs are of the kind of core that the priority asks for.
func (p *Policy) rightKind(cpus cpuset.Set, low bool) int {
	n := 0
	for _, id := range cpus.IDs() {
		if cpu, ok := p.Tree.Topology.CPU(id); ok && (cpu.Kind == topology.Efficiency) == low {
			n++
		}
	}
	return n
}
