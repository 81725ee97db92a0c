// Package pool arranges a machine's CPUs and memory as a tree of pools: the places that a container can be
// given.
//
// The tree has the levels root > socket > die > NUMA node > level 3 cache, but a level is there only where it
// says something new: one with the same CPUs as another is left out, so that a laptop is a single pool. Real
// machines break the textbook order (virtual machines put four one-CPU sockets into one NUMA node), hence the
// tree is built from containment of CPU sets and not from the names of the levels.
package pool

import (
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/topology"
)

// Level is what kind of hardware a pool stands for.
type Level int

// Levels from wide to narrow.
const (
	Root Level = iota
	Socket
	Die
	Node
	Cache
)

func (l Level) String() string { return [...]string{"root", "socket", "die", "node", "l3"}[l] }

// Pool is one place of the tree.
type Pool struct {
	ID       int // index in Tree.Pools
	Name     string
	Level    Level
	Depth    int
	Parent   int // -1 at the top
	Children []int
	// CPUs are the available ones. Children are disjoint; their union is the parent, but for CPUs whose own
	// node has no memory, which belong to the parent alone.
	CPUs cpuset.Set
	// Memory are the ids of the nodes whose memory counts as local here; never empty on a machine with
	// memory.
	Memory cpuset.Set
}

// Tree is the pools of one machine; parents come before their children.
type Tree struct {
	Pools    []Pool
	Topology *topology.Topology
	byName   map[string]int
	common   []int // common[a*len(Pools)+b]: the smallest pool that holds both
}

// Top returns the pool that holds everything.
func (t *Tree) Top() *Pool { return &t.Pools[0] }

// Named returns the pool of that name, or nil.
func (t *Tree) Named(name string) *Pool {
	if id, ok := t.byName[name]; ok {
		return &t.Pools[id]
	}
	return nil
}

// Common returns the smallest pool that holds both.
func (t *Tree) Common(a, b int) *Pool { return &t.Pools[t.common[a*len(t.Pools)+b]] }

// Holds tells whether pool b is a or below a.
func (t *Tree) Holds(a, b int) bool { return t.Common(a, b).ID == a }

// Smallest returns the smallest pool that holds all the CPUs.
func (t *Tree) Smallest(cpus cpuset.Set) *Pool {
	best := t.Top()
	for i := range t.Pools {
		p := &t.Pools[i]
		if p.Depth > best.Depth && cpus.Within(p.CPUs) {
			best = p
		}
	}
	return best
}

// Ancestors calls visit for the pool and everything above it, narrow to wide, until visit returns false.
func (t *Tree) Ancestors(id int, visit func(*Pool) bool) {
	for id >= 0 {
		p := &t.Pools[id]
		if !visit(p) {
			return
		}
		id = p.Parent
	}
}
