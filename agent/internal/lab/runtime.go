// Package lab runs real container runtimes for tests: Debian's containerd with Debian's runc, in a directory
// of their own, with pods that need neither network nor registry.
package lab

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"proxima.io/agent/internal/raw"
)

const (
	// sleeper is an image that sleeps. It serves as the pods' pause image too.
	sleeper = "localhost/sleeper:1"
	// RedisImage has Debian's redis-server and redis-tools; see ImportRedis.
	RedisImage = "localhost/redis:1"
	// cache is where the packages are unpacked; a second run finds them there.
	cache = "/var/cache/proxima-agent-lab"
)

var sleep = []string{"/bin/busybox", "sleep", "100000"}

// Runtime is one containerd.
type Runtime struct {
	t       testing.TB
	version string
	dir     string
	process *exec.Cmd
	log     *os.File
	CRI     string // socket
	NRI     string // socket
}

// Start starts containerd of a version (1.6, 1.7 or 2.1). It skips the test, and says so, where it cannot:
// not root, no apt.
func Start(t testing.TB, version string) *Runtime {
	t.Helper()
	prepare(t)
	if _, err := os.Stat(filepath.Join(cache, version, "usr/bin/containerd")); err != nil {
		t.Skipf("skipped: containerd %s could not be fetched: %v", version, err)
	}
	dir, err := os.MkdirTemp("/run", "agent-lab-") // not t.TempDir: the path of a Unix socket must be short
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	r := &Runtime{t: t, version: version, dir: dir, CRI: dir + "/c.sock", NRI: dir + "/nri/nri.sock"}
	t.Cleanup(r.remove)
	r.Launch()
	r.importDirectory(sleeper, "busybox", sleep)
	return r
}

const config = `version = 2
root = "DIR/root"
state = "DIR/state"
[grpc]
  address = "DIR/c.sock"
[timeouts]
  "io.containerd.timeout.shim.load" = "SHIM"
  "io.containerd.timeout.task.state" = "PATIENCE"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "IMAGE"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  disable_tcp_service = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "CACHE/net/cni"
    conf_dir = "DIR/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    default_runtime_name = "runc"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "CACHE/bin/runc"
      SystemdCgroup = SYSTEMD
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "DIR/nri/nri.sock"
  plugin_path = "DIR/plugins"
  plugin_config_path = "DIR/plugins.d"
  plugin_request_timeout = "PATIENCE"
`

// Containerd 2 has other sections.
const config2 = `version = 3
root = "DIR/root"
state = "DIR/state"
[grpc]
  address = "DIR/c.sock"
[timeouts]
  "io.containerd.timeout.shim.load" = "SHIM"
  "io.containerd.timeout.task.state" = "PATIENCE"
[plugins."io.containerd.grpc.v1.cri"]
  disable_tcp_service = true
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "IMAGE"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "CACHE/bin/runc"
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "DIR/nri/nri.sock"
  plugin_path = "DIR/plugins"
  plugin_config_path = "DIR/plugins.d"
  plugin_request_timeout = "PATIENCE"
`

