package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"proxima.io/agent/internal/raw"
)

// Where kubelet is built, below the cache; its version is that of the module in testdata/kubelet.
const kubeletDir = cache + "/kubelet"

const (
	node    = "lab"             // the node's name
	static  = "/run/lab-pods"   // where kubelet finds manifests
	healthy = "127.0.0.1:10248" // where kubelet says that it is
	module  = "../../testdata/kubelet"
)

// kubelet builds kubelet's program from its Go modules, which takes minutes, and returns its path. A second
// run finds it there. It skips the test, and says so, where the modules cannot be fetched.
func kubelet(t testing.TB) string {
	t.Helper()
	list := exec.Command("go", "list", "-C", module, "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	version, err := list.Output()
	if err != nil {
		t.Skipf("skipped: kubelet's modules cannot be fetched: %v", err)
	}
	program := filepath.Join(kubeletDir, strings.TrimSpace(string(version)), "kubelet")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-C", module, "-trimpath", "-o", program+".new",
		"-ldflags=-s -w -X k8s.io/component-base/version.gitVersion="+strings.TrimSpace(string(version)), "k8s.io/kubernetes/cmd/kubelet")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("skipped: kubelet cannot be built: %v\n%s", err, out)
	}
	must(t, exec.Command("mv", program+".new", program))
	return program
}

// Kubelet is a kubelet without an API server: it runs the pods whose manifests are in a directory.
type Kubelet struct {
	t       testing.TB
	runtime *Runtime
	process *exec.Cmd
}

// The emulated machine has no disk that kubelet could look after, and is slow; beside that, the options are
// kubelet's defaults.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: ` + static + `
containerRuntimeEndpoint: unix://SOCKET
cgroupDriver: systemd
authentication: {webhook: {enabled: false}, anonymous: {enabled: true}}
authorization: {mode: AlwaysAllow}
enableServer: false
localStorageCapacityIsolation: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 1Mi}
fileCheckFrequency: 1s
syncFrequency: 5s
runtimeRequestTimeout: 10m
makeIPTablesUtilChains: false
failSwapOn: false
`

// StartKubelet starts kubelet in the emulated machine, for the runtime.
func (r *Runtime) StartKubelet() *Kubelet {
	r.t.Helper()
	k := &Kubelet{t: r.t, runtime: r}
	if err := os.MkdirAll(static, 0o755); err != nil {
		r.t.Fatal(err)
	}
	config := strings.ReplaceAll(kubeletConfig, "SOCKET", r.CRI)
	if err := os.WriteFile(r.dir+"/kubelet.yaml", []byte(config), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if r.t.Failed() {
			lines := slices.DeleteFunc(strings.Split(k.Log(), "\n"), func(line string) bool {
				// It says these of every pod every few seconds: what it did and why would be lost among them.
				return strings.Contains(line, "kubelet_node_status.go") || strings.Contains(line, "Creating a mirror pod")
			})
			r.t.Logf("kubelet's last words:\n%s", strings.Join(lines[max(0, len(lines)-100):], "\n"))
		}
		k.Kill()
	})
	k.Launch()
	return k
}

// Launch starts the process, for the first time or again after Kill.
func (k *Kubelet) Launch() {
	k.t.Helper()
	found, err := filepath.Glob(kubeletDir + "/*/kubelet")
	if err != nil || len(found) != 1 {
		k.t.Fatalf("kubelet's program: %v, %v", found, err)
	}
	log, err := os.OpenFile(k.runtime.dir+"/kubelet.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		k.t.Fatal(err)
	}
	defer log.Close()
	k.process = exec.Command(found[0], "--config", k.runtime.dir+"/kubelet.yaml", "--hostname-override", node, "--v=2")
	k.process.Stdout, k.process.Stderr = log, log
	if err := k.process.Start(); err != nil {
		k.t.Fatal(err)
	}
	Eventually(k.t, "kubelet is healthy", func() error {
		answer, err := http.Get("http://" + healthy + "/healthz")
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", answer.Status)
		}
		return nil
	})
}

// Kill kills the process; pods run on.
func (k *Kubelet) Kill() {
	if k.process == nil {
		return
	}
	// Fails only where the process has ended already.
	_ = k.process.Process.Kill()
	_ = k.process.Wait()
}

// Log returns what kubelet has logged.
func (k *Kubelet) Log() string {
	text, err := os.ReadFile(k.runtime.dir + "/kubelet.log")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Apply gives kubelet a pod's manifest, or takes it away where there is no text.
func (k *Kubelet) Apply(name, manifest string) {
	k.t.Helper()
	path := filepath.Join(static, name+".yaml")
	if manifest == "" {
		if err := os.Remove(path); err != nil {
			k.t.Fatal(err)
		}
		return
	}
	// By another name first: kubelet may look while it is being written, but passes over what begins with a
	// dot.
	hidden := filepath.Join(static, "."+name)
	if err := os.WriteFile(hidden, []byte(manifest), 0o644); err != nil {
		k.t.Fatal(err)
	}
	if err := os.Rename(hidden, path); err != nil {
		k.t.Fatal(err)
	}
}

// Running is a container that kubelet has started.
type Running struct {
	ID      string
	Sandbox string // id of its pod in the runtime
	Attempt int64  // how often it was started before in its pod
	Cgroup  string // directory
}

// Running returns the containers that run, by POD/CONTAINER.
func (k *Kubelet) Running() (map[string]Running, error) {
	const isRunning = 1
	list, err := NewClient(k.t, k.runtime.CRI, "v1").Try("ListContainers", nil)
	if err != nil {
		return nil, err
	}
	cgroups, err := cgroupsOf("/sys/fs/cgroup/kubepods.slice")
	if err != nil {
		return nil, err
	}
	running := map[string]Running{}
	for _, c := range list.All(1) {
		if c.Number(6) != isRunning {
			continue
		}
		labels := c.Labels(8)
		name := strings.TrimSuffix(labels["io.kubernetes.pod.name"], "-"+node) + "/" + labels["io.kubernetes.container.name"]
		if before, ok := running[name]; ok {
			return nil, fmt.Errorf("%s runs twice: %s and %s", name, before.ID, c.Text(1))
		}
		running[name] = Running{ID: c.Text(1), Sandbox: c.Text(2), Attempt: attempt(c), Cgroup: cgroups[c.Text(1)]}
	}
	return running, nil
}

// Renews tells whether kubelet has said that it makes a pod anew because it finds no sandbox of it that is
// ready. The runtime can have that effect by itself: after its own restart, it takes a sandbox for lost whose
// shim does not answer in time.
func (k *Kubelet) Renews(pod string) bool {
	for line := range strings.Lines(k.Log()) {
		if strings.Contains(line, "Need to start a new one") && strings.Contains(line, pod+"-"+node) {
			return true
		}
	}
	return false
}

func attempt(container raw.Message) int64 { return container.At(3).Number(2) }

// cgroupsOf finds the cgroups of containers below a directory, as systemd names them.
func cgroupsOf(root string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != root {
			return nil // its container has ended since its directory was read
		}
		if err != nil {
			return err
		}
		id, ok := strings.CutPrefix(strings.TrimSuffix(entry.Name(), ".scope"), "cri-containerd-")
		if ok && entry.IsDir() {
			found[id] = path
		}
		return nil
	})
	return found, err
}
