package policy

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"proxima.io/agent/internal/cpuset"
)

// CPUs go and come back under fifty containers, in every order: the promises hold, who can stay stays, and
// nobody's memory is narrowed.
func TestCPUsComeAndGoUnderContainers(t *testing.T) {
	const shape = "sockets=2,nodes=2,cores=8,threads=2"
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 7))
		m := shaped(t, shape)
		options := Options{PinCPU: true, PinMemory: true}
		p, s := New(m, options), State{}
		for n := range 50 {
			c := randomContainer(r, n)
			c.Memory >>= 6
			if c.QOS == Guaranteed && c.Request > 3000 {
				c.Request, c.Limit = 2000, 2000
			}
			s, _ = p.Place(s, c)
		}
		for cycle := range 100 {
			offline := ""
			for range r.IntN(12) {
				offline += fmt.Sprintf(";%d", 1+r.IntN(63))
			}
			if offline != "" {
				offline = ",offline=" + offline[1:]
			}
			m = shaped(t, shape+offline)
			p = New(m, options)
			before := s
			s = p.Reconcile(s)
			check(t, p, s)
			for id, was := range before.Placed {
				is := s.Placed[id]
				stays := was.Exclusive.Union(was.Idle).Within(m.Online) && was.Kind == Exclusive && was.Short == ""
				if stays && !is.Exclusive.Equal(was.Exclusive) && !full(p, s, was.Exclusive) {
					t.Fatalf("cycle %d%s: %s moved from %s to %s for nothing", cycle, offline, id, was.Exclusive, is.Exclusive)
				}
				if was.Kind != Unpinned && is.Kind != Unpinned && !was.Placement.Memory.Within(is.Placement.Memory) {
					t.Fatalf("cycle %d%s: the memory of %s was narrowed from %s to %s", cycle, offline, id, was.Placement.Memory, is.Placement.Memory)
				}
			}
		}
	}
}

// full tells whether a pool around one of the CPUs has no CPU to spare: then somebody has to give one up.
func full(p *Policy, s State, cpus cpuset.Set) bool {
	l := p.ledger(s, "")
	for i := range p.Tree.Pools {
		if p.Tree.Pools[i].CPUs.Meets(cpus) && l.removable[i] == 0 {
			return true
		}
	}
	return false
}

func TestANodeWithoutCPUsKeepsItsMemory(t *testing.T) {
	s, p := State{}, New(shaped(t, "sockets=2,cores=4"), pinned)
	s, _ = p.Place(s, guaranteed("a", 2000))
	s, _ = p.Place(s, burstable("b", 100, 0))
	away := New(shaped(t, "sockets=2,cores=4,offline=0-3"), pinned)
	s = away.Reconcile(s)
	check(t, away, s)
	for id := range s.Placed {
		if pin := away.PinOf(s, id); pin.CPUs.Meets(cpuset.Range(0, 3)) || !pin.Memory.Has(0) {
			t.Errorf("%s has %s", id, pin)
		}
	}
	s = p.Reconcile(s)
	check(t, p, s)
}
