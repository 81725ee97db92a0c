package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/topology"
)

// The example's pair on two sockets with four NUMA nodes: what this machine lacks is emulated, and shows the
// placement (not the speed). A node has two CPUs: one for Redis alone, the other for the client and whoever
// else comes.
func TestRealPairInAnEmulatedMachine(t *testing.T) {
	t.Parallel()
	lab.Emulate(t, "TestInTheMachine", lab.Options{})
}

const redisPort = "6390"

func TestInTheMachine(t *testing.T) {
	if !lab.InGuest() {
		t.Skip("skipped: runs in the emulated machine only, see TestRealPairInAnEmulatedMachine")
	}
	machine, err := topology.Read(topology.Dir("/"))
	if err != nil || len(machine.Nodes) != 4 || len(machine.CPUs) != 8 {
		t.Fatalf("%+v %v", machine, err)
	}
	runtime := lab.Start(t, "1.7")
	runtime.ImportRedis()
	// Socket 0 is somebody else's, so that the pair cannot end on node 0 by chance.
	options := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(options, []byte(`default: {availableResources: {cpu: "cpuset:4-7"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, "--nri-socket", runtime.NRI, "--config", options)
	kubelet := lab.NewClient(t, runtime.CRI, "v1")
	redis := kubelet.RunPod("redis-1", "Guaranteed", annotations(t, "redis-1"))
	r := redis.Start(lab.Container{Name: "redis", Image: lab.RedisImage, Milli: 1000, Limited: true, Memory: 256,
		Args: []string{"--port", redisPort, "--save", "", "--bind", "127.0.0.1"}})
	memtier := kubelet.RunPod("memtier-1", "Burstable", annotations(t, "memtier-1"))
	m := memtier.Start(lab.Container{Name: "memtier", Image: lab.RedisImage, Milli: 500, Memory: 128,
		Command: []string{"/usr/bin/redis-benchmark", "-p", redisPort, "-t", "set", "-l", "-n", "20000", "-r", "20000", "-d", "1000", "-c", "2", "-P", "16"}})
	at(t, machine, redis, r, 2)
	at(t, machine, memtier, m, 2)

	lab.Eventually(t, "Redis answers, and holds what the client wrote", func() error { return answers("DBSIZE\r\n", 1000) })
	process, err := redis.Process(r)
	if err != nil {
		t.Fatal(err)
	}
	lab.Eventually(t, "Redis's memory is on node 2", func() error {
		pages, err := anonymous(process)
		if err != nil {
			return err
		}
		total := pages[0] + pages[1] + pages[2] + pages[3]
		t.Logf("anonymous pages of Redis by node: %v", pages)
		if total < 1000 || pages[2]*100 < total*97 {
			return fmt.Errorf("%d of %d anonymous pages are on node 2", pages[2], total)
		}
		return nil
	})

	// Agent and runtime are started again: no page moves, and no CPU.
	before, err := anonymous(process)
	if err != nil {
		t.Fatal(err)
	}
	a.kill()
	runtime.Kill()
	runtime.Launch()
	a.launch()
	at(t, machine, redis, r, 2)
	after, err := anonymous(process)
	if err != nil {
		t.Fatal(err)
	}
	for node := range 4 {
		if moved := after[node] - before[node]; moved < -100 || (node != 2 && moved > 100) {
			t.Errorf("anonymous pages of Redis by node: %v, after the restarts %v", before, after)
		}
	}

	// One of its node's CPUs goes, the client's: Redis stays, and the client is where there is a CPU near.
	owns, err := redis.CPUs(r)
	if err != nil {
		t.Fatal(err)
	}
	other := map[string]int{"4": 5, "5": 4}[owns]
	online(t, other, false)
	lab.Eventually(t, "Redis stays, and the client runs", func() error {
		is, err := redis.CPUs(r)
		client, err2 := memtier.CPUs(m)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if is != owns || client == "" || strings.Contains(client, strconv.Itoa(other)) {
			return fmt.Errorf("Redis has %q, had %q; the client has %q", is, owns, client)
		}
		return nil
	})
	online(t, other, true)
}

// online lets a CPU come or go.
func online(t *testing.T, cpu int, comes bool) {
	t.Helper()
	word := "0"
	if comes {
		word = "1"
	}
	if err := os.WriteFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu), []byte(word), 0); err != nil {
		t.Fatal(err)
	}
}

// at checks that a container may use CPUs and memory of one NUMA node only.
func at(t *testing.T, machine *topology.Topology, pod *lab.Pod, id string, node int) {
	t.Helper()
	list, err := pod.CPUs(id)
	if err != nil {
		t.Fatal(err)
	}
	cpus, err := cpuset.Parse(list)
	if err != nil || cpus.Empty() || !cpus.Within(machine.Nodes[node].CPUs) {
		t.Errorf("CPUs %q (%v), want some of node %d: %s", list, err, node, machine.Nodes[node].CPUs)
	}
	if memory, err := pod.Memory(id); err != nil || memory != strconv.Itoa(node) {
		t.Errorf("memory nodes %q, want %d; %v", memory, node, err)
	}
	t.Logf("CPUs %s, memory node %d", list, node)
}

// annotations are those that the example's pod carries.
func annotations(t *testing.T, pod string) map[string]string {
	t.Helper()
	return annotationsOf(t, "../../../examples/numa-pair/pair.yaml", pod, 1)
}

// annotationsOf are those of a pod of a pair in a file.
func annotationsOf(t *testing.T, file, pod string, pair int) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	documents := yaml.NewDecoder(bytes.NewReader(bytes.ReplaceAll(text, []byte("$n"), []byte(strconv.Itoa(pair)))))
	for {
		var p struct {
			Metadata struct {
				Name        string
				Annotations map[string]string
			}
		}
		if err := documents.Decode(&p); err != nil {
			t.Fatalf("%s: %v", pod, err)
		}
		if p.Metadata.Name == pod {
			return p.Metadata.Annotations
		}
	}
}

// answers asks Redis for a number and wants it to be at least so large.
func answers(command string, least int) error {
	conn, err := net.DialTimeout("tcp", "127.0.0.1:"+redisPort, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte(command)); err != nil {
		return err
	}
	reply := make([]byte, 100)
	n, err := conn.Read(reply)
	if err != nil {
		return err
	}
	number, found := strings.CutPrefix(strings.TrimSpace(string(reply[:n])), ":")
	if got, err := strconv.Atoi(number); !found || err != nil || got < least {
		return fmt.Errorf("answer %q, want a number from %d", reply[:n], least)
	}
	return nil
}

// anonymous counts a process's anonymous pages by NUMA node. Pages of files stay where they were first read.
func anonymous(process int) (map[int]int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/numa_maps", process))
	if err != nil {
		return nil, err
	}
	pages := map[int]int{}
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, " anon=") {
			continue
		}
		for _, field := range strings.Fields(line) {
			if node, count, found := strings.Cut(field, "="); found && strings.HasPrefix(node, "N") {
				id, err := strconv.Atoi(node[1:])
				n, err2 := strconv.Atoi(count)
				if err == nil && err2 == nil {
					pages[id] += n
				}
			}
		}
	}
	return pages, nil
}
