package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/status"
	"proxima.io/agent/internal/topology"
)

// A real kubelet without an API server, with systemd's cgroups, in the emulated machine of two sockets and
// four NUMA nodes.
func TestRealKubeletInAnEmulatedMachine(t *testing.T) {
	if !soaking() {
		t.Skip("skipped: for the long runs, make soak; building a kubelet takes minutes")
	}
	lab.Emulate(t, "TestKubeletInTheMachine", lab.Options{Kubelet: true})
}

const podManifest = `apiVersion: v1
kind: Pod
metadata:
  name: NAME
  labels: {app: NAME}
  annotations: {ANNOTATIONS}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
`

const containerManifest = `  - name: NAME
    image: localhost/sleeper:1
    imagePullPolicy: Never
    resources: {RESOURCES}
`

// staticPods are the pods' manifests by name.
func staticPods() map[string]string {
	container := func(name, resources string) string {
		return strings.NewReplacer("NAME", name, "RESOURCES", resources).Replace(containerManifest)
	}
	pod := func(name, annotations string, containers ...string) string {
		return strings.NewReplacer("NAME", name, "ANNOTATIONS", annotations).Replace(podManifest) + "  containers:\n" + strings.Join(containers, "")
	}
	const one = "limits: {cpu: 1, memory: 64Mi}"
	const some = "requests: {cpu: 50m}"
	return map[string]string{
		"cache":  pod("cache", "", container("cache", one)),
		"client": pod("client", `proxima.io/near: "app=cache"`, container("client", some)),
		"far":    pod("far", `proxima.io/cores: whole, proxima.io/far: "app=cache"`, container("far", one)),
		"free":   pod("free", "proxima.io/cpus: unpinned", container("free", some)),
		"many":   pod("many", "proxima.io/cpus.first: exclusive", container("first", one), container("second", one)),
		"best":   pod("best", "", container("best", "")),
	}
}

// places are what the kernel gives to the containers that kubelet runs: the CPUs and memory nodes by
// POD/CONTAINER.
type places map[string]place

type place struct {
	id, sandbox  string
	attempt      int64
	cpus, memory cpuset.Set
}

// placesOf reads them, and tells how they differ from the agent's books.
func placesOf(a *agent, kubelet *lab.Kubelet, want int) (places, error) {
	running, err := kubelet.Running()
	if err != nil {
		return nil, err
	}
	var s engine.Status
	if err := status.Get(context.Background(), a.dir+"/a.sock", "/status", &s); err != nil {
		return nil, err
	}
	if len(running) != want || len(s.Seats) != want || s.Pending > 0 {
		return nil, fmt.Errorf("%d containers run: %v; %d are on the books, %d pending",
			len(running), slices.Sorted(maps.Keys(running)), len(s.Seats), s.Pending)
	}
	byID := map[string]engine.Seat{}
	for _, seat := range s.Seats {
		byID[seat.ID] = seat
		if seat.Lost != "" || seat.Foreign != "" || len(seat.Findings) > 0 || seat.Place.Short != "" {
			return nil, fmt.Errorf("%s: %+v", seat.Pod, seat)
		}
	}
	found := places{}
	for name, r := range running {
		p := place{id: r.ID, sandbox: r.Sandbox, attempt: r.Attempt}
		if p.cpus, err = effective(r.Cgroup, "cpuset.cpus"); err != nil {
			return nil, err
		}
		if p.memory, err = effective(r.Cgroup, "cpuset.mems"); err != nil {
			return nil, err
		}
		books := byID[r.ID].Pin
		if (!books.CPUs.Empty() && !books.CPUs.Equal(p.cpus)) || (!books.Memory.Empty() && !books.Memory.Equal(p.memory)) {
			return nil, fmt.Errorf("%s has CPUs %s and memory %s, and by the books %s", name, p.cpus, p.memory, books)
		}
		found[name] = p
	}
	return found, nil
}

