package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/topology"
)

// asKubectl makes the test binary a kubectl whose cluster is the test that listens on this socket.
const asKubectl = "PROXIMA_AGENT_TEST_CLUSTER"

// kubectl asks the test, and returns the exit code.
func kubectl(socket string) int {
	call := clusterCall{Args: os.Args[1:]}
	if strings.Contains(strings.Join(call.Args, " "), "--filename=-") {
		input, err := io.ReadAll(os.Stdin)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		call.Input = string(input)
	}
	body, err := json.Marshal(call)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	response, err := client.Post("http://cluster/", "application/json", bytes.NewReader(body))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer response.Body.Close()
	out := os.Stdout
	if response.StatusCode != http.StatusOK {
		out = os.Stderr
	}
	if _, err := io.Copy(out, response.Body); err != nil || response.StatusCode != http.StatusOK {
		return 1
	}
	return 0
}

type clusterCall struct {
	Args  []string
	Input string
}

// cluster is one emulated node behind the few verbs of kubectl that measure.sh uses. The pods' CPUs and
// memory are scaled to it.
type cluster struct {
	t       *testing.T
	kubelet *lab.Client
	image   string

	mu         sync.Mutex
	pods       map[string]*lab.Pod
	containers map[string]string
	namespaces []string
	deleted    []string
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var call clusterCall
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	said, err := c.answer(call)
	if err != nil {
		w.WriteHeader(http.StatusConflict)
		said = err.Error() + "\n"
	}
	_, _ = io.WriteString(w, said) // fails only where the script has gone
}

func (c *cluster) answer(call clusterCall) (string, error) {
	args := call.Args
	if namespace, ok := strings.CutPrefix(args[0], "--namespace="); ok {
		if len(c.namespaces) != 1 || namespace != c.namespaces[0] {
			return "", fmt.Errorf("no namespace %s", namespace)
		}
		args = args[1:]
	}
	switch line := strings.Join(args, " "); {
	case strings.HasPrefix(line, "get node "):
		return "node/emulated\n", nil
	case strings.HasPrefix(line, "create namespace "):
		c.namespaces = append(c.namespaces, args[2])
		return "", nil
	case strings.HasPrefix(line, "delete namespace "):
		c.deleted = append(c.deleted, args[2])
		return "", nil
	case strings.HasPrefix(line, "annotate --local "):
		return c.annotate(call.Input, args[len(args)-1])
	case strings.HasPrefix(line, "apply "):
		return "", c.apply(call.Input)
	case strings.HasPrefix(line, "wait "):
		return "", nil
	case strings.HasPrefix(line, "get pod redis-1 "):
		return "127.0.0.1", nil
	case strings.HasPrefix(line, "delete pod redis-1 memtier-1 "):
		for _, pod := range c.pods {
			pod.Remove()
		}
		clear(c.pods)
		return "", nil
	case strings.HasPrefix(line, "exec "):
		return c.pods[args[1]].Exec(c.containers[args[1]], args[3:])
	}
	return "", fmt.Errorf("kubectl %q is not known here", args)
}

type podYAML struct {
	Kind     string
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
	Spec struct {
		Containers []struct {
			Name          string
			Args, Command []string
		}
	}
}

func (c *cluster) annotate(text, annotation string) (string, error) {
	var out bytes.Buffer
	key, value, _ := strings.Cut(annotation, "=")
	for documents := yaml.NewDecoder(strings.NewReader(text)); ; {
		var pod map[string]any
		if err := documents.Decode(&pod); errors.Is(err, io.EOF) {
			return out.String(), nil
		} else if err != nil {
			return "", err
		}
		metadata := pod["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
		}
		annotations[key] = value
		metadata["annotations"] = annotations
		one, err := yaml.Marshal(pod)
		if err != nil {
			return "", err
		}
		out.WriteString("---\n" + string(one))
	}
}

func (c *cluster) apply(text string) error {
	for documents := yaml.NewDecoder(strings.NewReader(text)); ; {
		var p podYAML
		if err := documents.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		from := p.Spec.Containers[0]
		pod := c.kubelet.RunPod(p.Metadata.Name, "Guaranteed", p.Metadata.Annotations)
		one := lab.Container{Name: from.Name, Image: c.image, Command: from.Command, Milli: 1000, Limited: true, Memory: 256}
		if len(from.Args) > 0 {
			one.Command, one.Args = from.Args[:1], from.Args[1:]
		}
		c.pods[p.Metadata.Name], c.containers[p.Metadata.Name] = pod, pod.Start(one)
	}
}

// memtier_benchmark is not Debian's; redis-benchmark's figures stand where memtier's do.
const memtier = `#!/bin/sh
for word in "$@"; do case $word in --server=*) server=${word#*=} ;; esac; done
until redis-cli -h "$server" ping >/dev/null 2>&1; do sleep 1; done
redis-benchmark -h "$server" -t set -n 300 -c 2 --csv | tail -n 1 | awk -F'"' '{ print "Totals", $4, 0, 0, $6, $10, $14 }'
`

func TestRealMeasureInAnEmulatedMachine(t *testing.T) {
	if !soaking() {
		t.Skip("skipped: for the long runs, make soak; TestMeasureDeletesWhatItMade runs measure.sh without a machine")
	}
	lab.Emulate(t, "TestMeasureInTheMachine", lab.Options{})
}

// measure.sh as it stands, on two sockets: with the agent both sit in one, on CPUs of their own; without,
// everywhere.
func TestMeasureInTheMachine(t *testing.T) {
	if !lab.InGuest() {
		t.Skip("skipped: runs in the emulated machine only, see TestRealMeasureInAnEmulatedMachine")
	}
	machine, err := topology.Read(topology.Dir("/"))
	if err != nil {
		t.Fatal(err)
	}
	runtime := lab.Start(t, "1.7")
	image := runtime.ImportRedisAnd(map[string]string{"usr/bin/memtier_benchmark": memtier}, "sh", "grep", "cat", "sleep", "tail", "awk")
	newAgent(t, "--nri-socket", runtime.NRI)
	c := &cluster{t: t, kubelet: lab.NewClient(t, runtime.CRI, "v1"), image: image, pods: map[string]*lab.Pod{}, containers: map[string]string{}}
	dir := shortDir(t)
	listener, err := net.Listen("unix", dir+"/c.sock")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = http.Serve(listener, c) }() // ends with the listener
	defer listener.Close()
	program, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kubectl"),
		[]byte("#!/bin/sh\nexport "+asKubectl+"="+dir+"/c.sock\nexec "+program+` "$@"`+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	measure := exec.Command("sh", "../../../examples/numa-pair/measure.sh", "emulated", "1", "1")
	measure.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := measure.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "| operations/s |") {
		t.Fatal(err)
	}
	sockets := map[string]int{}
	for line := range strings.Lines(string(out)) {
		var pod, list string
		if _, err := fmt.Sscanf(strings.ReplaceAll(line, "\t", " "), "agent: %s Cpus_allowed_list: %s", &pod, &list); err != nil {
			continue
		}
		var cpu int
		if _, err := fmt.Sscan(list, &cpu); err != nil {
			t.Errorf("%s has %q with the agent, want one CPU", pod, list)
		}
		known, _ := machine.CPU(cpu)
		sockets[pod] = known.Socket
	}
	if len(sockets) != 2 || sockets["redis-1"] != sockets["memtier-1"] {
		t.Errorf("sockets %v", sockets)
	}
	if len(c.namespaces) != 1 || len(c.deleted) != 1 || c.deleted[0] != c.namespaces[0] {
		t.Errorf("made %v, deleted %v", c.namespaces, c.deleted)
	}
}
