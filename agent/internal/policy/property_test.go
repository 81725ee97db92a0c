package policy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"proxima.io/agent/internal/annotation"
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/pool"
	"proxima.io/agent/internal/topology"
)

// shapes are machines too large or too rare to boot here; the recordings under testdata are of real kernels.
var shapes = []string{
	"sockets=2,cores=24,threads=2,memory=192",
	"sockets=8,nodes=2,cores=16,threads=2,caches=2", // 512 CPUs
	"sockets=2,dies=2,nodes=2,cores=8,threads=2",
	"sockets=1,nodes=4,cores=16,caches=4,threads=2",
	"cores=16,threads=1,efficiency=8-15",
	"sockets=2,nodes=2,cores=6,threads=2,memoryless=1;3,memory-only=2",
	"sockets=2,cores=8,threads=2,offline=3;19-20,isolated=4-7;20-23",
	"sockets=4,cores=1",
}

type machine struct {
	name string
	*topology.Topology
}

func machines(t testing.TB) []machine {
	var list []machine
	files, err := filepath.Glob("../../testdata/topologies/*.txt")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d recordings, %v; at least 12 expected", len(files), err)
	}
	for _, file := range files {
		tree, err := topology.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, machine{strings.TrimSuffix(filepath.Base(file), ".txt"), mustRead(t, tree)})
	}
	for _, text := range shapes {
		list = append(list, machine{text, shaped(t, text)})
	}
	return list
}

func mustRead(t testing.TB, tree topology.Tree) *topology.Topology {
	m, err := topology.Read(tree)
	if err != nil || len(m.Warnings) > 0 {
		t.Fatalf("%v %v", err, m.Warnings)
	}
	return m
}

func shaped(t testing.TB, text string) *topology.Topology {
	shape, err := topology.ParseShape(text)
	if err != nil {
		t.Fatal(err)
	}
	return mustRead(t, shape.Recording())
}

