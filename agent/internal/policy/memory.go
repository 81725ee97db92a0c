package policy

import (
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/pool"
	"proxima.io/agent/internal/topology"
)

// offer is the memory that a pool can give a container.
type offer struct {
	nodes cpuset.Set
	bytes int64 // promised; 0 where not even the whole machine can hold them
	wide  bool  // wider than the pool
	short bool  // nothing can hold the bytes
}

// memoryOffer starts with the pool's own nodes and widens upwards until what is promised fits: a wider set
// costs latency, a tight one that overflows costs a process.
//
// The nodes in keep, on which the container's memory lies already, stay: to take one away moves pages, and
// the runtime waits for it.
func (p *Policy) memoryOffer(l *ledger, id int, c *Container, keep cpuset.Set) offer {
	kinds := c.memoryKinds()
	keep = keep.Intersect(p.allMemory)
	own := p.ofKinds(p.Tree.Pools[id].Memory, kinds).Union(keep)
	found := offer{nodes: p.allMemory, wide: true, short: c.Memory > 0}
	try := func(nodes cpuset.Set) bool {
		nodes = nodes.Union(keep)
		fits := !nodes.Empty() && p.memoryFits(l, id, nodes, c.Memory)
		if fits {
			found = offer{nodes: nodes, bytes: c.Memory, wide: !nodes.Equal(own)}
		}
		return fits
	}
	done := false
	p.Tree.Ancestors(id, func(a *pool.Pool) bool {
		done = try(p.ofKinds(a.Memory, kinds))
		return !done
	})
	if !done && !try(p.ofKinds(p.allMemory, kinds)) {
		try(p.allMemory)
	}
	return found
}

// memoryKinds are those that a container may have: HBM is for those who ask; slow memory is there for whoever
// outgrows DRAM, and the kernel fills the nearest first.
func (c *Container) memoryKinds() []topology.MemoryKind {
	if len(c.Preferences.Memory) == 0 {
		return []topology.MemoryKind{topology.DRAM, topology.PMEM}
	}
	return c.Preferences.Memory
}

// memoryFits tells whether the nodes, and every wider set that a pool above stands for, can hold all that is
// promised within.
func (p *Policy) memoryFits(l *ledger, id int, nodes cpuset.Set, bytes int64) bool {
	if bytes == 0 {
		return true
	}
	fits := p.holds(l, nodes, bytes) && p.holds(l, p.allMemory, bytes)
	p.Tree.Ancestors(id, func(a *pool.Pool) bool {
		fits = fits && p.holds(l, a.Memory.Union(nodes), bytes)
		return fits
	})
	return fits
}

// heldWherever tells whether the nodes, and the memory of every pool that has them all, can hold the bytes.
func (p *Policy) heldWherever(l *ledger, nodes cpuset.Set, bytes int64) bool {
	fits := p.holds(l, nodes, bytes) && p.holds(l, p.allMemory, bytes)
	for i := range p.Tree.Pools {
		if memory := p.Tree.Pools[i].Memory; nodes.Within(memory) {
			fits = fits && p.holds(l, memory, bytes)
		}
	}
	return fits
}

func (p *Policy) holds(l *ledger, nodes cpuset.Set, bytes int64) bool {
	return p.left(l, nodes) >= bytes
}

// left returns the bytes of a set of nodes that are not promised within it. The books do not change during a
// decision, and its pools have few different sets of nodes, so that each is added up once.
func (p *Policy) left(l *ledger, nodes cpuset.Set) int64 {
	for _, known := range l.left {
		if known.nodes.Equal(nodes) {
			return known.bytes
		}
	}
	var left int64
	for _, id := range nodes.IDs() {
		left += p.bytes[id]
	}
	for _, m := range l.memory {
		if m.nodes.Within(nodes) {
			left -= m.bytes
		}
	}
	l.left = append(l.left, memoryPromise{nodes, left})
	return left
}

func (p *Policy) ofKinds(nodes cpuset.Set, kinds []topology.MemoryKind) cpuset.Set {
	of := cpuset.Set{}
	for _, kind := range kinds {
		of = of.Union(p.kinds[kind])
	}
	return nodes.Intersect(of)
}
