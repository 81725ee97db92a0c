package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/status"
	"proxima.io/agent/internal/topology"
)

// asAgent makes the test binary the agent: a real process, to be killed for real.
const asAgent = "PROXIMA_AGENT_TEST_ARGS"

func TestMain(m *testing.M) {
	if socket, ok := os.LookupEnv(asKubectl); ok {
		os.Exit(kubectl(socket))
	}
	if args, ok := os.LookupEnv(asAgent); ok {
		if err := dispatch(strings.Split(args, "\n"), os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// agent is one agent process after the other, with the same state.
type agent struct {
	t       testing.TB
	dir     string
	args    []string
	process *exec.Cmd
}

func newAgent(t testing.TB, args ...string) *agent {
	t.Helper()
	dir := shortDir(t)
	a := &agent{t: t, dir: dir}
	a.args = append([]string{"run", "--root", nodeRoot(t), "--socket", dir + "/a.sock", "--state", dir + "/state.json", "--nodes-socket", dir + "/n.sock"}, args...)
	t.Cleanup(func() {
		if a.process != nil {
			a.kill()
		}
		if t.Failed() {
			log, err := os.ReadFile(dir + "/log")
			t.Logf("the agent's log (%v):\n%s", err, log)
		}
	})
	a.launch()
	return a
}

// shortDir is a directory for sockets, whose paths must be short.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/run", "agent-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// nodeRoot is a root directory with this machine's /sys and nothing that pins containers.
func nodeRoot(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Symlink("/sys", filepath.Join(root, "sys")); err != nil {
		t.Fatal(err)
	}
	return root
}

func (a *agent) launch() {
	a.t.Helper()
	log, err := os.OpenFile(a.dir+"/log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		a.t.Fatal(err)
	}
	defer log.Close()
	a.process = exec.Command(os.Args[0])
	a.process.Env = append(os.Environ(), asAgent+"="+strings.Join(a.args, "\n"))
	a.process.Stdout, a.process.Stderr = log, log
	if err := a.process.Start(); err != nil {
		a.t.Fatal(err)
	}
	lab.Eventually(a.t, "the agent is connected", func() error {
		var s engine.Status
		err := status.Get(context.Background(), a.dir+"/a.sock", "/status", &s)
		if err == nil && !s.Connected {
			return fmt.Errorf("not yet")
		}
		return err
	})
}

func (a *agent) kill() {
	// Fails only where the process has ended already.
	_ = a.process.Process.Kill()
	_ = a.process.Wait()
	a.process = nil
}

// cpus waits until a container's cgroup has the CPUs.
func cpus(t *testing.T, what string, p *lab.Pod, id, want string) {
	t.Helper()
	lab.Eventually(t, what, func() error {
		got, err := p.CPUs(id)
		if err == nil && got != want {
			return fmt.Errorf("CPUs %q, want %q", got, want)
		}
		return err
	})
}

// machine returns all CPUs of this machine, the first core's and the others, or skips where there are too few
// to see anything.
func machineCPUs(t *testing.T) (all, first, rest string) {
	t.Helper()
	m, err := topology.Read(topology.Dir("/"))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.CPUs) < 2 || len(m.Nodes) != 1 {
		t.Skipf("skipped: written for one NUMA node with two CPUs or more, here are %d and %d", len(m.Nodes), len(m.CPUs))
	}
	one := cpuset.Of(m.CPUs[0].ID)
	return m.Online.String(), one.String(), m.Online.Minus(one).String()
}

// story is what must hold behind either door: through it kubelet talks, past it somebody who does not wait
// for the agent.
func story(t *testing.T, runtime *lab.Runtime, a *agent, through, past *lab.Client) {
	all, first, rest := machineCPUs(t)

	sharer := through.RunPod("sharer", "Burstable", nil)
	s := sharer.Run("web", 100, false)
	cpus(t, "a sharer roams", sharer, s, all)

	redis := through.RunPod("redis", "Guaranteed", map[string]string{"proxima.io/near": "app=client"})
	r := redis.Run("redis", 1000, true)
	cpus(t, "redis has a CPU of its own", redis, r, first)
	cpus(t, "the sharer is re-pinned", sharer, s, rest)
	if nodes, err := redis.Memory(r); err != nil || nodes != "0" {
		t.Errorf("redis's memory nodes: %q, %v", nodes, err)
	}

	a.kill()
	late := past.RunPod("late", "Burstable", nil)
	l := late.Run("late", 100, false)
	a.launch()
	cpus(t, "who came while the agent was dead is placed", late, l, rest)
	cpus(t, "and redis keeps its CPU", redis, r, first)

	runtime.Kill()
	runtime.Launch()
	lab.Eventually(t, "a pod can be started after the runtime's restart", func() error {
		_, err := through.Try("ListPodSandbox", nil)
		return err
	})
	var later *lab.Pod
	lab.Eventually(t, "the agent is connected again", func() error {
		var st engine.Status
		err := status.Get(context.Background(), a.dir+"/a.sock", "/status", &st)
		if err == nil && (!st.Connected || len(st.Seats) < 3) {
			return fmt.Errorf("connected %t, %d containers", st.Connected, len(st.Seats))
		}
		return err
	})
	later = through.RunPod("later", "Burstable", nil)
	n := later.Run("later", 100, false)
	cpus(t, "placed after the runtime's restart", later, n, rest)
	cpus(t, "redis keeps its CPU", redis, r, first)

	a.kill()
	runtime.Kill()
	runtime.Launch()
	a.launch()
	cpus(t, "both were dead: redis keeps its CPU", redis, r, first)

	redis.Stop(r)
	cpus(t, "what redis had is given back", sharer, s, all)
	again := redis.Run("redis", 1000, true)
	cpus(t, "back in the same pod it has the same CPU", redis, again, first)
	redis.Remove()
	cpus(t, "the pod is gone", sharer, s, all)

	var st engine.Status
	if err := status.Get(context.Background(), a.dir+"/a.sock", "/status", &st); err != nil || len(st.Seats) != 3 || st.Counters.Faults > 0 {
		t.Errorf("%d containers on the books, %d faults, %v", len(st.Seats), st.Counters.Faults, err)
	}

	last := through.RunPod("last", "Guaranteed", nil)
	o := last.Run("last", 1000, true)
	lab.Eventually(t, "one more with a CPU of its own", func() error {
		got, err := last.CPUs(o)
		if err == nil && got == all {
			return fmt.Errorf("CPUs %q", got)
		}
		return err
	})
	if err := dispatch([]string{"release", "--socket", a.dir + "/a.sock"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	a.kill()
	cpus(t, "the agent is removed: who had his own CPU roams", last, o, all)
	cpus(t, "and who had not", sharer, s, all)
	cpus(t, "and who came later", later, n, all)
}

// A container that ends by itself gives back what it had, without anybody stopping it.
func TestRealEnds(t *testing.T) {
	runtime := lab.Start(t, "1.7")
	newAgent(t, "--nri-socket", runtime.NRI)
	all, first, rest := machineCPUs(t)
	kubelet := lab.NewClient(t, runtime.CRI, "v1")
	sharer := kubelet.RunPod("sharer", "Burstable", nil)
	s := sharer.Run("web", 100, false)
	job := kubelet.RunPod("job", "Guaranteed", nil)
	j := job.Start(lab.Container{Name: "job", Command: []string{"/bin/busybox", "sleep", "2"}, Milli: 1000, Limited: true})
	cpus(t, "the job has its own CPU", job, j, first)
	cpus(t, "the sharer makes room", sharer, s, rest)
	cpus(t, "the job has ended", sharer, s, all)
}

// Kubelet from 1.27 can follow containers by a stream: through the door too.
func TestRealEventsThroughTheCRIDoor(t *testing.T) {
	runtime := lab.Start(t, "1.7")
	listen := filepath.Join(filepath.Dir(runtime.CRI), "proxy.sock")
	newAgent(t, "--cri-listen", listen, "--cri-runtime", runtime.CRI)
	through := lab.NewClient(t, listen, "v1")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events, err := through.Events(ctx)
	if err != nil {
		t.Fatal(err)
	}
	pod := through.RunPod("watched", "Burstable", nil)
	id := pod.Run("c", 100, false)
	pod.Stop(id)
	const created, deleted = 0, 3
	var seen []int64
	deadline := time.After(time.Minute)
	for len(seen) == 0 || seen[len(seen)-1] != deleted {
		select {
		case e, ok := <-events:
			if !ok {
				t.Fatalf("the stream ended after %v", seen)
			}
			if e.Text(1) == id {
				seen = append(seen, e.Number(2))
			}
		case <-deadline:
			t.Fatalf("only %v", seen)
		}
	}
	if seen[0] != created || len(seen) != 4 {
		t.Errorf("events %v, want created, started, stopped, deleted", seen)
	}
}

func TestRealContainerdWithNRI(t *testing.T) {
	for _, version := range []string{"1.7", "2.1"} {
		t.Run(version, func(t *testing.T) {
			runtime := lab.Start(t, version)
			a := newAgent(t, "--nri-socket", runtime.NRI)
			kubelet := lab.NewClient(t, runtime.CRI, "v1")
			story(t, runtime, a, kubelet, kubelet)
		})
	}
}

// Containerd 1.6 has no NRI. Kubelet before 1.23 speaks only the CRI's old version, later ones the new.
func TestRealContainerdBehindTheCRIDoor(t *testing.T) {
	for _, version := range []string{"v1", "v1alpha2"} {
		t.Run(version, func(t *testing.T) {
			runtime := lab.Start(t, "1.6")
			listen := filepath.Join(filepath.Dir(runtime.CRI), "proxy.sock")
			a := newAgent(t, "--cri-listen", listen, "--cri-runtime", runtime.CRI)
			story(t, runtime, a, lab.NewClient(t, listen, version), lab.NewClient(t, runtime.CRI, version))
		})
	}
}