func draw(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// randomContainer draws a container of any kind that users write, sensible or not.
func randomContainer(r *rand.Rand, n int) Container {
	c := Container{Request: r.IntN(4) * 1000}
	c.ID = fmt.Sprintf("c%d", n)
	c.Name, c.PodID = draw(r, "a", "b", "init"), fmt.Sprintf("pod%d", n/2)
	c.PodName, c.Namespace = c.PodID, draw(r, "default", "cache", "kube-system")
	c.PodLabels = map[string]string{"app": draw(r, "redis", "memtier", "web")}
	c.Memory = int64(r.IntN(5)) << (28 + r.IntN(6))
	switch c.QOS = draw(r, Guaranteed, Guaranteed, "Burstable", "BestEffort"); c.QOS {
	case Guaranteed:
		c.Request = 250 * (1 + r.IntN(8)) * (1 + r.IntN(6))
		c.Limit = c.Request
	case "Burstable":
		c.Request += 100
		c.Limit = draw2(r, 0, c.Request*2)
	default:
		c.Request, c.Memory = 0, 0
	}
	annotations := map[string]string{}
	for range r.IntN(4) {
		key := draw(r, "proxima.io/near", "proxima.io/far", "proxima.io/cpus", "proxima.io/cores", "proxima.io/memory", "proxima.io/priority")
		annotations[key] = map[string]string{
			"near": "app=" + draw(r, "redis", "memtier"), "far": "*:app=web", "cpus": draw(r, "shared", "exclusive", "isolated", "reserved", "unpinned"),
			"cores": draw(r, "whole", "threads", "one-thread"), "memory": draw(r, "dram", "pmem", "hbm,dram"), "priority": draw(r, "high", "low"),
		}[strings.TrimPrefix(key, "proxima.io/")]
	}
	c.Wishes, _ = annotation.Read(annotations, c.Name)
	return c
}

func draw2(r *rand.Rand, a, b int) int {
	if r.IntN(2) == 0 {
		return a
	}
	return b
}

func randomOptions(r *rand.Rand, m *topology.Topology) Options {
	o := Options{PinCPU: true, PinMemory: true, ColocatePods: r.IntN(2) == 0, PreferIsolated: r.IntN(3) == 0,
		PreferShared: r.IntN(6) == 0, NewcomerAffinityOnly: r.IntN(4) == 0, Unlimited: draw(r, "", "numa", "package")}
	ids := m.Online.IDs()
	if len(ids) > 2 && r.IntN(2) == 0 {
		o.Reserved = cpuset.Of(ids[0], ids[r.IntN(len(ids))])
	}
	if len(ids) > 4 && r.IntN(2) == 0 {
		o.Available = m.Online.Minus(cpuset.Of(ids[1+r.IntN(len(ids)-1)], ids[1+r.IntN(len(ids)-1)]))
	}
	return o
}

// check holds the promises that must hold after every step.
func check(t *testing.T, p *Policy, s State) {
	t.Helper()
	taken := cpuset.Set{}
	l := p.ledger(s, "")
	for _, c := range s.InOrder() {
		own := c.Exclusive.Union(c.Idle).Union(c.Leaving)
		if own.Meets(taken) {
			t.Fatalf("%s has CPUs %s, of which %s are somebody else's", c.ID, own, own.Intersect(taken))
		}
		taken = taken.Union(own)
		if c.Short == "" && (c.Kind == Exclusive || c.Kind == Mixed) && c.own().Len() != c.Request/1000 {
			t.Fatalf("%s asked for %d thousandths and has %s", c.ID, c.Request, c.own())
		}
		if own = c.Exclusive.Union(c.Idle); !own.Within(p.Available.Minus(p.Options.Reserved)) {
			t.Fatalf("%s has CPUs %s that are not to be had", c.ID, own)
		}
	}
	for id, pin := range p.Pins(s) {
		c := s.Placed[id]
		if c.Kind != Unpinned && (pin.CPUs.Empty() || !pin.CPUs.Within(p.Available)) {
			t.Fatalf("%s (%s in %s) is pinned to CPUs %q", id, c.Kind, c.Pool, pin.CPUs)
		}
		if c.Kind != Unpinned && !c.KeepMemory && (pin.Memory.Empty() || !pin.Memory.Within(p.allMemory)) {
			t.Fatalf("%s is pinned to memory %q", id, pin.Memory)
		}
		if c.Kind != Reserved && pin.CPUs.Minus(c.Exclusive).Minus(c.Leaving).Meets(taken) {
			t.Fatalf("%s shares CPUs that are somebody's own", id)
		}
	}
	for i := range p.Tree.Pools {
		at := &p.Tree.Pools[i]
		if l.promised[i] > 1000*l.shared[i].Len() || l.reserved[i] > 1000*p.reserved[i].Len() {
			t.Fatalf("%s: %d promised on shared CPUs %q, %d on reserved %q", at.Name, l.promised[i], l.shared[i], l.reserved[i], p.reserved[i])
		}
		if at.Level <= pool.Node && l.shared[i].Empty() && !p.sharable[i].Empty() {
			t.Fatalf("the shared set of %s became empty", at.Name)
		}
		if !p.holds(l, at.Memory, 0) {
			t.Fatalf("%s: more memory is promised than it has", at.Name)
		}
	}
}

// checkStays holds that nobody was moved who did not get what he was short of.
func checkStays(t *testing.T, before, after State) {
	t.Helper()
	for id, was := range before.Placed {
		is := after.Placed[id]
		stays := was.Pool == is.Pool && was.Kind == is.Kind && was.Exclusive.Equal(is.Exclusive)
		if !stays && (was.Short == "" || is.Short != "") {
			t.Fatalf("%s was moved for nothing from %s to %s", id, asJSON(t, was), asJSON(t, is))
		}
	}
}

// checkHopeless holds that nobody is given up who could have got what he is short of.
func checkHopeless(t *testing.T, p *Policy, s State) {
	t.Helper()
	for _, c := range s.InOrder() {
		if c.Short == "" || !p.hopeless(p.ledger(s, ""), c) {
			continue
		}
		if _, d := p.place(s, c.Container, p.ledger(s, c.ID), nil); d.Place.Short == "" {
			t.Fatalf("%s was given up, and could have %s", asJSON(t, c), asJSON(t, d.Place))
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Random containers come, go, come back and are resized on every machine, while the options change under
// them.
func TestPromisesHoldOnEveryMachine(t *testing.T) {
	for n, m := range machines(t) {
		t.Run(m.name, func(t *testing.T) {
			for seed := range uint64(3) {
				r := rand.New(rand.NewPCG(seed, uint64(n)))
				p, s := New(m.Topology, randomOptions(r, m.Topology)), State{}
				first := asJSON(t, p.Pins(s))
				for step := range 80 {
					s = randomStep(t, r, &p, s, m.Topology, step)
					check(t, p, s)
					checkStays(t, s, p.Reconcile(s))
					checkHopeless(t, p, s)
				}
				for _, c := range s.InOrder() {
					s, _ = p.Release(s, c.ID)
					s = p.ForgetPod(s, c.PodID)
					check(t, p, s)
				}
				for pod := range 120 { // pods whose containers had stopped before
					s = p.ForgetPod(s, fmt.Sprintf("pod%d", pod))
				}
				if last := asJSON(t, p.Pins(s)); len(s.Placed)+len(s.Gone) != 0 || last != first {
					t.Fatalf("not everything was given back: %s", asJSON(t, s))
				}
				l := p.ledger(s, "")
				for i := range l.shared {
					if !l.shared[i].Equal(p.sharable[i]) {
						t.Fatalf("%s has %s of %s back", p.Tree.Pools[i].Name, l.shared[i], p.sharable[i])
					}
				}
			}
		})
	}
}

func randomStep(t *testing.T, r *rand.Rand, p **Policy, s State, m *topology.Topology, step int) State {
	t.Helper()
	present := s.InOrder()
	switch choice := r.IntN(10); {
	case choice < 6 || len(present) == 0:
		c := randomContainer(r, step)
		next, d := (*p).Place(s, c)
		if step%4 > 0 {
			return next
		}
		before := asJSON(t, s)
		again, e := (*p).Place(s, c)
		if asJSON(t, d) != asJSON(t, e) || asJSON(t, next) != asJSON(t, again) {
			t.Fatal("the same input gave two placements")
		}
		if asJSON(t, s) != before {
			t.Fatal("the decision changed the state that it was given")
		}
		return next
	case choice < 8:
		gone := present[r.IntN(len(present))]
		next, _ := (*p).Release(s, gone.ID)
		if r.IntN(3) == 0 {
			next = (*p).ForgetPod(next, gone.PodID)
		}
		return next
	case choice < 9:
		c := present[r.IntN(len(present))].Container
		c.Request = max(0, c.Request+250*(r.IntN(17)-8))
		next, _ := (*p).Resize(s, c)
		check(t, *p, next)
		switch r.IntN(3) {
		case 0:
			return next
		case 1:
			return (*p).Undo(next, s.Placed[c.ID])
		}
		return (*p).Settle(next, c.ID)
	default:
		*p = New(m, randomOptions(r, m))
		return (*p).Reconcile(s)
	}
}
