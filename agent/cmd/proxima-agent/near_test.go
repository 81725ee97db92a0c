package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/nodes"
	"proxima.io/agent/internal/topology"
)

// Where the proxy's program is in the emulated machine.
const proxyInGuest = "/usr/programs/proxima"

// proxyProgram is the program that scripts/build.sh has built; the test is skipped, and says so, where there
// is none.
func proxyProgram(t *testing.T) string {
	t.Helper()
	target := os.Getenv("CARGO_TARGET_DIR")
	if target == "" {
		target = "../../../target"
	}
	program := os.Getenv("PROXIMA_BIN")
	if program == "" {
		program = filepath.Join(target, "quick/proxima")
	}
	if _, err := os.Stat(program); err != nil {
		t.Skipf("skipped: the proxy is not built; sh scripts/build.sh --profile quick builds it, and PROXIMA_BIN names another: %v", err)
	}
	return program
}

// Two memcacheds, their readers and the proxy in pods of their own on two sockets with four NUMA nodes: with
// the agent each reader is served by the memcached beside it.
func TestRealNearReadsInAnEmulatedMachine(t *testing.T) {
	t.Parallel()
	how := lab.Options{Network: true, Files: map[string]string{proxyProgram(t): proxyInGuest}}
	lab.Emulate(t, "TestNearReadsInTheMachine", how)
}

func TestNearReadsInTheMachine(t *testing.T) {
	if !lab.InGuest() {
		t.Skip("skipped: runs in the emulated machine only, see TestRealNearReadsInAnEmulatedMachine")
	}
	machine, err := topology.Read(topology.Dir("/"))
	if err != nil || len(machine.Nodes) != 4 {
		t.Fatalf("%+v %v", machine, err)
	}
	runtime := lab.Start(t, "1.7")
	runtime.Network()
	memcached, proxima := runtime.ImportMemcached(), runtime.ImportProgram(proxyInGuest)
	a := newAgent(t, "--nri-socket", runtime.NRI, "--cri-runtime", runtime.CRI)
	n := &nearReads{t: t, agent: a, kubelet: lab.NewClient(t, runtime.CRI, "v1"), config: t.TempDir()}
	for pair := 1; pair <= 2; pair++ {
		server := n.kubelet.RunPodWithAddress(fmt.Sprint("memcached-", pair), "Guaranteed", nearAnnotations(t, "memcached", pair))
		server.Start(lab.Container{Name: "memcached", Image: memcached, Milli: 1000, Limited: true, Args: []string{"-u", "root", "-m", "64", "-t", "1"}})
		reader := n.kubelet.RunPodWithAddress(fmt.Sprint("reader-", pair), "Burstable", nearAnnotations(t, "reader", pair))
		n.servers = append(n.servers, server.Address())
		n.readers = append(n.readers, reader)
		n.shells = append(n.shells, reader.Run("reader", 100, false))
	}
	n.configure(false)
	proxy := n.kubelet.RunPodWithAddress("proxy", "Burstable", nil)
	proxy.Start(lab.Container{Name: "proxima", Image: proxima, Milli: 100, Args: []string{"run", "--config", "/config/proxima.yaml", "--io", "epoll"},
		Mounts: []lab.Mount{{Host: n.config, Container: "/config", ReadOnly: true}, {Host: a.dir, Container: "/run/proxima-agent", ReadOnly: true}}})
	n.proxy = proxy.Address()
	defer func() {
		if t.Failed() {
			t.Logf("the proxy's log:\n%s", proxy.Log("proxima"))
		}
	}()
	lab.Eventually(t, "the agent has placed all", n.placed)
	lab.Eventually(t, "the proxy reads the first copy, whoever asks", n.followsNobody)

	without := n.share()
	n.configure(true)
	lab.Eventually(t, "the proxy follows the agent", n.follows)
	with := n.share()
	// The agent is gone, as while it is updated: what it told last holds.
	a.kill()
	lab.Eventually(t, "the proxy knows that the agent is gone", func() error {
		if err := n.follows(); err == nil {
			return errors.New("not yet")
		}
		return nil
	})
	gone := n.share()
	a.launch()
	lab.Eventually(t, "the proxy follows the agent again", n.follows)
	again := n.share()
	t.Logf("near reads, through the proxy, which is a third party: %.0f %% without the agent, %.0f %% with it, %.0f %% while it is away, %.0f %% when it is back",
		100*without, 100*with, 100*gone, 100*again)
	if without > 0.5 || with < 1 || gone < 1 || again < 1 {
		t.Error("want at most half without the agent, and all with it")
	}
}

