// Package nodes tells other programs of this node where its pods are: on which NUMA nodes, and at which
// addresses. The proxy's routes follow it (`nodes: agent`), so that a client is served by what is near it.
//
// The protocol, version 1: a follower connects to the Unix socket and is sent one line of JSON at once, and
// another one whenever something in it has changed. A line is a Snapshot, whole in itself. A follower sends
// nothing. A process that may not read is sent one line with the reason, and its connection is closed. Later
// programs may add fields; a change of a meaning is another version.
//
// # Layout
//
//	snapshot.go  what is told
//	server.go    the socket and its followers
//	readers.go   which processes may follow
package nodes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/topology"
)

// Version is that of the protocol.
const Version = 1

// longest is the length of a line above which nothing is told: followers read no more.
const longest = 4 << 20

// Snapshot is everything that is told.
type Snapshot struct {
	Version int    `json:"version"`
	Host    string `json:"host,omitempty"` // the node's name
	Nodes   []Node `json:"nodes"`          // ascending
	Pods    []Pod  `json:"pods"`           // in a fixed order
}

// Node is one NUMA node.
type Node struct {
	ID int `json:"id"`
	// Sockets are those of its CPUs, as the kernel numbers them: one on every machine that is sold, none
	// where it has no CPUs.
	Sockets []int  `json:"sockets"`
	CPUs    string `json:"cpus"` // online ones
	// Caches are those of its CPUs that are behind one level-3 cache, for each cache; none where the kernel does
	// not say.
	Caches []string `json:"caches,omitempty"`
	// Cores are those of its CPUs that are threads of one core, for each core of several threads.
	Cores []string `json:"cores,omitempty"`
	// Distances by node, as the firmware says: 10 is the node itself.
	Distances map[string]int `json:"distances"`
}

// Pod is one pod.
type Pod struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// IPs are its addresses; none where it has the node's network, or where nobody has told them.
	IPs        []string    `json:"ips"`
	Containers []Container `json:"containers"`
}

// Container is one container that runs or is about to.
type Container struct {
	ID   string `json:"id"` // the runtime's
	Name string `json:"name"`
	// Nodes are the NUMA nodes of the CPUs that it may use; all of them where it is not pinned.
	Nodes []int `json:"nodes"`
	// CPUs are those that it may use; all of them where it is not pinned.
	CPUs string `json:"cpus,omitempty"`
	// Own are those of them that no other container is given.
	Own string `json:"own,omitempty"`
}

// refusal is the line for a process that may not read.
type refusal struct {
	Version int    `json:"version"`
	Refused string `json:"refused"`
}

// Of describes a machine and pods.
func Of(host string, machine *topology.Topology, pods []Pod) Snapshot {
	s := Snapshot{Version: Version, Host: host, Nodes: []Node{}, Pods: pods}
	if pods == nil {
		s.Pods = []Pod{}
	}
	for _, n := range machine.Nodes {
		sockets := map[int]bool{}
		for _, id := range n.CPUs.IDs() {
			if cpu, ok := machine.CPU(id); ok {
				sockets[cpu.Socket] = true
			}
		}
		node := Node{ID: n.ID, Sockets: slices.Sorted(maps.Keys(sockets)), CPUs: n.CPUs.String(), Distances: map[string]int{},
			Caches: groups(machine, n.CPUs, 1, func(cpu topology.CPU) cpuset.Set { return cpu.L3 }),
			Cores:  groups(machine, n.CPUs, 2, func(cpu topology.CPU) cpuset.Set { return cpu.Siblings })}
		if node.Sockets == nil {
			node.Sockets = []int{}
		}
		for other, distance := range n.Distance {
			node.Distances[strconv.Itoa(other)] = distance
		}
		s.Nodes = append(s.Nodes, node)
	}
	return s
}

// groups are the CPUs that share something with one another, as far as they are among these and at least so
// many.
func groups(machine *topology.Topology, among cpuset.Set, least int, shared func(topology.CPU) cpuset.Set) []string {
	var lists []string
	seen := cpuset.Set{}
	for _, id := range among.IDs() {
		cpu, ok := machine.CPU(id)
		if !ok || seen.Has(id) {
			continue
		}
		group := shared(cpu).Intersect(among)
		seen = seen.Union(group)
		if group.Len() >= least {
			lists = append(lists, group.String())
		}
	}
	return lists
}

// withoutCPUs is the same without the CPUs of containers, which only people want to know.
func (s Snapshot) withoutCPUs() Snapshot {
	s.Pods = slices.Clone(s.Pods)
	for i := range s.Pods {
		containers := slices.Clone(s.Pods[i].Containers)
		for j := range containers {
			containers[j].CPUs, containers[j].Own = "", ""
		}
		s.Pods[i].Containers = containers
	}
	return s
}

// line is the snapshot as it is sent. One that is too long is sent without what routes do not need.
func (s Snapshot) line() ([]byte, error) {
	text, err := json.Marshal(s)
	if err == nil && len(text) >= longest {
		text, err = json.Marshal(s.withoutCPUs())
	}
	if err == nil && len(text) >= longest {
		err = fmt.Errorf("%d bytes are more than followers read (%d)", len(text), longest)
	}
	return append(text, '\n'), err
}
