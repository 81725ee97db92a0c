package topology

import (
	"fmt"
	"strconv"
	"strings"

	"proxima.io/agent/internal/cpuset"
)

// Shape describes a machine by numbers. Every field has a plain default, so that "sockets=2,cores=24" is a
// machine.
type Shape struct {
	Sockets int // default 1
	Dies    int // per socket, default 1
	Nodes   int // NUMA nodes per die, default 1
	Caches  int // level 3 caches per node, default 1
	Cores   int // per node, default 4
	Threads int // per core, default 1

	Memory     int        // GiB per node, default 64
	Memoryless cpuset.Set // nodes with CPUs but no memory
	MemoryOnly int        // further nodes with memory but no CPUs, each nearest to the node of the same rank
	MemoryOf   int        // GiB of each of those, default four times Memory (slow memory)

	Offline    cpuset.Set
	Isolated   cpuset.Set
	Efficiency cpuset.Set // CPUs that are efficiency cores
}

// ParseShape reads "sockets=2,cores=24,threads=2,isolated=4-7;12". Sets use ; between ranges, since , parts
// the fields.
func ParseShape(text string) (Shape, error) {
	s := Shape{Sockets: 1, Dies: 1, Nodes: 1, Caches: 1, Cores: 4, Threads: 1, Memory: 64}
	numbers := map[string]*int{
		"sockets": &s.Sockets, "dies": &s.Dies, "nodes": &s.Nodes, "caches": &s.Caches, "cores": &s.Cores,
		"threads": &s.Threads, "memory": &s.Memory, "memory-only": &s.MemoryOnly, "memory-of": &s.MemoryOf,
	}
	sets := map[string]*cpuset.Set{
		"memoryless": &s.Memoryless, "offline": &s.Offline, "isolated": &s.Isolated, "efficiency": &s.Efficiency,
	}
	for field := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		var err error
		if number, ok := numbers[name]; ok {
			if *number, err = strconv.Atoi(value); err != nil || *number < 0 || *number > 4096 {
				return s, fmt.Errorf("shape: %s=%s is not a number from 0 to 4096", name, value)
			}
		} else if set, ok := sets[name]; ok {
			if *set, err = cpuset.Parse(strings.ReplaceAll(value, ";", ",")); err != nil {
				return s, fmt.Errorf("shape: %s: %w", name, err)
			}
		} else {
			return s, fmt.Errorf("shape: unknown field %q (known: %s, %s)", name,
				strings.Join(sortedKeys(numbers), ", "), strings.Join(sortedKeys(sets), ", "))
		}
	}
	if s.MemoryOf == 0 {
		s.MemoryOf = 4 * s.Memory
	}
	if s.Sockets < 1 || s.Dies < 1 || s.Nodes < 1 || s.Caches < 1 || s.Cores < 1 || s.Threads < 1 {
		return s, fmt.Errorf("shape: %s: sockets, dies, nodes, caches, cores and threads are at least 1", text)
	}
	if s.Sockets*s.Dies*s.Nodes*s.Cores*s.Threads > cpuset.MaxID {
		return s, fmt.Errorf("shape: more than %d CPUs", cpuset.MaxID)
	}
	return s, nil
}

// Recording writes the sysfs files of a machine of that shape. CPUs are numbered as Linux does on x86: first
// one thread of every core, socket by socket, then the second threads.
func (s Shape) Recording() Recording {
	files := Recording{}
	nodes := s.Sockets * s.Dies * s.Nodes
	cores := nodes * s.Cores
	all := cpuset.Range(0, cores*s.Threads-1)
	online := all.Minus(s.Offline)
	files[cpuDir+"/present"] = all.String()
	files[cpuDir+"/online"] = online.String()
	files[cpuDir+"/isolated"] = s.Isolated.String()
	perCache := (s.Cores + s.Caches - 1) / s.Caches
	// cpusOf returns the online threads of the cores first … last-1.
	cpusOf := func(first, last int) cpuset.Set {
		set := cpuset.Set{}
		for thread := range s.Threads {
			set = set.Union(cpuset.Range(thread*cores+first, thread*cores+last-1))
		}
		return set.Intersect(online)
	}
	for core := range cores {
		node := core / s.Cores
		cacheFirst := node*s.Cores + (core%s.Cores)/perCache*perCache
		cacheLast := min(cacheFirst+perCache, (node+1)*s.Cores)
		for thread := range s.Threads {
			id := thread*cores + core
			if !online.Has(id) {
				continue
			}
			dir := fmt.Sprintf("%s/cpu%d", cpuDir, id)
			files[dir+"/topology/physical_package_id"] = strconv.Itoa(node / s.Nodes / s.Dies)
			files[dir+"/topology/die_id"] = strconv.Itoa(node / s.Nodes % s.Dies)
			files[dir+"/topology/thread_siblings_list"] = cpusOf(core, core+1).String()
			files[dir+"/cache/index3/level"] = "3"
			files[dir+"/cache/index3/shared_cpu_list"] = cpusOf(cacheFirst, cacheLast).String()
		}
	}
	if !s.Efficiency.Empty() {
		files["sys/devices/cpu_atom/cpus"] = s.Efficiency.String()
	}
	s.writeNodes(files, nodes, cpusOf)
	return files
}

func (s Shape) writeNodes(files Recording, nodes int, cpusOf func(first, last int) cpuset.Set) {
	total := nodes + s.MemoryOnly
	files[nodeDir+"/online"] = cpuset.Range(0, total-1).String()
	for id := range total {
		dir := fmt.Sprintf("%s/node%d", nodeDir, id)
		cpus, memory := cpuset.Set{}, s.MemoryOf
		if id < nodes {
			cpus, memory = cpusOf(id*s.Cores, (id+1)*s.Cores), s.Memory
			if s.Memoryless.Has(id) {
				memory = 0
			}
		}
		files[dir+"/cpulist"] = cpus.String()
		files[dir+"/meminfo"] = fmt.Sprintf("Node %d MemTotal: %d kB", id, memory<<20)
		columns := make([]string, total)
		for other := range columns {
			columns[other] = strconv.Itoa(s.distance(id, other, nodes))
		}
		files[dir+"/distance"] = strings.Join(columns, " ")
	}
}

// distance follows what firmware reports: 10 itself, 12 in the same socket, 21 across, and 7 more to
// memory-only nodes.
func (s Shape) distance(a, b, nodes int) int {
	if a == b {
		return 10
	}
	extra := 0
	home := func(id int) int {
		if id < nodes {
			return id
		}
		extra = 7
		return (id - nodes) % nodes
	}
	a, b = home(a), home(b)
	perSocket := s.Dies * s.Nodes
	switch {
	case a == b:
		return 10 + extra
	case a/perSocket == b/perSocket:
		return 12 + extra
	default:
		return 21 + extra
	}
}