// Launch starts the process, for the first time or again after Kill. Time-outs are the default ones; a
// runtime that starts again in an emulated machine would give up containers of which it does not hear within
// seconds.
func (r *Runtime) Launch() {
	r.t.Helper()
	text := config
	if strings.HasPrefix(r.version, "2") {
		text = config2
	}
	text = strings.NewReplacer("SYSTEMD", strconv.FormatBool(underSystemd()), "PATIENCE", waits(2*time.Second).String(),
		"SHIM", waits(5*time.Second).String(), "DIR", r.dir, "IMAGE", sleeper, "CACHE", cache).Replace(text)
	if err := os.WriteFile(r.dir+"/config.toml", []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	var err error
	if r.log, err = os.OpenFile(r.dir+"/log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		r.t.Fatal(err)
	}
	bin := filepath.Join(cache, r.version, "usr/bin")
	r.process = exec.Command(bin+"/containerd", "--config", r.dir+"/config.toml")
	r.process.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	r.process.Stdout, r.process.Stderr = r.log, r.log
	if err := r.process.Start(); err != nil {
		r.t.Fatal(err)
	}
	Eventually(r.t, "containerd answers", func() error {
		_, err := NewClient(r.t, r.CRI, "v1alpha2").Try("Version", nil)
		if err != nil && r.version != "1.6" { // 1.7 answers to v1 for certain
			_, err = NewClient(r.t, r.CRI, "v1").Try("Version", nil)
		}
		return err
	})
}

// Kill kills the process; its containers run on.
func (r *Runtime) Kill() {
	// Fails only where the process has ended already.
	_ = r.process.Process.Kill()
	_ = r.process.Wait()
	r.log.Close()
}

// Process returns the id of the process.
func (r *Runtime) Process() int { return r.process.Process.Pid }

// Log returns what containerd has logged.
func (r *Runtime) Log() string {
	text, err := os.ReadFile(r.dir + "/log")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (r *Runtime) remove() {
	if r.t.Failed() {
		lines := strings.Split(r.Log(), "\n")
		r.t.Logf("containerd's last words:\n%s", strings.Join(lines[max(0, len(lines)-30):], "\n"))
	}
	client := NewClient(r.t, r.CRI, "v1")
	if pods, err := client.Try("ListPodSandbox", nil); err == nil {
		for _, p := range pods.All(1) {
			// The pod goes with the directory in any case; this is for its processes.
			_, _ = client.Try("StopPodSandbox", raw.Message(nil).With(p.Text(1), 1))
			_, _ = client.Try("RemovePodSandbox", raw.Message(nil).With(p.Text(1), 1))
		}
	}
	r.Kill()
	removeCgroups()
	if err := os.RemoveAll(r.dir); err != nil {
		r.t.Logf("left behind: %v", err)
	}
}

// network gives each pod that has a network of its own an address, and a pair of interfaces to the node.
const network = `{"cniVersion": "0.4.0", "name": "lab", "plugins": [{"type": "ptp", "ipam": {"type": "host-local", "dataDir": "DIR/addresses",
	"ranges": [[{"subnet": "10.77.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}`

// Network lets pods have networks of their own (see RunPodWithAddress), in an emulated machine. It skips the
// test, and says so, where it cannot.
func (r *Runtime) Network() {
	r.t.Helper()
	module, err := os.Open(cache + "/net/veth.ko")
	if err != nil {
		r.t.Skipf("skipped: what gives pods addresses could not be fetched: %v", err)
	}
	defer module.Close()
	// Of a machine that has it in its kernel, or loaded, nothing is to be done.
	if err := unix.FinitModule(int(module.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		r.t.Fatal(err)
	}
	if err := os.MkdirAll(r.dir+"/net.d", 0o755); err != nil {
		r.t.Fatal(err)
	}
	text := strings.ReplaceAll(network, "DIR", r.dir)
	if err := os.WriteFile(r.dir+"/net.d/10-lab.conflist", []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	Eventually(r.t, "containerd has a network", func() error {
		reply, err := NewClient(r.t, r.CRI, "v1").Try("Status", nil)
		if err != nil {
			return err
		}
		for _, condition := range reply.At(1).All(1) {
			if condition.Text(1) == "NetworkReady" && condition.Number(2) == 0 {
				return errors.New(condition.Text(4))
			}
		}
		return nil
	})
}

// ImportMemcached makes an image known that has memcached, and returns its name.
func (r *Runtime) ImportMemcached() string {
	r.t.Helper()
	const name = "localhost/memcached:1"
	root := r.t.TempDir()
	if out, err := exec.Command("cp", "-a", filepath.Join(cache, "memcached")+"/.", root).CombinedOutput(); err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	// It wants to know as whom it runs.
	if err := os.WriteFile(root+"/etc/passwd", []byte("root:x:0:0::/:/bin/sh\n"), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.importTree(name, root, []string{"/usr/bin/memcached"})
	return name
}

// ImportProgram makes an image known that is one program, linked statically, and returns its name.
func (r *Runtime) ImportProgram(program string) string {
	r.t.Helper()
	name := "localhost/" + filepath.Base(program) + ":1"
	root := r.t.TempDir()
	if out, err := exec.Command("cp", program, root+"/").CombinedOutput(); err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	r.importTree(name, root, []string{"/" + filepath.Base(program)})
	return name
}

// ImportRedis makes RedisImage known to the runtime.
func (r *Runtime) ImportRedis() {
	r.t.Helper()
	r.importDirectory(RedisImage, "redis", []string{"/usr/bin/redis-server"})
}

// ImportRedisAnd makes an image known that has Redis, some of busybox's programs, and files besides. It
// returns the image's name.
func (r *Runtime) ImportRedisAnd(files map[string]string, programs ...string) string {
	r.t.Helper()
	const name = "localhost/redis-and:1"
	root := r.t.TempDir()
	copied, err := exec.Command("cp", "-a", filepath.Join(cache, "redis")+"/.", root).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v\n%s", err, copied)
	}
	busybox, err := os.ReadFile(filepath.Join(cache, "busybox/bin/busybox"))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.MkdirAll(root+"/bin", 0o755); err != nil {
		r.t.Fatal(err)
	}
	for _, program := range programs {
		if err := os.WriteFile(filepath.Join(root, "bin", program), busybox, 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	for path, text := range files {
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	image, err := imageArchive(name, root, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Import(image)
	return name
}

func (r *Runtime) importDirectory(name, dir string, entrypoint []string) {
	r.t.Helper()
	r.importTree(name, filepath.Join(cache, dir), entrypoint)
}

func (r *Runtime) importTree(name, root string, entrypoint []string) {
	r.t.Helper()
	archive, err := imageArchive(name, root, entrypoint)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Import(archive)
}

// Import makes an image known that is packed as `docker save` does.
func (r *Runtime) Import(archive []byte) {
	r.t.Helper()
	args := []string{"-a", r.CRI, "-n", "k8s.io", "images", "import", "--snapshotter", "native", "-"}
	if strings.HasPrefix(r.version, "2") { // whose own way to unpack knows one snapshotter only
		args = slices.Insert(args, len(args)-1, "--local")
	}
	ctr := exec.Command(filepath.Join(cache, r.version, "usr/bin/ctr"), args...)
	ctr.Stdin = bytes.NewReader(archive)
	if out, err := ctr.CombinedOutput(); err != nil {
		r.t.Fatalf("image: %v\n%s", err, out)
	}
}

// underSystemd tells whether systemd has the cgroups: it is the first process of an emulated machine.
// Elsewhere the tests keep out of its way.
func underSystemd() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil && InGuest()
}

// waits is how long to wait for what takes less than that on any real machine; an emulated one is slower.
func waits(d time.Duration) time.Duration {
	if InGuest() {
		return 15 * d
	}
	return d
}

// Eventually waits for a condition, half a minute at most. In an emulated machine that is minutes, and it
// says what it waits for.
func Eventually(t testing.TB, what string, condition func() error) {
	t.Helper()
	var err error
	said := time.Now()
	for end := time.Now().Add(waits(30 * time.Second)); time.Now().Before(end); {
		if err = condition(); err == nil {
			return
		}
		if time.Since(said) > time.Minute {
			t.Logf("not yet: %s: %v", what, err)
			said = time.Now()
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s: %v", what, err)
}
