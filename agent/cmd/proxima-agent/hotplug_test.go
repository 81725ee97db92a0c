package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/policy"
)

// CPUs come and go under fifty containers a hundred times; with version 1 of cgroups, which forgets a CPU
// that was away, a few.
func TestRealHotplugInAnEmulatedMachine(t *testing.T) {
	if !soaking() {
		t.Skip("skipped: for the long runs, make soak; TestRealPairInAnEmulatedMachine has one CPU that goes")
	}
	for name, how := range map[string]lab.Options{
		"version 2": {Words: []string{"50", "100"}},
		"version 1": {Words: []string{"8", "10"}, Version1: true},
	} {
		t.Run(name, func(t *testing.T) {
			lab.Emulate(t, "TestHotplugInTheMachine", how)
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
		t.Logf("%d containers", len(pods))
	}
	r := rand.New(rand.NewPCG(3, 4))
	there := cpuset.Range(0, 7)
	f := &follower{agent: a, pods: pods, version: 2}
	if _, err := os.Stat("/sys/fs/cgroup/cpuset"); err == nil {
		f.version = 1
	}
	for n := range cycles {
		cpu := 1 + r.IntN(7) // the first cannot go
		comes := !there.Has(cpu)
		if !comes && there.Len() <= 3 {
			continue
		}
		if comes {
			there = there.Union(cpuset.Of(cpu))
		} else {
			there = there.Minus(cpuset.Of(cpu))
		}
		f.settles(t, fmt.Sprintf("cycle %d, CPU %d comes %t, there are %s", n, cpu, comes, there), cpu, comes, there)
		if n%10 == 9 {
			class, limited := "Burstable", false
			if n%20 == 9 {
				class, limited = "Guaranteed", true
			}
			pod := kubelet.RunPod(fmt.Sprintf("late-%d", n), class, nil)
			pod.Run("c", 1000, limited) // that it starts is the point
			pod.Remove()
		}
	}
	t.Log(f)
}

// agrees tells how the books differ from what the kernel says.
func agrees(s engine.Status, pods map[string]*lab.Pod, there cpuset.Set) error {
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
