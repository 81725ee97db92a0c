// Package policy decides which CPUs and which memory a container gets. It is a pure function: from a machine,
// a state and a container to a new state, a placement, the changes that others need, and the reason. It reads
// no clock, no file and no random number, and changes nothing that it was given; the doors (NRI, CRI) and the
// simulator call it alike.
//
// # Layout, in the order of a decision
//
//	container.go  what asks; demand: which kind of CPUs that means, and how many
//	ledger.go     what is taken and promised, by pool
//	pick.go       which CPUs of a pool
//	memory.go     which memory nodes, widened where a pool's memory cannot hold what is promised
//	affinity.go   the pull of containers already placed
//	candidate.go  one pool with its scores, and which of two is better
//	place.go      Place: a container comes, or comes back
//	resize.go     Resize: its resources change, if the runtime takes it
//	release.go    Release: a container goes
//	reconcile.go  Reconcile: the options changed, or the agent was away
//	state.go      what is placed where, and the CPUs each may use at the moment
package policy

import (
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/pool"
	"proxima.io/agent/internal/topology"
)

// Options are what the configuration says, with every quantity already turned into CPUs.
type Options struct {
	Available cpuset.Set // CPUs that containers may have; empty means all online ones
	Reserved  cpuset.Set // CPUs for the system's own containers

	PinCPU    bool
	PinMemory bool

	PreferIsolated     bool // kernel-isolated CPUs for whoever is due exclusive ones
	PreferShared       bool // shared CPUs even for whoever is due exclusive ones
	ColocatePods       bool
	ColocateNamespaces bool
	ReservedNamespaces []string // globs; kube-system always counts
	Priority           string   // the default of prefer-cpu-priority
	Unlimited          string   // the default of unlimited-burstable
	// NewcomerAffinityOnly is CRI-RM's rule: what the placed containers wrote about the newcomer does not
	// count.
	NewcomerAffinityOnly bool
}

// Policy decides for one machine with one set of options. It never changes after New.
type Policy struct {
	Options
	Tree *pool.Tree

	isolated  cpuset.Set
	sharable  []cpuset.Set // by pool: its CPUs that are neither reserved nor isolated
	reserved  []cpuset.Set // by pool
	cores     [][]*core    // by pool, every core that has CPUs there
	hybrid    bool         // there are efficiency cores
	deviceAt  map[string]int
	allMemory cpuset.Set
	bytes     map[int]int64 // memory by node id
	kinds     map[topology.MemoryKind]cpuset.Set
}

// core is the CPUs of one physical core that are available.
type core struct {
	cpus       []int
	efficiency bool
	pools      []int // every pool that holds the core, narrow to wide
}

// New makes the policy for a machine.
func New(machine *topology.Topology, options Options) *Policy {
	if options.Available.Empty() {
		options.Available = machine.Online
	}
	options.Available = options.Available.Intersect(machine.Online)
	options.Reserved = options.Reserved.Intersect(options.Available)
	p := &Policy{Options: options, Tree: pool.Build(machine, options.Available), deviceAt: map[string]int{}}
	p.isolated = machine.Isolated.Intersect(options.Available).Minus(options.Reserved)
	for i := range p.Tree.Pools {
		cpus := p.Tree.Pools[i].CPUs
		p.sharable = append(p.sharable, cpus.Minus(options.Reserved).Minus(p.isolated))
		p.reserved = append(p.reserved, cpus.Intersect(options.Reserved))
	}
	p.cores = make([][]*core, len(p.Tree.Pools))
	for _, cpu := range machine.CPUs {
		siblings := cpu.Siblings.Intersect(options.Available)
		if siblings.First() != cpu.ID {
			continue // the core comes with its lowest CPU
		}
		c := &core{cpus: siblings.IDs(), efficiency: cpu.Kind == topology.Efficiency}
		p.Tree.Ancestors(p.Tree.Smallest(siblings).ID, func(a *pool.Pool) bool {
			c.pools = append(c.pools, a.ID)
			return true
		})
		p.hybrid = p.hybrid || c.efficiency
		for _, id := range c.pools {
			p.cores[id] = append(p.cores[id], c)
		}
	}
	for _, d := range machine.Devices {
		if node, ok := machine.Node(d.Node); ok && node.CPUs.Meets(options.Available) {
			p.deviceAt[d.Name] = p.Tree.Smallest(node.CPUs.Intersect(options.Available)).ID
		}
	}
	p.allMemory, p.bytes, p.kinds = machine.MemoryNodes(), map[int]int64{}, map[topology.MemoryKind]cpuset.Set{}
	for _, n := range machine.Nodes {
		p.bytes[n.ID] = n.Memory
		p.kinds[n.Kind] = p.kinds[n.Kind].Union(cpuset.Of(n.ID))
	}
	return p
}
