// Package simulate plays pods arriving and leaving on a machine, under our policy and three others, and
// counts how many client–server pairs share a NUMA node under each.
//
// # Layout
//
//	simulate.go  orders of arrival, pairs, the count
//	placer.go    our policy, and what a node does without us
package simulate

import (
	"math/rand/v2"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/manifest"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/topology"
)

// Event is a pod that arrives or leaves, by its index.
type Event struct {
	Pod   int
	Leave bool
}

// InOrder lets all pods arrive as they are listed.
func InOrder(pods int) []Event {
	events := make([]Event, pods)
	for i := range events {
		events[i].Pod = i
	}
	return events
}

// Shuffled lets all pods arrive in a random order.
func Shuffled(pods int, random *rand.Rand) []Event {
	events := InOrder(pods)
	random.Shuffle(pods, func(a, b int) { events[a], events[b] = events[b], events[a] })
	return events
}

// Pair is two containers of which one wrote that it wants to be near the other.
type Pair struct{ A, B string }

// Pairs lists them by what their annotations say, each once.
func Pairs(pods []manifest.Pod) []Pair {
	var all []policy.Container
	for _, p := range pods {
		all = append(all, p.Containers...)
	}
	var pairs []Pair
	for i := range all {
		for j := i + 1; j < len(all); j++ {
			if pull(&all[i], &all[j])+pull(&all[j], &all[i]) > 0 {
				pairs = append(pairs, Pair{all[i].ID, all[j].ID})
			}
		}
	}
	return pairs
}

func pull(writer, other *policy.Container) int {
	weight := 0
	for i := range writer.Affinities {
		if a := &writer.Affinities[i]; a.Applies(&writer.Subject, &other.Subject) {
			weight += a.Weight
		}
	}
	return weight
}

// Play runs the events.
func Play(p Placer, pods []manifest.Pod, events []Event) {
	for _, e := range events {
		for _, c := range pods[e.Pod].Containers {
			if e.Leave {
				p.Leave(c.ID)
			} else {
				p.Arrive(c)
			}
		}
	}
}

// Together is how likely the two containers of a pair run on the same NUMA node at a given moment, if the
// kernel uses all CPUs that they may use alike: 1 where both are bound to one node, 0 where to two, and one
// in two for two containers that roam over two sockets.
func Together(machine *topology.Topology, a, b cpuset.Set) float64 {
	if a.Empty() || b.Empty() {
		return 0
	}
	sum := 0.0
	for _, n := range machine.Nodes {
		x := float64(a.Intersect(n.CPUs).Len()) / float64(a.Len())
		y := float64(b.Intersect(n.CPUs).Len()) / float64(b.Len())
		sum += x * y
	}
	return sum
}

// Share is the mean of Together over the pairs that are both present; present is how many those are.
func Share(machine *topology.Topology, p Placer, pairs []Pair) (share float64, present int) {
	for _, pair := range pairs {
		a, okA := p.CPUs(pair.A)
		b, okB := p.CPUs(pair.B)
		if okA && okB {
			share += Together(machine, a, b)
			present++
		}
	}
	if present > 0 {
		share /= float64(present)
	}
	return share, present
}
