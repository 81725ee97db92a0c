package simulate

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/topology"
)

// Placer is one way to place containers.
type Placer interface {
	Arrive(policy.Container)
	Leave(id string)
	// CPUs returns what a container may use at the moment, and whether it is there.
	CPUs(id string) (cpuset.Set, bool)
}

// Ours is the agent's policy.
type Ours struct {
	Policy *policy.Policy
	State  policy.State
	// Decisions by container, as they were when it arrived.
	Decisions map[string]policy.Decision
}

func (o *Ours) Arrive(c policy.Container) {
	var d policy.Decision
	o.State, d = o.Policy.Place(o.State, c)
	if o.Decisions == nil {
		o.Decisions = map[string]policy.Decision{}
	}
	o.Decisions[c.ID] = d
}

func (o *Ours) Leave(id string) {
	if c, ok := o.State.Placed[id]; ok {
		o.State, _ = o.Policy.Release(o.State, id)
		o.State = o.Policy.ForgetPod(o.State, c.PodID)
	}
}

func (o *Ours) CPUs(id string) (cpuset.Set, bool) {
	_, ok := o.State.Placed[id]
	pin := o.Policy.PinOf(o.State, id)
	if ok && pin.CPUs.Empty() {
		return o.Policy.Tree.Topology.Online, true
	}
	return pin.CPUs, ok
}

// Own returns the CPUs that nobody else is given.
func (o *Ours) Own(id string) cpuset.Set {
	if placed, ok := o.State.Placed[id]; ok {
		return placed.Alone()
	}
	return cpuset.Set{}
}

// Unpinned lets everybody roam.
type Unpinned struct {
	Machine *topology.Topology
	here    map[string]bool
}

func (u *Unpinned) Arrive(c policy.Container) {
	if u.here == nil {
		u.here = map[string]bool{}
	}
	u.here[c.ID] = true
}

func (u *Unpinned) Leave(id string) { delete(u.here, id) }

func (u *Unpinned) CPUs(id string) (cpuset.Set, bool) { return u.Machine.Online, u.here[id] }

// Cutter gives Guaranteed containers of whole CPUs exclusive ones and lets the others roam over the rest.
// Without Random it does what kubelet's static CPU manager does: whole cores, packed into the fullest socket
// that still has some. With it, it takes a random node first: what a lucky hand would do.
type Cutter struct {
	Machine *topology.Topology
	Random  *rand.Rand
	own     map[string]cpuset.Set // empty set: it roams
	taken   cpuset.Set
}

func (k *Cutter) Arrive(c policy.Container) {
	if k.own == nil {
		k.own = map[string]cpuset.Set{}
	}
	k.own[c.ID] = cpuset.Set{}
	if c.QOS != policy.Guaranteed || c.Request < 1000 || c.Request%1000 != 0 {
		return
	}
	got := k.cut(c.Request / 1000)
	k.own[c.ID], k.taken = got, k.taken.Union(got)
}

func (k *Cutter) Leave(id string) {
	k.taken = k.taken.Minus(k.own[id])
	delete(k.own, id)
}

func (k *Cutter) CPUs(id string) (cpuset.Set, bool) {
	own, ok := k.own[id]
	if ok && own.Empty() {
		return k.Machine.Online.Minus(k.taken), true
	}
	return own, ok
}

// cut takes whole cores node by node; it returns the empty set where there are too few.
func (k *Cutter) cut(count int) cpuset.Set {
	free := k.Machine.Online.Minus(k.taken)
	if free.Len() <= count { // kubelet's shared pool never becomes empty either: it reserves at least one CPU
		return cpuset.Set{}
	}
	nodes := slices.Clone(k.Machine.Nodes)
	slices.SortStableFunc(nodes, func(a, b topology.Node) int {
		return cmp.Compare(free.Intersect(a.CPUs).Len(), free.Intersect(b.CPUs).Len())
	})
	if k.Random != nil {
		k.Random.Shuffle(len(nodes), func(a, b int) { nodes[a], nodes[b] = nodes[b], nodes[a] })
		slices.SortStableFunc(nodes, func(a, b topology.Node) int {
			return -cmp.Compare(min(count, free.Intersect(a.CPUs).Len()), min(count, free.Intersect(b.CPUs).Len()))
		})
	}
	got := cpuset.Set{}
	for _, n := range nodes {
		for _, id := range free.Intersect(n.CPUs).IDs() {
			cpu, _ := k.Machine.CPU(id)
			core := cpu.Siblings.Intersect(free).Minus(got)
			if missing := count - got.Len(); core.Len() <= missing {
				got = got.Union(core)
			} else if missing > 0 {
				got = got.Union(cpuset.Of(core.IDs()[:missing]...))
			}
		}
	}
	return got
}
