package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/status"
)

// CPUs come and go under fifty containers a hundred times; with version 1 of cgroups, which forgets a CPU that was away, a few.
func TestRealHotplugInAnEmulatedMachine(t *testing.T) {
	if !soaking() {
		t.Skip("skipped: for the long runs, make soak; TestRealPairInAnEmulatedMachine has one CPU that goes")
	}
	for name, how := range map[string]lab.Options{
		"version 2": {Words: []string{"50", "100"}, Patience: 3 * time.Hour},
		"version 1": {Words: []string{"8", "10"}, Patience: 30 * time.Minute, Version1: true},
	} {
		t.Run(name, func(t *testing.T) {
			if out := lab.Emulate(t, "TestHotplugInTheMachine", how); !strings.Contains(out, "--- PASS: TestHotplugInTheMachine") {
				t.Fatal("the test in the machine did not pass")
			}
		})
	}
}

func TestHotplugInTheMachine(t *testing.T) {
	words := lab.Words()
	if !lab.InGuest() || len(words) != 2 {
		t.Skip("skipped: runs in the emulated machine only, see TestRealHotplugInAnEmulatedMachine")
	}
	containers, err := strconv.Atoi(words[0])
	if err != nil {
		t.Fatal(err)
	}
	cycles, err := strconv.Atoi(words[1])
	if err != nil {
		t.Fatal(err)
	}
	runtime := lab.Start(t, "1.7")
	a := newAgent(t, "--nri-socket", runtime.NRI)
	kubelet := lab.NewClient(t, runtime.CRI, "v1")
	pods := map[string]*lab.Pod{}
	for n := range 3 {
		pod := kubelet.RunPod(fmt.Sprintf("owner-%d", n), "Guaranteed", nil)
		pods[pod.Run("c", 1000, true)] = pod
	}
	crowd := kubelet.RunPod("crowd", "Burstable", nil)
	for n := range containers - 3 {
		pods[crowd.Run(fmt.Sprintf("c%d", n), 10, false)] = crowd
	}
	r := rand.New(rand.NewPCG(3, 4))
	there := cpuset.Range(0, 7)
	longest := time.Duration(0)
	for n := range cycles {
		cpu := 1 + r.IntN(7) // the first cannot go
		comes := !there.Has(cpu)
		if !comes && there.Len() <= 3 {
			continue
		}
		online(t, cpu, comes)
		begin := time.Now()
		if comes {
			there = there.Union(cpuset.Of(cpu))
		} else {
			there = there.Minus(cpuset.Of(cpu))
		}
		what := fmt.Sprintf("cycle %d, CPU %d comes %t, there are %s", n, cpu, comes, there)
		lab.Eventually(t, what, func() error { return agrees(a, pods, there) })
		longest = max(longest, time.Since(begin))
		if n%10 == 9 {
			class, limited := "Burstable", false
			if n%20 == 9 {
				class, limited = "Guaranteed", true
			}
			pod := kubelet.RunPod(fmt.Sprintf("late-%d", n), class, nil)
			pod.Run("c", 1000, limited) // that it starts is the point
			pod.Remove()
			t.Logf("%s: settled, at the latest after %s", what, longest)
		}
	}
	t.Logf("%d cycles under %d containers: everything settled after %s at the latest (in an emulated machine)", cycles, containers, longest)
}

// agrees tells how the books differ from what the kernel says.
func agrees(a *agent, pods map[string]*lab.Pod, there cpuset.Set) error {
	var s engine.Status
	if err := status.Get(context.Background(), a.dir+"/a.sock", "/status", &s); err != nil {
		return err
	}
	if !s.Connected || s.Pending > 0 || len(s.Seats) != len(pods) || s.Counters.Faults > 0 {
		return fmt.Errorf("connected %t, %d pending, %d containers, %+v", s.Connected, s.Pending, len(s.Seats), s.Counters)
	}
	taken := cpuset.Set{}
	for _, seat := range s.Seats {
		list, err := pods[seat.ID].CPUs(seat.ID)
		if err != nil {
			return err
		}
		is, err := cpuset.Parse(list)
		if err != nil || !is.Equal(seat.Pin.CPUs) || !is.Within(there) || is.Empty() {
			return fmt.Errorf("%s has %q, and %s by the books; %v", seat.Pod, list, seat.Pin.CPUs, err)
		}
		if seat.Place.Kind == policy.Exclusive {
			if is.Meets(taken) {
				return fmt.Errorf("%s has %s, of which another has some to itself", seat.Pod, is)
			}
			taken = taken.Union(is)
		}
	}
	for _, seat := range s.Seats {
		if seat.Place.Kind == policy.Shared && seat.Pin.CPUs.Meets(taken) {
			return fmt.Errorf("%s shares %s, of which %s are others' own", seat.Pod, seat.Pin.CPUs, taken)
		}
	}
	return nil
}
