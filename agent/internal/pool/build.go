package pool

import (
	"cmp"
	"fmt"
	"slices"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/topology"
)

// Build makes the tree of the machine's available CPUs.
func Build(machine *topology.Topology, available cpuset.Set) *Tree {
	available = available.Intersect(machine.Online)
	pools := []Pool{{Name: "root", Level: Root, CPUs: available}}
	for _, c := range candidates(machine, available) {
		pools = admit(pools, c)
	}
	// By the lowest CPU, so that ids follow the machine's own numbering; where two have the same, the wider
	// holds the other.
	slices.SortFunc(pools, func(a, b Pool) int {
		return cmp.Or(a.CPUs.First()-b.CPUs.First(), b.CPUs.Len()-a.CPUs.Len())
	})
	t := &Tree{Pools: pools, Topology: machine}
	t.link()
	t.giveMemory(available)
	return t
}

// candidates lists every set of CPUs that could be a pool, the preferred name of equal sets first: a socket
// with one node is called a socket, a die with one node a node.
func candidates(machine *topology.Topology, available cpuset.Set) []Pool {
	byLevel := map[Level]map[string]cpuset.Set{Socket: {}, Die: {}, Node: {}, Cache: {}}
	add := func(level Level, name string, cpus cpuset.Set) {
		byLevel[level][name] = byLevel[level][name].Union(cpus.Intersect(available))
	}
	withMemory := cpuset.Set{}
	for _, n := range machine.Nodes {
		if n.Memory > 0 {
			withMemory = withMemory.Union(n.CPUs)
			add(Node, fmt.Sprintf("node%d", n.ID), n.CPUs)
		}
	}
	for _, c := range machine.CPUs {
		self := cpuset.Of(c.ID)
		add(Socket, fmt.Sprintf("socket%d", c.Socket), self)
		add(Die, fmt.Sprintf("die%d.%d", c.Socket, c.Die), self)
		if c.L3.Meets(withMemory) { // a cache without memory beside it folds into the parent, as its node does
			add(Cache, fmt.Sprintf("l3-%d", c.L3.First()), c.L3)
		}
	}
	var pools []Pool
	for _, level := range []Level{Socket, Node, Die, Cache} {
		var ofLevel []Pool
		for name, cpus := range byLevel[level] {
			if !cpus.Empty() {
				ofLevel = append(ofLevel, Pool{Name: name, Level: level, CPUs: cpus})
			}
		}
		slices.SortFunc(ofLevel, func(a, b Pool) int { return a.CPUs.First() - b.CPUs.First() })
		pools = append(pools, ofLevel...)
	}
	return pools
}

// admit adds a pool unless its CPUs are those of one already there, or cut across one (a tree cannot hold
// both). A socket takes the place of a root with the same CPUs: there is a root only above several.
func admit(pools []Pool, c Pool) []Pool {
	for i, p := range pools {
		switch {
		case p.CPUs.Equal(c.CPUs):
			if p.Level == Root {
				pools[i] = c
			}
			return pools
		case p.CPUs.Meets(c.CPUs) && !c.CPUs.Within(p.CPUs) && !p.CPUs.Within(c.CPUs):
			return pools
		}
	}
	return append(pools, c)
}

// link sets ids, names, parents, depths and the table of common ancestors.
func (t *Tree) link() {
	n := len(t.Pools)
	for i := range t.Pools {
		p := &t.Pools[i]
		p.ID, p.Parent = i, -1
		for j := i - 1; j >= 0; j-- { // the nearest before it that holds it is the smallest one
			if p.CPUs.Within(t.Pools[j].CPUs) {
				p.Parent, p.Depth = j, t.Pools[j].Depth+1
				t.Pools[j].Children = append(t.Pools[j].Children, i)
				break
			}
		}
	}
	t.byName = make(map[string]int, n)
	for i := range t.Pools {
		t.byName[t.Pools[i].Name] = i
	}
	t.common = make([]int, n*n)
	for a := range n {
		for b := range n {
			x, y := a, b
			for x != y {
				if t.Pools[x].Depth >= t.Pools[y].Depth {
					x = t.Pools[x].Parent
				} else {
					y = t.Pools[y].Parent
				}
			}
			t.common[a*n+b] = x
		}
	}
}

// giveMemory gives each pool the memory of its CPUs' nodes, then hands memory that has no CPUs at all to the
// smallest pool that holds all the nodes nearest to it. A node whose CPUs are only not available to us is no
// pool's: its memory is remote from everywhere here, and is used only where a container's memory has to be
// widened beyond the whole tree.
func (t *Tree) giveMemory(available cpuset.Set) {
	for _, node := range t.Topology.Nodes {
		if node.Memory <= 0 {
			continue
		}
		near := node.CPUs.Intersect(available)
		if !near.Empty() {
			for i := range t.Pools {
				if t.Pools[i].CPUs.Meets(near) {
					t.Pools[i].Memory = t.Pools[i].Memory.Union(cpuset.Of(node.ID))
				}
			}
			continue
		}
		if !node.CPUs.Empty() {
			continue
		}
		home := t.Smallest(t.nearestCPUs(node, available))
		t.Ancestors(home.ID, func(p *Pool) bool {
			p.Memory = p.Memory.Union(cpuset.Of(node.ID))
			return true
		})
	}
	for i := range t.Pools {
		p := &t.Pools[i]
		switch {
		case p.Parent >= 0 && t.Topology.NodesOf(p.CPUs).Equal(t.Topology.NodesOf(t.Pools[p.Parent].CPUs)):
			p.Memory = t.Pools[p.Parent].Memory // part of a node: what was handed to the node is as near to it
		case !p.Memory.Empty():
		case p.Parent >= 0:
			p.Memory = t.Pools[p.Parent].Memory
		default:
			p.Memory = t.Topology.MemoryNodes()
		}
	}
}

// nearestCPUs returns the available CPUs at the smallest distance from the node; all of them where the
// firmware is silent.
func (t *Tree) nearestCPUs(node topology.Node, available cpuset.Set) cpuset.Set {
	best, cpus := 0, cpuset.Set{}
	for _, other := range t.Topology.Nodes {
		d, known := node.Distance[other.ID]
		own := other.CPUs.Intersect(available)
		if !known || own.Empty() {
			continue
		}
		if best == 0 || d < best {
			best, cpus = d, cpuset.Set{}
		}
		if d == best {
			cpus = cpus.Union(own)
		}
	}
	if cpus.Empty() {
		return available
	}
	return cpus
}
