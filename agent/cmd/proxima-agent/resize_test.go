package main

import (
	"path/filepath"
	"testing"
	"time"

	"proxima.io/agent/internal/lab"
)

// A resize gives a CPU back when the runtime has taken it, and not when it has refused.
func TestRealResize(t *testing.T) {
	for door, version := range map[string]string{"NRI": "1.7", "CRI": "1.6"} {
		t.Run(door, func(t *testing.T) {
			runtime := lab.Start(t, version)
			socket := runtime.CRI
			if door == "CRI" {
				socket = filepath.Join(filepath.Dir(runtime.CRI), "proxy.sock")
				newAgent(t, "--cri-listen", socket, "--cri-runtime", runtime.CRI)
			} else {
				newAgent(t, "--nri-socket", runtime.NRI)
			}
			all, first, rest := machineCPUs(t)
			kubelet := lab.NewClient(t, socket, "v1")
			sharer, redis := kubelet.RunPod("sharer", "Burstable", nil), kubelet.RunPod("redis", "Guaranteed", nil)
			s, r := sharer.Run("web", 100, false), redis.Run("redis", 1000, true)
			cpus(t, "redis has a CPU of its own", redis, r, first)
			cpus(t, "the sharer makes room", sharer, s, rest)

			const tooLittle, enough = 4 << 10, 64 << 20
			if err := redis.Resize(r, 500, tooLittle); err == nil {
				t.Skip("skipped: this machine's runtime takes a memory limit of one page")
			}
			for range 10 { // nothing is to happen
				time.Sleep(100 * time.Millisecond)
				if got, err := sharer.CPUs(s); err != nil || got != rest {
					t.Fatalf("refused, and the sharer has CPUs %q, %v", got, err)
				}
			}
			if err := redis.Resize(r, 500, enough); err != nil {
				t.Fatal(err)
			}
			cpus(t, "taken: redis shares", redis, r, all)
			cpus(t, "taken: the sharer has it too", sharer, s, all)
			if err := redis.Resize(r, 1000, enough); err != nil {
				t.Fatal(err)
			}
			cpus(t, "larger again: redis has a CPU of its own", redis, r, first)
			cpus(t, "larger again: the sharer makes room", sharer, s, rest)
		})
	}
}
