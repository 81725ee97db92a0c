package config

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func log(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// Kubernetes swaps a symbolic link to change a mounted ConfigMap.
func TestWatchSeesAConfigMapSwap(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"1", "2"} {
		if err := os.Mkdir(filepath.Join(dir, "..v"+version), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "..v"+version, "default"), "colocatePods: "+map[string]string{"1": "false", "2": "true"}[version])
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..v1", "..data")
	link("..data/default", "default")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen := make(chan string, 100)
	go Watch(ctx, log(t), func() {
		o, err := Load(dir, Where{})
		switch {
		case err != nil:
			seen <- err.Error()
		case o.ColocatePods:
			seen <- "the second version"
		default:
			seen <- "the first version"
		}
	}, dir)
	next := func() string {
		t.Helper()
		select {
		case is := <-seen:
			return is
		case <-time.After(20 * time.Second):
			t.Fatal("nothing was read")
			return ""
		}
	}
	if is := next(); is != "the first version" { // the watch is set before it is read
		t.Fatalf("at the start: %s", is)
	}
	link("..v2", "..tmp")
	if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if is := next(); is != "the second version" {
		t.Errorf("after the swap: %s", is)
	}
}

// await reads what was seen until it is this.
func await(t *testing.T, seen <-chan string, want string) {
	t.Helper()
	is := "nothing"
	for late := time.After(20 * time.Second); is != want; {
		select {
		case is = <-seen:
		case <-late:
			t.Fatalf("%s was not seen, but %s", want, is)
		}
	}
}

func TestOnlyItsOwnFilesWakeTheWatch(t *testing.T) {
	for changed, want := range map[string]bool{
		"/etc/a/agent.yaml": true, "/etc/a/..data": true, "/etc/a/agent.yaml/default": true, "/etc/a/state.json": false, "/etc/a": true, "/etc": true, "/et": false, "/etc/a/agent.yaml~": false,
	} {
		if concerns(changed, "/etc/a/agent.yaml") != want {
			t.Errorf("%s: want %t", changed, want)
		}
	}
}

// A directory of layers that is made, or removed and made again, while the agent runs, and those above it.
func TestWatchSeesADirectoryThatIsMadeLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc", "proxima-agent", "config")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen := make(chan string, 100)
	go Watch(ctx, log(t), func() {
		o, err := Load(dir, Where{})
		_, missing := os.Stat(dir)
		switch {
		case err == nil && o.ColocatePods:
			seen <- "the layer"
		case missing != nil:
			seen <- "no directory"
		default:
			seen <- "an empty directory"
		}
	}, dir)
	await(t, seen, "no directory") // the watch is set before it is read
	for range 2 {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		await(t, seen, "an empty directory")
		write(t, filepath.Join(dir, "default"), "colocatePods: true")
		await(t, seen, "the layer")
		if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
			t.Fatal(err)
		}
		await(t, seen, "no directory")
	}
}

// /var/run is a link to /run: two paths, one directory.
func TestWatchSeesOneDirectoryUnderTwoNames(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("run", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen := make(chan string, 100)
	go Watch(ctx, log(t), func() {
		is := "nothing"
		for _, name := range []string{"run/cri", "run/cri/socket"} {
			if _, err := os.Stat(filepath.Join(root, name)); err == nil {
				is = name
			}
		}
		seen <- is
	}, filepath.Join(root, "link/cri/socket"), filepath.Join(root, "run/cri/socket"))
	await(t, seen, "nothing") // the watch is set before it is read
	if err := os.Mkdir(filepath.Join(root, "run/cri"), 0o755); err != nil {
		t.Fatal(err)
	}
	await(t, seen, "run/cri")
	write(t, filepath.Join(root, "run/cri/socket"), "")
	await(t, seen, "run/cri/socket")
}

// Other programs of the node may have used up what the kernel has for watching. The test runs itself again in
// a user namespace that has none of it, as nobody else's may be taken.
func TestWithoutInotifyTheConfigurationIsReadNowAndThen(t *testing.T) {
	const inside = "PROXIMA_NO_INOTIFY"
	if os.Getenv(inside) == "" {
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), inside+"=1")
		again.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := again.CombinedOutput()
		if err != nil && len(out) == 0 {
			t.Skipf("skipped: no user namespace to be had: %v", err)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	const instances = "/proc/sys/user/max_inotify_instances"
	if err := os.WriteFile(instances, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	read := make(chan struct{})
	seen := func() bool {
		select {
		case <-read:
			return true
		case <-time.After(2 * time.Second):
			return false
		}
	}
	path := write(t, filepath.Join(t.TempDir(), "agent.yaml"), "default: {}")
	go watch(ctx, log(t), 10*time.Millisecond, func() { read <- struct{}{} }, path)
	for range 2 {
		if !seen() {
			t.Fatal("nothing is read again without inotify")
		}
	}
	if err := os.WriteFile(instances, []byte("100"), 0); err != nil {
		t.Fatal(err)
	}
	for seen() { // until it can watch, and is asleep
	}
	write(t, path, "default: {pinCPU: false}")
	if !seen() {
		t.Error("a change is not seen after inotify is back")
	}
}
