package policy

// samePull is the weight that colocatePods and colocateNamespaces give.
const samePull = 10

// pulls sums up by pool what draws the container to the containers that sit there, and pushes it away.
//
// Both directions count: what the newcomer wrote about the others, and what they wrote about it. Whoever of
// two comes first, the sum is the same, so that the order of arrival does not decide. (CRI-RM counted the
// newcomer's only; NewcomerAffinityOnly gives that.)
func (p *Policy) pulls(s State, c *Container) map[int]int {
	pulls := map[int]int{}
	for _, other := range s.Placed {
		if other.ID == c.ID || other.Kind == Unpinned {
			continue
		}
		if weight := p.pull(c, &other.Container); weight != 0 {
			pulls[p.home(&other.Placement)] += weight
		}
	}
	return pulls
}

func (p *Policy) pull(c, other *Container) int {
	weight := 0
	for i := range c.Affinities {
		if a := &c.Affinities[i]; a.Applies(&c.Subject, &other.Subject) {
			weight += a.Weight
		}
	}
	if !p.NewcomerAffinityOnly {
		for i := range other.Affinities {
			if a := &other.Affinities[i]; a.Applies(&other.Subject, &c.Subject) {
				weight += a.Weight
			}
		}
	}
	if p.ColocatePods && c.PodID == other.PodID {
		weight += samePull
	}
	if p.ColocateNamespaces && c.Namespace == other.Namespace {
		weight += samePull
	}
	return weight
}

// home is the smallest pool that holds a container: of exclusive CPUs where they really are, else its pool.
func (p *Policy) home(at *Placement) int {
	if at.Kind == Exclusive {
		return p.Tree.Smallest(at.Exclusive).ID
	}
	if named := p.Tree.Named(at.Pool); named != nil {
		return named.ID
	}
	return p.Tree.Top().ID
}

// affinity is how well a pool follows the pulls: the sum of weight × closeness, where closeness is the share
// that the other's home has of the smallest pool around both. It is 1 in the home and below it, less for a
// neighbour in the same socket, least across the machine.
func (p *Policy) affinity(pulls map[int]int, id int) float64 {
	sum := 0.0
	for at := range p.Tree.Pools { // in order of id: a sum of floats must not depend on the order of a map
		if weight := pulls[at]; weight != 0 {
			around := p.Tree.Common(id, at)
			sum += float64(weight) * float64(p.Tree.Pools[at].CPUs.Len()) / float64(around.CPUs.Len())
		}
	}
	return sum
}
