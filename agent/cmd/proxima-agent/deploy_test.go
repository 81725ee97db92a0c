package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"proxima.io/agent/deploy"
	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/status"
)

// daemonSet is the part of a manifest that says what runs, and with what.
type daemonSet struct {
	Kind string
	Data map[string]string // of a ConfigMap
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Image string
					Args  []string
					Env   []struct {
						Name, Value string
					}
					SecurityContext struct {
						ReadOnlyRootFilesystem bool `yaml:"readOnlyRootFilesystem"`
						Capabilities           struct{ Drop []string }
					} `yaml:"securityContext"`
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
						ReadOnly  bool   `yaml:"readOnly"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name     string
					HostPath *struct{ Path string } `yaml:"hostPath"`
				}
			}
		}
	}
}

// containerOf makes the container that kubelet would make of a manifest. Directories of the node are taken
// from a node that is a directory; the ConfigMap becomes files, as kubelet makes them.
func containerOf(t *testing.T, manifest, node string, where map[string]string) lab.Container {
	t.Helper()
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var c lab.Container
	config := t.TempDir()
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	for {
		var d daemonSet
		if err := decoder.Decode(&d); errors.Is(err, io.EOF) {
			return c
		} else if err != nil {
			t.Fatal(err)
		}
		for name, layer := range d.Data {
			if err := os.WriteFile(filepath.Join(config, name), []byte(layer), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if d.Kind != "DaemonSet" {
			continue
		}
		spec := d.Spec.Template.Spec
		from := spec.Containers[0]
		c = lab.Container{Name: "agent", Image: from.Image, Args: from.Args, Milli: 20, Env: map[string]string{},
			ReadOnly: from.SecurityContext.ReadOnlyRootFilesystem, NoPrivileges: from.SecurityContext.Capabilities.Drop[0] == "ALL"}
		for _, e := range from.Env {
			c.Env[e.Name] = e.Value
		}
		c.Env["NODE_NAME"] = "worker-1"
		dirs := map[string]string{}
		for _, v := range spec.Volumes {
			switch {
			case v.HostPath == nil:
				dirs[v.Name] = t.TempDir()
			case where[v.HostPath.Path] != "":
				dirs[v.Name] = where[v.HostPath.Path]
			default:
				dirs[v.Name] = filepath.Join(node, v.HostPath.Path)
				if err := os.MkdirAll(dirs[v.Name], 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
		dirs["config"] = config
		for _, m := range from.VolumeMounts {
			c.Mounts = append(c.Mounts, lab.Mount{Host: dirs[m.Name], Container: m.MountPath, ReadOnly: m.ReadOnly})
		}
	}
}

func agentImage(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	if out, err := exec.Command("sh", "../../deploy/image.sh", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	image, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// What nri.yaml says, run by containerd: the image as it is built, its arguments, its directories, no
// privilege.
func TestRealDaemonSet(t *testing.T) {
	runtime := lab.Start(t, "1.7")
	all, _, _ := machineCPUs(t)
	node := shortDir(t)
	// Kubelet's directory is elsewhere on this node: the one setting of the manifest.
	elsewhere := filepath.Join(node, "srv/kubelet")
	if err := errors.Join(os.MkdirAll(elsewhere+"/pods/uid/secret", 0o755),
		os.WriteFile(elsewhere+"/cpu_manager_state", []byte(`{"policyName":"none"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	runtime.Import(agentImage(t))
	kubelet := lab.NewClient(t, runtime.CRI, "v1")
	pod := kubelet.RunPod("proxima-agent", "Burstable", nil)
	c := containerOf(t, "../../deploy/nri.yaml", node,
		map[string]string{"/sys": "/sys", "/var/run/nri": filepath.Dir(runtime.NRI), "/var/lib/kubelet": elsewhere})
	c.Args = onFreePort(t, c.Args)
	id := pod.Start(c)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the pod's log:\n%s", pod.Log("agent"))
		}
	})
	socket := filepath.Join(node, "run/proxima-agent/agent.sock")
	var s engine.Status
	lab.Eventually(t, "the agent in the pod is connected", func() error {
		err := status.Get(context.Background(), socket, "/status", &s)
		if err == nil && !s.Connected {
			return errors.New("not yet")
		}
		return err
	})
	if s.Passive != "" || len(s.Notes) > 0 {
		t.Errorf("passive %q, notes %q", s.Passive, s.Notes)
	}
	for path, want := range map[string]int{"/live": 200, "/ready": 200, "/metrics": 200} { // as the probes and Prometheus ask
		response, err := http.Get("http://127.0.0.1" + portOf(c.Args) + path)
		if err != nil || response.StatusCode != want {
			t.Fatalf("%s: %v %v", path, response, err)
		}
		response.Body.Close()
	}
	process, err := pod.Process(id)
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := os.ReadDir(fmt.Sprintf("/proc/%d/root/host/kubelet/pods", process)); err != nil || len(seen) > 0 {
		t.Errorf("the agent sees the pods' volumes: %v %v", seen, err)
	}

	if seen, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/host/kubelet/cpu_manager_state", process)); err != nil || !strings.Contains(string(seen), "none") {
		t.Errorf("the agent does not see what kubelet keeps: %q %v", seen, err)
	}

	redis := kubelet.RunPod("redis", "Guaranteed", nil)
	r := redis.Run("redis", 1000, true)
	lab.Eventually(t, "redis is placed by the agent in the pod", func() error {
		if err := status.Get(context.Background(), socket, "/status", &s); err != nil {
			return err
		}
		got, err := redis.CPUs(r)
		if err == nil && (got == all || got != pinOf(s, r)) {
			return fmt.Errorf("CPUs %q, the agent says %q", got, pinOf(s, r))
		}
		return err
	})
	if s.Counters.Faults > 0 || len(s.Seats) != 2 {
		t.Errorf("%+v", s)
	}
}