func effective(cgroup, file string) (cpuset.Set, error) {
	text, err := os.ReadFile(filepath.Join(cgroup, file+".effective"))
	if err != nil {
		return cpuset.Set{}, err
	}
	return cpuset.Parse(strings.TrimSpace(string(text)))
}

// looks is how long kubelet may take to look at every pod after its start; it does so every few seconds.
const looks = 30 * time.Second

func TestKubeletInTheMachine(t *testing.T) {
	if !lab.InGuest() {
		t.Skip("skipped: runs in the emulated machine only, see TestRealKubeletInAnEmulatedMachine")
	}
	machine, err := topology.Read(topology.Dir("/"))
	if err != nil {
		t.Fatal(err)
	}
	runtime := lab.Start(t, "1.7")
	a := newAgent(t, "--root", "/", "--nri-socket", runtime.NRI)
	kubelet := runtime.StartKubelet()
	t.Log("kubelet runs")
	pods := staticPods()
	containers := 0
	var now places
	// settles waits until kernel and books agree, and a condition holds of what they say.
	settles := func(what string, holds func(is places) error) {
		t.Helper()
		lab.Eventually(t, what, func() error {
			is, err := placesOf(a, kubelet, containers)
			if err != nil {
				return err
			}
			now = is
			return holds(is)
		})
		for _, name := range slices.Sorted(maps.Keys(now)) {
			t.Logf("%s: %s (attempt %d) has CPUs %s and memory %s", what, name, now[name].attempt, now[name].cpus, now[name].memory)
		}
	}
	// Either of the two may be the first to start. It has a socket, as a container without a limit has, if
	// that is the client.
	kubelet.Apply("client", pods["client"])
	kubelet.Apply("cache", pods["cache"])
	containers = 2
	settles("two run, and one wants to be near the other", func(places) error { return nil })
	for name, manifest := range pods {
		kubelet.Apply(name, manifest)
	}
	containers = len(pods) + 1 // many has two
	settles("the pods run where their annotations say", func(is places) error { return asAnnotated(machine, is) })
	first := now

	// stays says that every container is the same one, with the same CPUs, but those that were started again.
	// A pod that kubelet itself has made anew is another one: it is placed like any that comes.
	stays := func(again ...string) func(is places) error {
		return func(is places) error {
			var wrong []error
			for name, was := range first {
				p := is[name]
				if pod, _, _ := strings.Cut(name, "/"); p.sandbox != was.sandbox && kubelet.Renews(pod) {
					t.Logf("kubelet has made %s anew: it had CPUs %s, and has %s", pod, was.cpus, p.cpus)
					continue
				}
				if !p.cpus.Equal(was.cpus) || !p.memory.Equal(was.memory) {
					wrong = append(wrong, fmt.Errorf("%s had CPUs %s, memory %s, and has %s, %s", name, was.cpus, was.memory, p.cpus, p.memory))
				}
				if started := slices.Contains(again, name); started != (p.id != was.id) || started != (p.attempt == was.attempt+1) {
					wrong = append(wrong, fmt.Errorf("%s was %s, attempt %d, and is %s, attempt %d", name, was.id, was.attempt, p.id, p.attempt))
				}
			}
			return errors.Join(wrong...)
		}
	}

	told := repaired(t, a)
	kubelet.Kill()
	kubelet.Launch()
	time.Sleep(looks)
	settles("kubelet was started again", stays())
	if now := repaired(t, a); now != told {
		t.Errorf("kubelet was started again: %d containers were told something", now-told)
	}
	if out, err := exec.Command("/bin/systemctl", "daemon-reload").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	settles("systemd has read its units again, and set what they say", stays())

	killed := []string{"cache/cache", "client/client", "many/second", "far/far"}
	for _, name := range killed {
		end(t, kubelet, name)
	}
	settles("four containers were started again in their pods", stays(killed...))
	first = now

	a.kill()
	end(t, kubelet, "cache/cache")
	lab.Eventually(t, "a container is started again without the agent", func() error {
		running, err := kubelet.Running()
		if err == nil && (running["cache/cache"].Attempt != 2 || len(running) != containers) {
			return fmt.Errorf("%+v", running["cache/cache"])
		}
		return err
	})
	a.launch()
	settles("the agent is back", stays("cache/cache"))
	first = now

	kubelet.Kill()
	a.kill()
	runtime.Kill()
	runtime.Launch()
	a.launch()
	kubelet.Launch()
	time.Sleep(looks)
	settles("kubelet, agent and runtime were started again", stays())

	kubelet.Apply("far", "")
	containers--
	settles("a pod is gone", func(is places) error {
		if is["free/free"].cpus.Len() != 8 || !is["cache/cache"].cpus.Equal(first["cache/cache"].cpus) {
			return fmt.Errorf("%+v", is)
		}
		return nil
	})
	kubelet.Apply("far", pods["far"])
	containers++
	settles("and back", func(is places) error { return asAnnotated(machine, is) })

	for line := range strings.Lines(kubelet.Log()) {
		if strings.Contains(line, "Error syncing pod") && !strings.Contains(line, "CrashLoopBackOff") { // for those that were killed
			t.Errorf("kubelet says: %s", line)
		}
	}
}

