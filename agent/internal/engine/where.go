package engine

import (
	"cmp"
	"slices"
	"sync"

	"proxima.io/agent/internal/nodes"
	"proxima.io/agent/internal/topology"
)

// changes lets others wait for the next change.
type changes struct {
	mu   sync.Mutex
	next chan struct{} // nil: nobody waits
}

func (c *changes) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

func (c *changes) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

// Changed returns a channel that is closed when something may have changed since the call.
func (e *Engine) Changed() <-chan struct{} { return e.changes.wait() }

// meetAt notes the addresses of a container's pod. The lock is held.
func (e *Engine) meetAt(a *Arrival) {
	if a.AddressesTold {
		e.addresses[a.PodID] = a.Addresses
	}
}

// Where returns the machine, and where its pods are.
func (e *Engine) Where() (*topology.Topology, []nodes.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	byID := map[string]*nodes.Pod{}
	for _, c := range e.state.InOrder() {
		pod := byID[c.PodID]
		if pod == nil {
			pod = &nodes.Pod{UID: c.PodUID, Namespace: c.Namespace, Name: c.PodName, IPs: slices.Clone(e.addresses[c.PodID])}
			if pod.IPs == nil {
				pod.IPs = []string{}
			}
			byID[c.PodID] = pod
		}
		pod.Containers = append(pod.Containers, nodes.Container{ID: c.ID, Name: c.Name, Nodes: e.nodes(c.ID),
			CPUs: e.cpus(c.ID).String(), Own: c.Placement.Alone().Intersect(e.cpus(c.ID)).String()})
	}
	pods := make([]nodes.Pod, 0, len(byID))
	for _, pod := range byID {
		pods = append(pods, *pod)
	}
	slices.SortFunc(pods, func(a, b nodes.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID),
			cmp.Compare(a.Containers[0].ID, b.Containers[0].ID))
	})
	return e.machine, pods
}

// Unaddressed returns the ids of the pods of which nobody has told the addresses.
func (e *Engine) Unaddressed() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var pods []string
	for _, c := range e.state.Placed {
		if _, told := e.addresses[c.PodID]; !told && !slices.Contains(pods, c.PodID) {
			pods = append(pods, c.PodID)
		}
	}
	slices.Sort(pods)
	return pods
}

// SetAddresses notes what the runtime tells of a pod's addresses: none where it has the node's network.
func (e *Engine) SetAddresses(podID string, addresses []string) {
	e.mu.Lock()
	defer e.changes.tell()
	defer e.mu.Unlock()
	for _, c := range e.state.Placed {
		if c.PodID == podID {
			e.addresses[podID] = addresses
			return
		}
	}
}
