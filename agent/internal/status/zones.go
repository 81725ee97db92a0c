package status

import (
	"fmt"
	"strconv"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/engine"
)

// Location tells on which NUMA nodes a container's CPUs are: one is bound, several is roaming.
type Location struct {
	ID        string `json:"id"`
	PodUID    string `json:"podUID"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Nodes     []int  `json:"nodes"`
}

// Containers lists the locations of all containers on the books.
func Containers(s engine.Status) []Location {
	list := make([]Location, 0, len(s.Seats))
	for _, c := range s.Seats {
		list = append(list, Location{c.ID, c.PodUID, c.Namespace, c.Pod, c.Name, c.Nodes})
	}
	return list
}

// NodeResourceTopology is the object of topology.node.k8s.io/v1alpha2, as far as it is filled here.
type NodeResourceTopology struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Zones      []Zone            `json:"zones"`
}

// Zone is one pool of it.
type Zone struct {
	Name      string     `json:"name"`
	Type      string     `json:"type"`
	Parent    string     `json:"parent,omitempty"`
	Resources []Resource `json:"resources"`
}

// Resource is one quantity of a zone, in Kubernetes' notation.
type Resource struct {
	Name        string `json:"name"`
	Capacity    string `json:"capacity"`
	Allocatable string `json:"allocatable"`
	Available   string `json:"available"`
}

// Zones turns the pools into zones.
func Zones(node string, s engine.Status) NodeResourceTopology {
	object := NodeResourceTopology{
		APIVersion: "topology.node.k8s.io/v1alpha2", Kind: "NodeResourceTopology", Metadata: map[string]string{"name": node},
	}
	for _, p := range s.Pools {
		total := 0
		if cpus, err := cpuset.Parse(p.CPUs); err == nil {
			total = cpus.Len()
		}
		memory := strconv.FormatInt(p.Bytes, 10)
		object.Zones = append(object.Zones, Zone{Name: p.Name, Type: p.Level, Parent: p.Parent, Resources: []Resource{
			{Name: "cpu", Capacity: strconv.Itoa(total), Allocatable: strconv.Itoa(p.ForPods), Available: fmt.Sprintf("%dm", p.Milli)},
			{Name: "memory", Capacity: memory, Allocatable: memory, Available: strconv.FormatInt(p.FreeBytes, 10)},
		}})
	}
	return object
}
