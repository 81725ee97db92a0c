// Package topology knows the hardware of one machine as far as placement needs it: CPUs with their sockets,
// dies, cores, caches and kinds; NUMA nodes with their memory and distances; and devices that sit near a
// node.
//
// # Layout
//
//	topology.go  the types
//	read.go      Read: sysfs below a root path → Topology
//	cpu.go node.go device.go   one part of sysfs each
//	tree.go      where files come from: a directory or a recording
//	record.go    a recording: every file that Read looked at, one line each
//	shape.go     recordings of machines nobody has at hand, written from "sockets=2,cores=24,threads=2"
package topology

import (
	"cmp"
	"slices"

	"proxima.io/agent/internal/cpuset"
)

// CoreKind tells apart the cores of hybrid CPUs.
type CoreKind string

const (
	Performance CoreKind = "performance" // the only kind where all cores are equal
	Efficiency  CoreKind = "efficiency"
)

// MemoryKind is what a node's memory is made of, in the words of the memory-type annotation.
type MemoryKind string

const (
	DRAM MemoryKind = "dram"
	PMEM MemoryKind = "pmem" // slower than DRAM: persistent memory, CXL
	HBM  MemoryKind = "hbm"  // faster than DRAM
)

// CPU is one online logical CPU.
type CPU struct {
	ID     int
	Socket int
	Die    int // unique only within the socket
	Node   int // -1 where no NUMA node lists it
	// Siblings are the online CPUs of the same core, this one included.
	Siblings cpuset.Set
	// L3 are the online CPUs behind the same last-level cache; empty where sysfs does not say.
	L3   cpuset.Set
	Kind CoreKind
}

// Node is one NUMA node. It may have no CPUs (memory only) or no memory (CPUs only).
type Node struct {
	ID     int
	CPUs   cpuset.Set // online ones
	Memory int64      // bytes, without HugePages
	Kind   MemoryKind
	// HugePages are the bytes set aside as huge pages, which are only for who asks for them.
	HugePages int64
	// Distance by node id, as the firmware says: 10 is local. Nodes that it does not mention are missing.
	Distance map[int]int
}

// Device is something that sits near a NUMA node: a network card, a block device, a GPU.
type Device struct {
	Name   string // as below /sys/class: eth0, nvme0n1, card0
	Class  string // net, block, infiniband, drm
	Node   int
	Number string // "MAJOR:MINOR" where it has a device file
}

// Topology is one machine. CPUs and Nodes are in ascending order of id.
type Topology struct {
	CPUs     []CPU
	Nodes    []Node
	Online   cpuset.Set
	Offline  cpuset.Set
	Isolated cpuset.Set // by the kernel's isolcpus=, online ones
	Devices  []Device
	// Warnings say which files were missing or odd, and what was assumed instead.
	Warnings []string
}

// CPU returns the online CPU of that id.
func (t *Topology) CPU(id int) (CPU, bool) {
	i, found := slices.BinarySearchFunc(t.CPUs, id, func(c CPU, id int) int { return cmp.Compare(c.ID, id) })
	if !found {
		return CPU{}, false
	}
	return t.CPUs[i], true
}

// Node returns the node of that id.
func (t *Topology) Node(id int) (Node, bool) {
	for _, n := range t.Nodes {
		if n.ID == id {
			return n, true
		}
	}
	return Node{}, false
}

// MemoryNodes returns the ids of the nodes that have memory.
func (t *Topology) MemoryNodes() cpuset.Set {
	var ids []int
	for _, n := range t.Nodes {
		if n.Memory > 0 {
			ids = append(ids, n.ID)
		}
	}
	return cpuset.Of(ids...)
}

// Memory returns all bytes of the machine, huge pages too: what kubelet reckons with.
func (t *Topology) Memory() int64 {
	var bytes int64
	for _, n := range t.Nodes {
		bytes += n.Memory + n.HugePages
	}
	return bytes
}

// DevicesOf returns the names of the devices that have the device file MAJOR:MINOR.
func (t *Topology) DevicesOf(number string) []string {
	var names []string
	for _, d := range t.Devices {
		if number != "" && d.Number == number {
			names = append(names, d.Name)
		}
	}
	return names
}

// NodesOf returns the ids of the nodes that the given CPUs belong to.
func (t *Topology) NodesOf(cpus cpuset.Set) cpuset.Set {
	var ids []int
	for _, n := range t.Nodes {
		if n.CPUs.Meets(cpus) {
			ids = append(ids, n.ID)
		}
	}
	return cpuset.Of(ids...)
}