// nearReads is two servers, two readers and the proxy.
type nearReads struct {
	t       *testing.T
	agent   *agent
	kubelet *lab.Client
	config  string // directory
	servers []string
	readers []*lab.Pod
	shells  []string // their containers
	proxy   string
}

// nearAnnotations are those of the example's pod.
func nearAnnotations(t *testing.T, name string, pair int) map[string]string {
	t.Helper()
	return annotationsOf(t, "../../../examples/numa-pair/near.yaml", fmt.Sprint(name, "-", pair), pair)
}

// configure gives the proxy the example's configuration; without the agent it lacks the last line.
func (n *nearReads) configure(agent bool) {
	n.t.Helper()
	text, err := os.ReadFile("../../../examples/numa-pair/proxima.yaml")
	if err != nil {
		n.t.Fatal(err)
	}
	var servers []string
	for _, address := range n.servers {
		servers = append(servers, address+":11211")
	}
	follows := ""
	if agent {
		follows = "nodes: /run/proxima-agent/n.sock" // where this agent has it
	}
	// A connection takes this machine more than half a second at times, after which the next copy would be read.
	pool := "servers: [" + strings.Join(servers, ", ") + "], timeout: 5m, connect_timeout: 5m"
	changed := strings.NewReplacer("dns: memcached:11211", pool, "nodes: agent", follows).Replace(string(text))
	if strings.Contains(changed, "dns:") || strings.Contains(changed, "nodes: agent") {
		n.t.Fatalf("the example is another than this test knows:\n%s", text)
	}
	if err := os.WriteFile(n.config+"/new", []byte(changed), 0o644); err != nil {
		n.t.Fatal(err)
	}
	if err := os.Rename(n.config+"/new", n.config+"/proxima.yaml"); err != nil {
		n.t.Fatal(err)
	}
}

// metric reads one of the proxy's; nothing is 0.
func (n *nearReads) metric(name string) (float64, error) {
	answer, err := (&http.Client{Timeout: time.Minute}).Get("http://" + n.proxy + ":9150/metrics")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name+" "); found {
			var value float64
			_, err := fmt.Sscan(rest, &value)
			return value, err
		}
	}
	return 0, nil
}

// follows tells why the proxy does not follow the agent with every pod's address.
func (n *nearReads) follows() error {
	up, err := n.metric("proxima_agent_up")
	if err == nil && up != 1 {
		err = errors.New("it does not follow")
	}
	if err != nil {
		return err
	}
	pods, err := n.pods()
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if len(pod.IPs) != 1 {
			return fmt.Errorf("%s has the addresses %q", pod.Name, pod.IPs)
		}
	}
	// What the agent tells now has reached the proxy.
	for i, address := range n.servers {
		if err := n.explains(i, "("+address+":11211) of pool copies: distance numa_node by agent"); err != nil {
			return err
		}
	}
	return nil
}

// followsNobody tells why the proxy does not read the first copy for every reader, as it does without an
// agent once it is connected.
func (n *nearReads) followsNobody() error {
	first := "(" + n.servers[0] + ":11211) of pool copies: distance "
	return errors.Join(n.explains(0, first), n.explains(1, first))
}

// explains tells why the proxy's explanation of this reader's reads does not contain a text.
func (n *nearReads) explains(reader int, want string) error {
	answer, err := (&http.Client{Timeout: time.Minute}).Get(fmt.Sprintf("http://%s:9150/explain?key=k&from=%s", n.proxy, n.readers[reader].Address()))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && !strings.Contains(string(text), want) {
		err = fmt.Errorf("no %q in\n%s", want, text)
	}
	return err
}

