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
		node := Node{ID: n.ID, Sockets: slices.Sorted(maps.Keys(sockets)), CPUs: n.CPUs.String(), Distances: map[string]int{}}
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

// line is the snapshot as it is sent.
func (s Snapshot) line() ([]byte, error) {
	text, err := json.Marshal(s)
	if err == nil && len(text) >= longest {
		err = fmt.Errorf("%d bytes are more than followers read (%d)", len(text), longest)
	}
	return append(text, '\n'), err
}
