package topology

import (
	"fmt"

	"proxima.io/agent/internal/cpuset"
)

func (r *reader) cpus(online cpuset.Set, nodes []Node) []CPU {
	efficient := r.efficiencyCores(online)
	cpus := make([]CPU, 0, online.Len())
	for _, id := range online.IDs() {
		dir := fmt.Sprintf("%s/cpu%d", cpuDir, id)
		self := cpuset.Of(id)
		cpu := CPU{
			ID:       id,
			Socket:   r.number(dir+"/topology/physical_package_id", 0),
			Die:      r.number(dir+"/topology/die_id", 0),
			Node:     -1,
			Siblings: r.set(dir+"/topology/thread_siblings_list", dir+"/topology/thread_siblings", self).Intersect(online).Union(self),
			L3:       r.lastLevelCache(dir).Intersect(online),
			Kind:     Performance,
		}
		for _, n := range nodes {
			if n.CPUs.Has(id) {
				cpu.Node = n.ID
			}
		}
		if efficient.Has(id) {
			cpu.Kind = Efficiency
		}
		cpus = append(cpus, cpu)
	}
	return cpus
}

// lastLevelCache finds the level 3 cache by its level: the number of the index directory differs between
// machines.
func (r *reader) lastLevelCache(dir string) cpuset.Set {
	for index := 3; index >= 0; index-- {
		cache := fmt.Sprintf("%s/cache/index%d", dir, index)
		if r.number(cache+"/level", 0) == 3 {
			return r.set(cache+"/shared_cpu_list", cache+"/shared_cpu_map", cpuset.Set{})
		}
	}
	return cpuset.Set{}
}

// efficiencyCores tells the kinds of cores apart: by the two event units that the kernel registers on hybrid
// x86, else by cpu_capacity where CPUs differ in it (a core below three quarters of the largest is an
// efficiency core, so that small differences between favoured cores do not count).
func (r *reader) efficiencyCores(online cpuset.Set) cpuset.Set {
	if atom := r.list("sys/devices/cpu_atom/cpus", cpuset.Set{}).Intersect(online); !atom.Empty() && !atom.Equal(online) {
		return atom
	}
	capacity, largest := map[int]int{}, 0
	for _, id := range online.IDs() {
		capacity[id] = r.number(fmt.Sprintf("%s/cpu%d/cpu_capacity", cpuDir, id), 0)
		largest = max(largest, capacity[id])
	}
	var slow []int
	for id, c := range capacity {
		if c > 0 && c*4 < largest*3 {
			slow = append(slow, id)
		}
	}
	return cpuset.Of(slow...)
}
