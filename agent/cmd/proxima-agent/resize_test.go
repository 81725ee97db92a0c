package main

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/status"
)

// A resize gives a CPU back when the runtime has taken it, and not when it has refused, of which NRI does not
// tell.
func TestRealResize(t *testing.T) {
	for door, version := range map[string]string{"NRI": "1.7", "CRI": "1.6"} {
		t.Run(door, func(t *testing.T) {
			runtime := lab.Start(t, version)
			socket, args := runtime.CRI, []string{"--nri-socket", runtime.NRI}
			if door == "CRI" {
				socket = filepath.Join(filepath.Dir(runtime.CRI), "proxy.sock")
				args = []string{"--cri-listen", socket, "--cri-runtime", runtime.CRI}
			}
			a := newAgent(t, args...)
			all, first, rest := machineCPUs(t)
			kubelet := lab.NewClient(t, socket, "v1")
			sharer, redis := kubelet.RunPod("sharer", "Burstable", nil), kubelet.RunPod("redis", "Guaranteed", nil)
			s, r := sharer.Run("web", 100, false), redis.Run("redis", 1000, true)
			cpus(t, "redis has a CPU of its own", redis, r, first)
			cpus(t, "the sharer makes room", sharer, s, rest)

			const good, bad = 100 * time.Millisecond, 2 * time.Second
			if redis.Resize(r, 500, bad) == nil {
				t.Fatal("the kernel takes a period of two seconds: what is refused is not seen")
			}
			lab.Eventually(t, "refused: the books have it as it was", func() error {
				if got, err := sharer.CPUs(s); err != nil || got != rest {
					t.Fatalf("refused, and the sharer has CPUs %q, %v", got, err)
				}
				var st engine.Status
				err := status.Get(context.Background(), a.dir+"/a.sock", "/status", &st)
				if err == nil && (st.Seats[1].Place.Kind != policy.Exclusive || st.Pending > 0) {
					return fmt.Errorf("%+v, %d pending", st.Seats[1].Place, st.Pending)
				}
				return err
			})
			cpus(t, "refused: redis has its CPU", redis, r, first)
			if err := redis.Resize(r, 500, good); err != nil {
				t.Fatal(err)
			}
			cpus(t, "taken: redis shares", redis, r, all)
			cpus(t, "taken: the sharer has it too", sharer, s, all)
			if err := redis.Resize(r, 1000, good); err != nil {
				t.Fatal(err)
			}
			cpus(t, "larger again: redis has a CPU of its own", redis, r, first)
			cpus(t, "larger again: the sharer makes room", sharer, s, rest)
		})
	}
}
