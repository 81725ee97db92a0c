package simulate

import (
	"math/rand/v2"
	"os"
	"testing"

	"proxima.io/agent/internal/manifest"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/topology"
)

func sourcesCase(t *testing.T) (*topology.Topology, []manifest.Pod) {
	t.Helper()
	shape, err := topology.ParseShape("sockets=2,cores=24,threads=2,memory=192")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := topology.Read(shape.Recording())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../examples/numa-pair/pair.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pods, err := manifest.Read(text, 5)
	if err != nil {
		t.Fatal(err)
	}
	return machine, pods
}

// Five pairs on the source's machine, in 2,000 orders of arrival. Each socket holds five of the ten
// containers (a sixth would leave no shared CPU), so that four pairs together are the most there can be:
// every order must reach it, and a pair is split only where its first comer's socket was full when the second
// came.
func TestFivePairsOfTheSourcesCase(t *testing.T) {
	machine, pods := sourcesCase(t)
	pairs := Pairs(pods)
	if len(pairs) != 5 {
		t.Fatalf("%d pairs: %v", len(pairs), pairs)
	}
	partner := map[string]string{}
	for _, p := range pairs {
		partner[p.A], partner[p.B] = p.B, p.A
	}
	p := policy.New(machine, policy.Options{PinCPU: true, PinMemory: true})
	random := rand.New(rand.NewPCG(7, 7))
	for order := range 2000 {
		ours := &Ours{Policy: p}
		for _, e := range Shuffled(len(pods), random) {
			c := pods[e.Pod].Containers[0]
			first, waiting := ours.State.Placed[partner[c.ID]]
			ours.Arrive(c)
			d := ours.Decisions[c.ID]
			if d.Place.Exclusive.Len() != 8 || d.Place.Short != "" {
				t.Fatalf("order %d: %s got %+v", order, c.ID, d.Place)
			}
			if !waiting || d.Place.Pool == first.Pool {
				continue
			}
			for _, candidate := range d.Candidates {
				if candidate.Pool == first.Pool && candidate.Fits {
					t.Fatalf("order %d: %s had room, yet %s went to %s: %s", order, first.Pool, c.ID, d.Place.Pool, d.Reason)
				}
			}
		}
		if share, present := Share(machine, ours, pairs); present != 5 || share < 0.8 {
			t.Fatalf("order %d: %.0f %% of %d pairs are together", order, 100*share, present)
		}
	}
}

func TestTheOthersDoWorse(t *testing.T) {
	machine, pods := sourcesCase(t)
	pairs := Pairs(pods)
	mean := func(make func() Placer) float64 {
		random, sum := rand.New(rand.NewPCG(1, 1)), 0.0
		for range 500 {
			placer := make()
			Play(placer, pods, Shuffled(len(pods), random))
			share, _ := Share(machine, placer, pairs)
			sum += share / 500
		}
		return sum
	}
	if got := mean(func() Placer { return &Unpinned{Machine: machine} }); got < 0.49 || got > 0.51 {
		t.Errorf("no pinning: %.2f, want a half", got)
	}
	if got := mean(func() Placer { return &Cutter{Machine: machine} }); got < 0.35 || got > 0.55 {
		t.Errorf("kubelet's static policy: %.2f, want near 0.45", got)
	}
	random := rand.New(rand.NewPCG(3, 3))
	if got := mean(func() Placer { return &Cutter{Machine: machine, Random: random} }); got < 0.35 || got > 0.55 {
		t.Errorf("random nodes: %.2f, want near a half", got)
	}
}

func TestLeavingMakesRoom(t *testing.T) {
	machine, pods := sourcesCase(t)
	ours := &Ours{Policy: policy.New(machine, policy.Options{PinCPU: true, PinMemory: true})}
	events := InOrder(len(pods))
	for i := range pods {
		events = append(events, Event{i, true})
	}
	Play(ours, pods, events)
	if len(ours.State.Placed)+len(ours.State.Gone) != 0 {
		t.Errorf("left behind: %+v", ours.State)
	}
}
