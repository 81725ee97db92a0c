package engine

import (
	"slices"

	"proxima.io/agent/internal/annotation"
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/others"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/pool"
)

// Counters only ever grow.
type Counters struct {
	Decisions   int    `json:"decisions"`
	Short       int    `json:"short"`    // decisions that gave less than what is due
	Faults      int    `json:"faults"`   // panics inside, each left a container unpinned for a while
	Foreign     int    `json:"foreign"`  // containers that carried a cpuset already
	Repaired    int    `json:"repaired"` // updates outside of a request
	Refused     int    `json:"refused"`  // configurations
	Lost        int    `json:"lost"`     // containers that were found without the CPUs that they were given
	Annotations [4]int `json:"annotations"`
}

// Problems are what Counters.Annotations counts, in its order.
var Problems = [4]annotation.Problem{annotation.Unknown, annotation.Unserved, annotation.Malformed, annotation.Odd}

func problemIndex(p annotation.Problem) int { return slices.Index(Problems[:], p) }

// Seat is one container and where it sits.
type Seat struct {
	ID        string               `json:"id"`
	Pod       string               `json:"pod"`
	Namespace string               `json:"namespace"`
	Name      string               `json:"container"`
	PodUID    string               `json:"podUID"`
	Place     policy.Placement     `json:"place"`
	Pin       policy.Pin           `json:"pin"`
	Nodes     []int                `json:"nodes"` // NUMA nodes of the CPUs that it has, be they those of its pin yet or not
	Reason    string               `json:"reason,omitempty"`
	Findings  []annotation.Finding `json:"findings,omitempty"`
	Foreign   string               `json:"foreign,omitempty"` // the cpuset with which it came
	Lost      string               `json:"lost,omitempty"`    // how what the kernel gives it differs from Pin
}

// PoolStatus is one pool and what is free in it.
type PoolStatus struct {
	Name      string `json:"name"`
	Level     string `json:"level"`
	Parent    string `json:"parent,omitempty"`
	CPUs      string `json:"cpus"`
	ForPods   int    `json:"forPods"` // of the CPUs: those that are not reserved
	Memory    string `json:"memoryNodes"`
	Exclusive int    `json:"freeExclusive"` // CPUs that could still become exclusive
	Milli     int    `json:"freeMilli"`     // thousandths of shared CPUs that could still be promised
	Bytes     int64  `json:"memoryBytes"`
	FreeBytes int64  `json:"freeMemoryBytes"` // not promised to anybody
}

// Status is everything there is to see of an engine at one moment.
type Status struct {
	Passive   string         `json:"passive,omitempty"`
	Connected bool           `json:"connected"`
	Released  bool           `json:"released,omitempty"`
	Others    []others.Found `json:"others,omitempty"`
	Notes     []string       `json:"notes,omitempty"` // on the configuration and the machine
	Pools     []PoolStatus   `json:"pools"`
	Seats     []Seat         `json:"containers"`
	Pending   int            `json:"pending"` // containers that the runtime has yet to be told about
	Counters  Counters       `json:"counters"`
}

// Status returns it.
func (e *Engine) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Status{
		Passive: e.passive, Connected: e.updater != nil, Released: e.released, Others: e.others, Counters: e.counters,
		Notes:   slices.Concat(e.badConfig, e.options.Notes, e.machine.Warnings),
		Pending: len(e.pending("")) + len(e.unplaced()),
	}
	for i, room := range e.policy.Room(e.state) {
		s.Pools = append(s.Pools, e.poolStatus(&e.policy.Tree.Pools[i], room))
	}
	pins := e.policy.Pins(e.state)
	for _, c := range e.state.InOrder() {
		pin := pins[c.ID]
		seat := Seat{
			ID: c.ID, Pod: c.PodName, Namespace: c.Namespace, Name: c.Name, PodUID: c.PodUID, Place: c.Placement, Pin: pin,
			Nodes: e.nodes(c.ID), Findings: e.said(c.ID, c.PodID),
		}
		if r := e.records[c.ID]; r != nil {
			seat.Foreign, seat.Lost = r.foreign, r.lost
			if r.decision != nil {
				seat.Reason = r.decision.Reason
			}
		}
		s.Seats = append(s.Seats, seat)
	}
	return s
}

// cpus returns the CPUs that a container may use: those that the runtime has set, all where it has set none.
func (e *Engine) cpus(id string) cpuset.Set {
	if r := e.records[id]; r != nil && !r.told.CPUs.Empty() {
		return r.told.CPUs
	}
	return e.machine.Online
}

// nodes returns the NUMA nodes on which a container is: those of its CPUs.
func (e *Engine) nodes(id string) []int { return e.machine.NodesOf(e.cpus(id)).IDs() }

func (e *Engine) poolStatus(p *pool.Pool, room policy.Room) PoolStatus {
	status := PoolStatus{Name: p.Name, Level: p.Level.String(), CPUs: p.CPUs.String(), ForPods: p.CPUs.Minus(e.policy.Reserved).Len(), Memory: p.Memory.String(),
		Exclusive: room.Exclusive, Milli: room.Milli, FreeBytes: room.Bytes}
	for _, id := range p.Memory.IDs() {
		if node, ok := e.machine.Node(id); ok {
			status.Bytes += node.Memory
		}
	}
	if p.Parent >= 0 {
		status.Parent = e.policy.Tree.Pools[p.Parent].Name
	}
	return status
}

// Explain returns the decisions for the containers of a pod: the one that was made where it is remembered,
// else the one that would be made now.
func (e *Engine) Explain(namespace, pod string) []policy.Decision {
	e.mu.Lock()
	defer e.mu.Unlock()
	var decisions []policy.Decision
	for _, c := range e.state.InOrder() {
		if c.PodName != pod || (namespace != "" && c.Namespace != namespace) {
			continue
		}
		var d policy.Decision
		if r := e.records[c.ID]; r != nil && r.decision != nil && len(r.decision.Candidates) > 0 {
			d = *r.decision
		} else {
			d = e.policy.Explain(e.state, c.Container)
		}
		d.ID, d.Place, d.Pin = c.Namespace+"/"+c.PodName+"/"+c.Name, c.Placement, e.policy.PinOf(e.state, c.ID)
		decisions = append(decisions, d)
	}
	return decisions
}
