package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/raw"
	"proxima.io/agent/internal/status"
)

const crowd = 250 // containers on the node

// What the agent may cost. A machine that is busy with other things costs more; the bench lane is for a quiet
// one.
const (
	mostDoor   = 2 * time.Millisecond // a call through the door, of a hundred the slowest but one
	mostMemory = 30 << 20
)

// BenchmarkReal shows what the agent costs on a node with 250 containers: a call through the CRI door beside
// the same call without it, and memory and work of agent and runtime while nothing happens.
func BenchmarkReal(b *testing.B) {
	runtime := lab.Start(b, "1.6")
	listen := filepath.Join(filepath.Dir(runtime.CRI), "proxy.sock")
	a := newAgent(b, "--cri-listen", listen, "--cri-runtime", runtime.CRI)
	direct, through := lab.NewClient(b, runtime.CRI, "v1"), lab.NewClient(b, listen, "v1")
	pod := through.RunPod("crowd", "Burstable", nil)
	id := ""
	for n := range crowd {
		id = pod.Run(fmt.Sprintf("c%d", n), 10, false)
	}
	var s engine.Status
	if err := status.Get(context.Background(), a.dir+"/a.sock", "/status", &s); err != nil || len(s.Seats) != crowd {
		b.Fatalf("%d containers on the books, %v", len(s.Seats), err)
	}
	for _, call := range []struct {
		method  string
		request raw.Message
	}{{"Version", nil}, {"ListContainers", nil}, {"ContainerStatus", raw.Message(nil).With(id, 1)}} {
		busy := false // the call takes long without the door already
		for _, way := range []struct {
			name   string
			client *lab.Client
		}{{"direct", direct}, {"door", through}} {
			b.Run(call.method+"/"+way.name, func(b *testing.B) {
				var times []time.Duration
				for b.Loop() {
					begin := time.Now()
					way.client.Call(call.method, call.request)
					times = append(times, time.Since(begin))
				}
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
				p99 := times[len(times)*99/100]
				b.ReportMetric(float64(p99.Microseconds()), "p99-µs")
				// A list of 250 takes the runtime itself longer than that.
				switch {
				case len(times) < 1000 || call.method == "ListContainers":
				case way.name == "direct":
					busy = p99 > mostDoor/2
				case p99 > mostDoor && busy:
					b.Logf("%s through the door takes %s at the 99th percentile: not judged, the machine is busy", call.method, p99)
				case p99 > mostDoor:
					b.Errorf("%s through the door takes %s at the 99th percentile, more than %s", call.method, p99, mostDoor)
				}
			})
		}
	}
	b.Run("rest", func(b *testing.B) {
		time.Sleep(10 * time.Second) // until what went before has been cleaned up
		begin := []cost{costOf(b, a.process.Process.Pid), costOf(b, runtime.Process())}
		time.Sleep(10 * time.Second)
		for i, name := range []string{"agent", "containerd"} {
			end := costOf(b, []int{a.process.Process.Pid, runtime.Process()}[i])
			b.ReportMetric(float64(end.resident)/(1<<20), name+"-MiB")
			b.ReportMetric(float64(end.ticks-begin[i].ticks), name+"-ticks")
			b.ReportMetric(float64(end.switches-begin[i].switches), name+"-wakes")
			if name != "agent" {
				continue
			}
			if end.resident > mostMemory {
				b.Errorf("the agent takes %d bytes, more than %d", end.resident, mostMemory)
			}
			if end.switches != begin[i].switches {
				b.Errorf("the agent woke %d times while nothing happened", end.switches-begin[i].switches)
			}
		}
	})
}

// cost is what the kernel counts of a process: memory, hundredths of a second on a CPU, and how often it fell
// asleep.
type cost struct{ resident, ticks, switches int }

func costOf(t testing.TB, process int) cost {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", process)
	var u cost
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):])) // from the state on, the third field
	for _, i := range []int{12, 13} {                                       // user and system time
		ticks, err := strconv.Atoi(fields[i])
		if err != nil {
			t.Fatal(err)
		}
		u.ticks += ticks
	}
	u.resident = line(t, dir+"status", "VmRSS:") << 10
	threads, err := filepath.Glob(dir + "task/*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		u.switches += line(t, thread, "voluntary_ctxt_switches:")
	}
	return u
}

func line(t testing.TB, file, name string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(l, name); found {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("%s has no %s", file, name)
	return 0
}
