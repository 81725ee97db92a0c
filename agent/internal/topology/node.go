package topology

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"proxima.io/agent/internal/cpuset"
)

func (r *reader) nodes(online cpuset.Set) []Node {
	ids := r.list(nodeDir+"/online", cpuset.Set{})
	if ids.Empty() {
		ids = r.directories(nodeDir, "node") // before 2.6.24
	}
	if ids.Empty() {
		r.warn("%s/online is missing: one NUMA node assumed", nodeDir)
		node := Node{CPUs: online, Memory: r.machineMemory(), Kind: DRAM, Distance: map[int]int{0: 10}}
		r.hugePages(&node, "sys/kernel/mm/hugepages")
		return []Node{node}
	}
	var nodes []Node
	taken := cpuset.Set{}
	for _, id := range ids.IDs() {
		dir := fmt.Sprintf("%s/node%d", nodeDir, id)
		cpus := r.set(dir+"/cpulist", dir+"/cpumap", cpuset.Set{}).Intersect(online)
		if cpus.Meets(taken) {
			r.warn("%s/cpulist: CPUs %s are in another node already; left out", dir, cpus.Intersect(taken))
			cpus = cpus.Minus(taken)
		}
		taken = taken.Union(cpus)
		nodes = append(nodes, Node{
			ID: id, CPUs: cpus, Memory: r.nodeMemory(dir), Kind: DRAM, Distance: r.distances(dir, ids.IDs()),
		})
	}
	r.memoryKinds(nodes)
	for i := range nodes {
		r.hugePages(&nodes[i], fmt.Sprintf("%s/node%d/hugepages", nodeDir, nodes[i].ID))
	}
	return nodes
}

// hugePages takes the huge pages, of every size that there is, out of a node's memory.
func (r *reader) hugePages(n *Node, dir string) {
	sizes, err := r.tree.List(dir)
	if err != nil {
		return // a kernel without them
	}
	for _, name := range sizes {
		var kib int64
		if _, err := fmt.Sscanf(name, "hugepages-%dkB", &kib); err != nil || kib < 1 || kib > math.MaxInt64/1024 {
			continue
		}
		path := dir + "/" + name + "/nr_hugepages"
		pages := int64(r.number(path, 0))
		if pages > n.Memory/(kib*1024) {
			r.warn("%s: %d pages are more than node %d has; left out", path, pages, n.ID)
			continue
		}
		n.Memory, n.HugePages = n.Memory-pages*kib*1024, n.HugePages+pages*kib*1024
	}
}

// distances pairs the columns of the distance file with the online nodes, in that order.
func (r *reader) distances(dir string, ids []int) map[int]int {
	distance := map[int]int{}
	text, err := r.tree.ReadFile(dir + "/distance")
	if err != nil {
		return distance
	}
	fields := strings.Fields(text)
	if len(fields) != len(ids) {
		r.warn("%s/distance: %d columns for %d nodes; left out", dir, len(fields), len(ids))
		return distance
	}
	for i, field := range fields {
		if d, err := strconv.Atoi(field); err == nil && d > 0 {
			distance[ids[i]] = d
		}
	}
	return distance
}

// nodeMemory reads MemTotal in bytes; 0 where the node has none.
func (r *reader) nodeMemory(dir string) int64 {
	text, err := r.tree.ReadFile(dir + "/meminfo")
	if err != nil {
		r.warn("%s/meminfo is missing: no memory assumed", dir)
		return 0
	}
	return memTotal(text)
}

func (r *reader) machineMemory() int64 {
	text, err := r.tree.ReadFile("proc/meminfo")
	if err != nil {
		return 0
	}
	return memTotal(text)
}

func memTotal(meminfo string) int64 {
	for line := range strings.SplitSeq(meminfo, "\n") {
		_, rest, found := strings.Cut(line, "MemTotal:")
		if !found {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		if kib, err := strconv.ParseInt(fields[0], 10, 64); err == nil && kib > 0 && kib < math.MaxInt64/1024 {
			return kib * 1024
		}
	}
	return 0
}

// memoryKinds tells DRAM from what is faster or slower. Only nodes without CPUs can be anything but DRAM. The
// kernel's memory tiers decide where it shows them (lower is faster); else a node smaller than every DRAM
// node is taken for HBM and any other for slow memory, which is right for the machines sold so far.
func (r *reader) memoryKinds(nodes []Node) {
	tier := r.memoryTiers()
	smallest, dramTier := int64(math.MaxInt64), 0
	for _, n := range nodes {
		if !n.CPUs.Empty() && n.Memory > 0 {
			smallest = min(smallest, n.Memory)
			dramTier = max(dramTier, tier[n.ID])
		}
	}
	if smallest == math.MaxInt64 {
		return // no node has both: nothing to compare with
	}
	for i := range nodes {
		n := &nodes[i]
		if !n.CPUs.Empty() || n.Memory == 0 {
			continue
		}
		switch own, known := tier[n.ID]; {
		case known && dramTier > 0 && own < dramTier:
			n.Kind = HBM
		case known && dramTier > 0 && own > dramTier:
			n.Kind = PMEM
		case known && dramTier > 0:
			n.Kind = DRAM
		case n.Memory < smallest:
			n.Kind = HBM
		default:
			n.Kind = PMEM
		}
	}
}

func (r *reader) memoryTiers() map[int]int {
	const dir = "sys/devices/virtual/memory_tiering"
	tier := map[int]int{}
	names, err := r.tree.List(dir)
	if err != nil {
		return tier
	}
	for _, name := range names {
		number, found := strings.CutPrefix(name, "memory_tier")
		n, err := strconv.Atoi(number)
		if !found || err != nil {
			continue
		}
		for _, id := range r.list(dir+"/"+name+"/nodelist", cpuset.Set{}).IDs() {
			tier[id] = n
		}
	}
	return tier
}