func pinOf(s engine.Status, id string) string {
	for _, seat := range s.Seats {
		if seat.ID == id {
			return seat.Pin.CPUs.String()
		}
	}
	return "nothing"
}

// onFreePort replaces the port, which the tests' node (this machine) may have given to somebody.
func onFreePort(t *testing.T, args []string) []string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	changed := make([]string, len(args))
	for i, a := range args {
		changed[i] = a
		if strings.HasPrefix(a, "--http=") {
			changed[i] = "--http=:" + port
		}
	}
	return changed
}

func portOf(args []string) string {
	for _, a := range args {
		if port, ok := strings.CutPrefix(a, "--http="); ok {
			return port
		}
	}
	return ""
}

// What cri.yaml's pod does, and that systemd has nothing to say about the unit.
func TestInstallOfTheCRIDoor(t *testing.T) {
	root, layers := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(layers, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("default", "pinCPU: true")
	write("node.old", "pinCPU: false")
	t.Setenv("NODE_NAME", "worker-1")
	args := []string{"install", "--root", root, "--config", layers}
	if err := dispatch(args, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(layers, "node.old")); err != nil {
		t.Fatal(err)
	}
	if err := dispatch(args, io.Discard); err != nil { // over an older one
		t.Fatal(err)
	}
	found, err := filepath.Glob(root + "/etc/proxima-agent/config/*")
	if err != nil || len(found) != 1 || filepath.Base(found[0]) != "default" {
		t.Errorf("layers on the node: %v %v", found, err)
	}
	if node, err := os.ReadFile(root + "/etc/proxima-agent/node.env"); err != nil || !strings.Contains(string(node), "NODE_NAME=worker-1\n") {
		t.Errorf("%s %v", node, err)
	}
	if !strings.Contains(string(deploy.Unit), "\nRuntimeDirectoryPreserve=yes\n") {
		t.Error("at its stop the service removes its runtime directories, and CRI-RM's socket with one of them")
	}
	program := root + "/usr/local/bin/proxima-agent"
	if info, err := os.Stat(program); err != nil || info.Mode().Perm() != 0o755 {
		t.Fatalf("%v %v", info, err)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("skipped: systemd-analyze is missing, the unit is not verified")
	}
	unit, err := os.ReadFile(root + "/etc/systemd/system/proxima-agent.service")
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(t.TempDir(), "proxima-agent.service")
	text := strings.ReplaceAll(string(unit), "/usr/local/bin/proxima-agent", program)
	if err := os.WriteFile(here, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", here).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
