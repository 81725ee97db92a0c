package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/status"
)

// soaking tells whether the long runs are wanted.
func soaking() bool { return os.Getenv("PROXIMA_AGENT_SOAK") != "" }

// Agent, runtime or both die in random order: nobody moves, and the books are what the kernel says. In the
// long runs a hundred times, else a few.
func TestRealRestarts(t *testing.T) {
	orders := 3
	if soaking() {
		orders = 100
	}
	runtime := lab.Start(t, "1.7")
	a := newAgent(t, "--nri-socket", runtime.NRI)
	_, first, rest := machineCPUs(t)
	kubelet := lab.NewClient(t, runtime.CRI, "v1")
	type one struct {
		pod  *lab.Pod
		id   string
		cpus string
	}
	var all []*one
	for n := range 3 {
		pod := kubelet.RunPod(fmt.Sprintf("sharer-%d", n), "Burstable", nil)
		all = append(all, &one{pod, pod.Run("c", 100, false), rest})
	}
	owner := kubelet.RunPod("owner", "Guaranteed", nil)
	own := &one{owner, owner.Run("c", 1000, true), first}
	all = append(all, own)
	r := rand.New(rand.NewPCG(1, 2))
	for n := range orders {
		agent, other := r.IntN(3) > 0, r.IntN(3) > 0
		reborn := false
		if agent {
			a.kill()
		}
		if other {
			runtime.Kill()
			runtime.Launch()
		} else if agent && r.IntN(3) == 0 { // it restarts in place, and nobody looks
			owner.Stop(own.id)
			own.id, reborn = owner.Run("c", 1000, true), true
		}
		if agent {
			a.launch()
		}
		for _, c := range all {
			cpus(t, fmt.Sprintf("order %d (agent %t, runtime %t, restart in place %t)", n, agent, other, reborn), c.pod, c.id, c.cpus)
		}
		lab.Eventually(t, "the books are what the kernel says", func() error {
			var s engine.Status
			if err := status.Get(context.Background(), a.dir+"/a.sock", "/status", &s); err != nil {
				return err
			}
			if !s.Connected || len(s.Seats) != len(all) || s.Pending > 0 || s.Counters.Faults > 0 {
				return fmt.Errorf("%t, %d containers, %d pending, %+v", s.Connected, len(s.Seats), s.Pending, s.Counters)
			}
			for _, seat := range s.Seats {
				for _, c := range all {
					if c.id == seat.ID && seat.Pin.CPUs.String() != c.cpus || seat.Foreign != "" || seat.Lost != "" {
						return fmt.Errorf("%+v", seat)
					}
				}
			}
			return nil
		})
	}
}