// pods are those that the agent tells of, by name.
func (n *nearReads) pods() (map[string]nodes.Pod, error) {
	conn, err := net.DialTimeout("unix", n.agent.dir+"/n.sock", time.Minute)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var s nodes.Snapshot
	err = json.Unmarshal(line, &s)
	pods := map[string]nodes.Pod{}
	for _, pod := range s.Pods {
		pods[pod.Name] = pod
	}
	return pods, err
}

// share lets every reader read, and returns how many of the reads were answered by the memcached on the
// reader's own NUMA node. Where those are does not change while the agent is away.
func (n *nearReads) share() float64 {
	n.t.Helper()
	const reads = 50
	near := 0
	for i, reader := range n.readers {
		before := n.gets()
		script := fmt.Sprintf(`(for i in $(/bin/busybox seq %d); do printf 'get k\r\n'; done; printf 'quit\r\n') | /bin/busybox nc %s 11211 | /bin/busybox grep -c END`,
			reads, n.proxy)
		out, err := reader.Exec(n.shells[i], []string{"/bin/busybox", "sh", "-c", script})
		if err != nil || strings.TrimSpace(out) != fmt.Sprint(reads) {
			n.t.Fatalf("reader %d: %q, %v", i+1, out, err)
		}
		after := n.gets()
		for server := range n.servers {
			if got := after[server] - before[server]; got > 0 {
				n.t.Logf("reader-%d on node %s: %d reads at memcached-%d on node %s", i+1, n.node(fmt.Sprint("reader-", i+1)), got, server+1, n.node(fmt.Sprint("memcached-", server+1)))
				if n.node(fmt.Sprint("reader-", i+1)) == n.node(fmt.Sprint("memcached-", server+1)) {
					near += got
				}
			}
		}
	}
	return float64(near) / float64(reads*len(n.readers))
}

// placed tells which pod the agent has not on one NUMA node. A container that the kernel has only begun to
// make has all CPUs for seconds in this machine: the agent doubts it, and pins it once more.
func (n *nearReads) placed() error {
	pods, err := n.pods()
	for i := range n.servers {
		for _, name := range []string{fmt.Sprint("memcached-", i+1), fmt.Sprint("reader-", i+1)} {
			if containers := pods[name].Containers; err == nil && (len(containers) != 1 || len(containers[0].Nodes) != 1) {
				err = fmt.Errorf("%s: %+v", name, pods[name])
			}
		}
	}
	return err
}

// known are the pods' NUMA nodes as the agent told them first.
var known = map[string]string{}

func (n *nearReads) node(pod string) string {
	n.t.Helper()
	if _, told := known[pod]; !told {
		pods, err := n.pods()
		if err != nil || len(pods[pod].Containers) != 1 || len(pods[pod].Containers[0].Nodes) != 1 {
			n.t.Fatalf("%s is not on one node: %+v, %v", pod, pods[pod], err)
		}
		known[pod] = fmt.Sprint(pods[pod].Containers[0].Nodes)
	}
	return known[pod]
}

// gets are the reads that each memcached has answered.
func (n *nearReads) gets() []int {
	n.t.Helper()
	var all []int
	for _, address := range n.servers {
		conn, err := net.DialTimeout("tcp", address+":11211", time.Minute)
		if err != nil {
			n.t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			n.t.Fatal(err)
		}
		fmt.Fprint(conn, "stats\r\nquit\r\n")
		text, err := io.ReadAll(conn)
		conn.Close()
		_, rest, found := strings.Cut(string(text), "STAT cmd_get ")
		var count int
		if _, err2 := fmt.Sscan(rest, &count); err != nil || err2 != nil || !found {
			n.t.Fatalf("%s: %q, %v", address, text, errors.Join(err, err2))
		}
		all = append(all, count)
	}
	return all
}