// asAnnotated tells how places differ from what the pods' annotations and resources say.
func asAnnotated(machine *topology.Topology, is places) error {
	var wrong []error
	expect := func(holds bool, format string, args ...any) {
		if !holds {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	nodes := func(name string) cpuset.Set { return machine.NodesOf(is[name].cpus) }
	own := map[string]int{"cache/cache": 1, "far/far": 1, "many/first": 1, "many/second": 1}
	for name, count := range own {
		p := is[name]
		expect(p.cpus.Len() == count, "%s has CPUs %s, is due %d", name, p.cpus, count)
		expect(nodes(name).Len() == 1 && p.memory.Equal(nodes(name)), "%s is on nodes %s with memory of %s", name, nodes(name), p.memory)
		for other, o := range is {
			expect(other == name || other == "free/free" || !o.cpus.Meets(p.cpus), "%s has CPUs of %s: %s", other, name, o.cpus)
		}
	}
	expect(nodes("cache/cache").Within(nodes("client/client")), "client has CPUs %s, cache %s", is["client/client"].cpus, is["cache/cache"].cpus)
	expect(len(sockets(machine, is["client/client"].cpus.Union(is["cache/cache"].cpus))) == 1, "client and cache are on two sockets")
	expect(!nodes("far/far").Meets(nodes("cache/cache")), "far is on nodes %s, cache on %s", nodes("far/far"), nodes("cache/cache"))
	expect(is["free/free"].cpus.Len() == len(machine.CPUs), "free has CPUs %s", is["free/free"].cpus)
	expect(is["best/best"].cpus.Len() > 0, "best has no CPU")
	return errors.Join(wrong...)
}

// sockets are those of CPUs.
func sockets(machine *topology.Topology, cpus cpuset.Set) map[int]bool {
	found := map[int]bool{}
	for _, id := range cpus.IDs() {
		cpu, _ := machine.CPU(id)
		found[cpu.Socket] = true
	}
	return found
}

// repaired is how many updates the agent has made outside of a request.
func repaired(t *testing.T, a *agent) int {
	t.Helper()
	var s engine.Status
	if err := status.Get(context.Background(), a.dir+"/a.sock", "/status", &s); err != nil {
		t.Fatal(err)
	}
	return s.Counters.Repaired
}

// end ends a container's process, as a crash would.
func end(t *testing.T, kubelet *lab.Kubelet, name string) {
	t.Helper()
	running, err := kubelet.Running()
	if err != nil {
		t.Fatal(err)
	}
	procs, err := os.ReadFile(filepath.Join(running[name].Cgroup, "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	process, err := strconv.Atoi(strings.TrimSpace(string(procs)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := syscall.Kill(process, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
