// Package lab runs real container runtimes for tests: Debian's containerd with Debian's runc, in a directory of their own,
// with pods that need neither network nor registry.
package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"proxima.io/agent/internal/raw"
)

const (
	image = "localhost/lab:1"
	// cache is where the packages are unpacked; a second run finds them there.
	cache = "/var/cache/proxima-agent-lab"
)

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

// Start starts containerd of a version (1.6 or 1.7). It skips the test, and says so, where it cannot: not root, no apt.
func Start(t testing.TB, version string) *Runtime {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: -short leaves out the lanes with a real runtime")
	}
	if os.Getuid() != 0 {
		t.Skip("skipped: a real container runtime needs root")
	}
	script, err := filepath.Abs("../../testdata/fetch-containerd.sh")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(script, cache).CombinedOutput(); err != nil {
		t.Skipf("skipped: Debian's containerd could not be fetched: %v\n%s", err, out)
	}
	dir, err := os.MkdirTemp("/run", "agent-lab-") // not t.TempDir: the path of a Unix socket must be short
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	r := &Runtime{t: t, version: version, dir: dir, CRI: dir + "/c.sock", NRI: dir + "/nri.sock"}
	t.Cleanup(r.remove)
	r.Launch()
	r.importImage()
	return r
}

const config = `version = 2
root = "DIR/root"
state = "DIR/state"
[grpc]
  address = "DIR/c.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "IMAGE"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  disable_tcp_service = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    default_runtime_name = "runc"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "CACHE/bin/runc"
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "DIR/nri.sock"
  plugin_path = "DIR/plugins"
  plugin_config_path = "DIR/plugins.d"
`

// Launch starts the process, for the first time or again after Kill.
func (r *Runtime) Launch() {
	r.t.Helper()
	text := strings.NewReplacer("DIR", r.dir, "IMAGE", image, "CACHE", cache).Replace(config)
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

func (r *Runtime) importImage() {
	r.t.Helper()
	archive, err := imageArchive(filepath.Join(cache, "bin/busybox"))
	if err != nil {
		r.t.Fatal(err)
	}
	ctr := exec.Command(filepath.Join(cache, r.version, "usr/bin/ctr"), "-a", r.CRI, "-n", "k8s.io",
		"images", "import", "--snapshotter", "native", "-")
	ctr.Stdin = bytes.NewReader(archive)
	if out, err := ctr.CombinedOutput(); err != nil {
		r.t.Fatalf("image: %v\n%s", err, out)
	}
}

// Eventually waits for a condition, half a minute at most.
func Eventually(t testing.TB, what string, condition func() error) {
	t.Helper()
	var err error
	for range 300 {
		if err = condition(); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s: %v", what, err)
}

// Client speaks the CRI in raw messages.
type Client struct {
	t      testing.TB
	conn   *grpc.ClientConn
	prefix string
}

// NewClient makes a client for a socket and a version of the CRI.
func NewClient(t testing.TB, socket, version string) *Client {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw.Codec{})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &Client{t, conn, "/runtime." + version + "."}
}

// Try calls a method of RuntimeService.
func (c *Client) Try(method string, request raw.Message) (raw.Message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	reply := &raw.Frame{}
	err := c.conn.Invoke(ctx, c.prefix+"RuntimeService/"+method, &raw.Frame{Bytes: request}, reply)
	return reply.Bytes, err
}

// Call is Try, and ends the test on an error.
func (c *Client) Call(method string, request raw.Message) raw.Message {
	c.t.Helper()
	reply, err := c.Try(method, request)
	if err != nil {
		c.t.Fatal(fmt.Errorf("%s: %w", method, err))
	}
	return reply
}
