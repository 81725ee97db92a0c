package policy

import (
	"cmp"
	"slices"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/pool"
)

// ledger is a state's books, by pool: what is taken, what is promised, what may still be.
//
// Its invariant, kept by every placement: the shared CPUs of each pool are worth at least what is promised to
// all containers in and below it. The pools are a laminar family, so (Hall's theorem) everybody's promise can
// then be met at the same time.
type ledger struct {
	taken     cpuset.Set   // exclusive CPUs and their idle siblings, before and after a resize
	held      cpuset.Set   // CPUs that stopped containers of other pods may come back for
	foreign   cpuset.Set   // CPUs that others have given to containers which are left alone: nobody has them to himself here
	shared    []cpuset.Set // left of the sharable ones
	promised  []int        // thousandths of shared CPUs, in the pool and below
	removable []int        // shared CPUs that can still become exclusive
	sharers   []int        // containers that use shared CPUs, in the pool and below
	reserved  []int        // thousandths promised of reserved CPUs, in the pool and below
	memory    []memoryPromise
	left      []memoryPromise // what Policy.left has added up so far
}

type memoryPromise struct {
	nodes cpuset.Set
	bytes int64
}

// ledger does the books of a state, leaving out one container (the one that is about to be placed again).
func (p *Policy) ledger(s State, except string) *ledger {
	n := len(p.Tree.Pools)
	l := &ledger{promised: make([]int, n), sharers: make([]int, n), reserved: make([]int, n), shared: make([]cpuset.Set, n)}
	var owners []*Placed // left alone, on CPUs of their own
	for id, c := range s.Placed {
		if id == except {
			continue
		}
		l.foreign = l.foreign.Union(c.Foreign)
		if c.Own {
			owners = append(owners, c)
		}
		l.taken = l.taken.Union(c.Exclusive).Union(c.Idle).Union(c.Leaving)
		l.promiseMemory(c.Placement.Memory, c.Bytes)
		at := p.Tree.Named(c.Pool)
		if at == nil || c.Kind == Unpinned || c.Kind == Exclusive {
			continue
		}
		p.Tree.Ancestors(at.ID, func(a *pool.Pool) bool {
			if c.Kind == Reserved {
				l.reserved[a.ID] += c.Milli
			} else {
				l.promised[a.ID] += max(0, c.Milli-1000*c.Leaving.Intersect(p.sharable[a.ID]).Len()) // the rest is on those
				l.sharers[a.ID]++
			}
			return true
		})
	}
	for i := range l.shared {
		l.shared[i] = p.sharable[i].Minus(l.taken)
	}
	p.avoid(l, owners)
	p.setRemovable(l)
	return l
}

// avoid takes CPUs that containers which are left alone have to themselves out of the shared sets. They were
// not promised to anybody by these books, so an owner's CPUs stay shared where the shared sets could not do
// without them.
func (p *Policy) avoid(l *ledger, owners []*Placed) {
	slices.SortFunc(owners, func(a, b *Placed) int { return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID)) })
	for _, c := range owners {
		before := l.shared
		l.shared = make([]cpuset.Set, len(before))
		for i := range before {
			l.shared[i] = before[i].Minus(c.Foreign)
		}
		if !p.sound(l) {
			l.shared = before
		}
	}
}

// promiseMemory adds up by set of nodes: there are few different ones, however many containers.
func (l *ledger) promiseMemory(nodes cpuset.Set, bytes int64) {
	if bytes == 0 {
		return
	}
	for i := range l.memory {
		if l.memory[i].nodes.Equal(nodes) {
			l.memory[i].bytes += bytes
			return
		}
	}
	l.memory = append(l.memory, memoryPromise{nodes, bytes})
}

// freeShared returns how many thousandths of shared CPUs can still be promised in a pool: the least of what
// it and every pool above it has left.
func (p *Policy) freeShared(l *ledger, id int) int {
	free := int(^uint(0) >> 1)
	p.Tree.Ancestors(id, func(a *pool.Pool) bool {
		free = min(free, 1000*l.shared[a.ID].Len()-l.promised[a.ID])
		return true
	})
	return free
}

func (p *Policy) freeReserved(l *ledger, id int) int {
	free := int(^uint(0) >> 1)
	p.Tree.Ancestors(id, func(a *pool.Pool) bool {
		free = min(free, 1000*p.reserved[a.ID].Len()-l.reserved[a.ID])
		return true
	})
	return free
}

// setRemovable works out how many shared CPUs can be sliced off each pool. A NUMA node and anything wider
// keeps at least one, so that whoever comes finds a place near his memory; a cache without sharers may be
// taken whole.
func (p *Policy) setRemovable(l *ledger) {
	l.removable = make([]int, len(l.shared))
	for i := range l.removable {
		keep := (l.promised[i] + 999) / 1000
		if keep == 0 && (l.sharers[i] > 0 || p.Tree.Pools[i].Level <= pool.Node) {
			keep = 1
		}
		l.removable[i] = max(0, l.shared[i].Len()-keep)
	}
}
