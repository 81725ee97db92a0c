package policy

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/topology"
)

// FuzzState gives the policy states that no agent wrote: whatever a file says, the promises hold after it was
// taken over.
func FuzzState(f *testing.F) {
	machines := []*topology.Topology{shaped(f, "sockets=2,cores=4,threads=2,isolated=6-7;14-15"), shaped(f, "cores=4")}
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 30 {
		p, s := New(machines[n%2], randomOptions(r, machines[n%2])), State{}
		for step := range 12 {
			s, _ = p.Place(s, randomContainer(r, step))
		}
		s, _ = p.Release(s, "c3")
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint64(n))
	}
	for _, text := range []string{
		`{"placed":{"a":null,"b":{}}}`,
		`{"placed":{"b":{"container":{"subject":{"ID":"b"},"request":-5,"memory":-9},"placement":{"kind":"shared","milli":-7,"bytes":-1}}},"next":-3}`,
		`{"placed":{"b":{"container":{"subject":{"ID":"b","QOS":"Guaranteed"},"request":9223372036854775807},"placement":{"pool":"root","kind":"exclusive","exclusive":"0-8191","short":"x"}}}}`,
		`{"gone":{"x":{"pool":"root"},"a/b":{"pool":"socket0","exclusive":"0-3"}}}`,
	} {
		f.Add([]byte(text), uint64(0))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		var s State
		if json.Unmarshal(text, &s) != nil || len(s.Placed) > 200 {
			return
		}
		takeOver(t, machines[seed%2], s, seed)
	})
}

// takeOver begins with a state, and goes on.
func takeOver(t *testing.T, m *topology.Topology, s State, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	p := New(m, randomOptions(r, m))
	s = p.Reconcile(s)
	check(t, p, s)
	checkStays(t, s, p.Reconcile(s))
	for step := range 4 {
		s, _ = p.Place(s, randomContainer(r, 1000+step))
		check(t, p, s)
	}
	for _, c := range s.InOrder() {
		s, _ = p.Release(s, c.ID)
		check(t, p, s)
	}
}

// Every field of a state that was once right is made wrong, in every machine's file.
func TestAStateThatIsWrongBreaksNoPromise(t *testing.T) {
	for n, m := range machines(t) {
		for seed := range uint64(10) {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			p, s := New(m.Topology, randomOptions(r, m.Topology)), State{}
			for step := range 10 {
				s, _ = p.Place(s, randomContainer(r, step))
			}
			s, _ = p.Release(s, "c2")
			for range 1 + r.IntN(6) {
				s = spoil(r, s, m.Topology)
			}
			takeOver(t, m.Topology, s, seed)
		}
	}
}

func spoil(r *rand.Rand, s State, m *topology.Topology) State {
	next := s.clone()
	all := s.InOrder()
	if len(all) == 0 {
		return s
	}
	wrong := *all[r.IntN(len(all))]
	other := all[r.IntN(len(all))]
	cpus := func() cpuset.Set {
		ids := m.Online.IDs()
		return cpuset.Of(ids[r.IntN(len(ids))], ids[r.IntN(len(ids))], r.IntN(9000)).Intersect(cpuset.Range(0, cpuset.MaxID))
	}
	numbers := []int{-1 << 62, -1, 0, 1, 1000, 1 << 40, 1<<63 - 1}
	number := func() int { return numbers[r.IntN(len(numbers))] }
	switch r.IntN(14) {
	case 0:
		wrong.Exclusive = cpus()
	case 1:
		wrong.Idle = cpus()
	case 2:
		wrong.Leaving = cpus()
	case 3:
		wrong.Exclusive, wrong.Kind = other.Exclusive, other.Kind
	case 4:
		wrong.Kind = Kind(draw(r, "shared", "exclusive", "mixed", "reserved", "unpinned", "odd", ""))
	case 5:
		wrong.Pool = draw(r, "root", "socket0", "socket1", "node0", "none", "")
	case 6:
		wrong.Milli = number()
	case 7:
		wrong.Bytes = int64(number())
	case 8:
		wrong.Placement.Memory = cpus()
	case 9:
		wrong.Order = number()
	case 10:
		wrong.Request, wrong.Limit = number(), number()
	case 11:
		wrong.Container.Memory = int64(number())
	case 12:
		wrong.Foreign, wrong.Own, wrong.Given = cpus(), true, Pin{CPUs: cpus(), Memory: cpus()}
	case 13:
		wrong.Short = "for no reason"
	}
	next.Placed[wrong.ID] = &wrong
	next.Gone[draw(r, "x", "pod1/a", "a/b/c")] = wrong.Placement
	next.Next = number()
	return next
}
