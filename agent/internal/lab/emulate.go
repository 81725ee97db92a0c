package lab

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Options are how a machine is emulated.
type Options struct {
	// Words are told to the test in the machine; see Words.
	Words []string
	// Patience: a machine hangs that has printed nothing for so much time of processors, of which it needs
	// less than half: how long that takes is a matter of who else wants them. The test in it has a limit by
	// the clock, and then shows what it waits for.
	Patience time.Duration
	// Version1 has version 1 of cgroups.
	Version1 bool
	// Kubelet has a kubelet's program (see StartKubelet), and systemd as the first process.
	Kubelet bool
	// Network has what Runtime.Network and ImportMemcached need. It skips the test, and says so, where that
	// could not be fetched.
	Network bool
	// Files are more files for the machine: from here, and to where.
	Files map[string]string
}

const patience = 5 * time.Minute

// Words are what the machine was told.
func Words() []string {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return nil
	}
	for _, word := range strings.Fields(string(line)) {
		if words, ok := strings.CutPrefix(word, "proxima.words="); ok && words != "" {
			return strings.Split(words, ",")
		}
	}
	return nil
}

// guest is set in the emulated machine.
const guest = "PROXIMA_AGENT_GUEST"

// InGuest tells whether the test runs in the emulated machine.
func InGuest() bool { return os.Getenv(guest) != "" }

// Two sockets with two NUMA nodes each; a node has two cores. Nodes of one socket are near. Without cx16 the
// kernel exchanges no 16 bytes at once, in which an emulated one was seen to turn for ever (___slab_alloc).
var machine = strings.Fields(`-accel tcg -cpu Icelake-Server,-cx16 -M q35 -smp 8,sockets=2,cores=4,threads=1 -m 4096
	-nodefaults -display none -serial stdio -no-reboot
	-object memory-backend-ram,id=m0,size=1024M -object memory-backend-ram,id=m1,size=1024M
	-object memory-backend-ram,id=m2,size=1024M -object memory-backend-ram,id=m3,size=1024M
	-numa node,memdev=m0,cpus=0-1 -numa node,memdev=m1,cpus=2-3 -numa node,memdev=m2,cpus=4-5 -numa node,memdev=m3,cpus=6-7
	-numa dist,src=0,dst=1,val=11 -numa dist,src=0,dst=2,val=21 -numa dist,src=0,dst=3,val=21
	-numa dist,src=1,dst=2,val=21 -numa dist,src=1,dst=3,val=21 -numa dist,src=2,dst=3,val=11`)

// The first process. A container's root cannot be pivoted away from the initramfs, so everything moves to a
// tmpfs first.
const start = `#!/bin/busybox sh
/bin/busybox mount -t tmpfs -o size=80% none /new
/bin/busybox cp -a /agent /bin /etc /examples /lib /lib64 /usr /var /run.sh /new/
exec /bin/busybox switch_root /new /run.sh
`

const run = `#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin HOME=/ GOMAXPROCS=2 ` + guest + `=1
if [ "$1" = test ]; then
	cd /agent/cmd/proxima-agent
	./agent.test -test.v -test.timeout 80m -test.run "$(sed 's/.*proxima.test=\([^ ]*\).*/\1/' /proc/cmdline)"
	poweroff -f
fi
mkdir -p /proc /sys /dev /run /tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
if grep -q proxima.version1 /proc/cmdline; then
	mount -t tmpfs none /sys/fs/cgroup
	for c in cpuset cpu cpuacct memory devices freezer pids; do
		mkdir /sys/fs/cgroup/$c
		mount -t cgroup -o $c none /sys/fs/cgroup/$c
	done
	echo 1 >/sys/fs/cgroup/cpuset/cgroup.clone_children
else
	mount -t cgroup2 none /sys/fs/cgroup
fi
mount -t tmpfs none /run
mount -t tmpfs none /tmp
mkdir /dev/shm
mount -t tmpfs none /dev/shm
ip link set lo up
ip address add 10.0.0.1/32 dev lo
if [ -e /lib/systemd/systemd ]; then
	exec /lib/systemd/systemd --unit=lab.service --log-target=console --log-level=warning --show-status=0
fi
exec /run.sh test
`

// unit is the only one of the machine whose first process is systemd.
const unit = `[Unit]
DefaultDependencies=no
[Service]
Delegate=yes
TasksMax=infinity
StandardOutput=null
ExecStart=/bin/sh -c "exec /run.sh test >/dev/console 2>&1"
`

// Emulate runs a test of the calling package in an emulated machine. The machine has containerd 1.7, runc and
// the packages that the other lanes have.
func Emulate(t *testing.T, test string, how Options) {
	t.Helper()
	prepare(t)
	how.Patience = cmp.Or(how.Patience, patience)
	root := t.TempDir()
	build := exec.Command("go", "test", "-c", "-o", root+"/agent/cmd/proxima-agent/agent.test", ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	must(t, build)
	in := cache + "/"
	copied := map[string]string{
		in + "busybox": "", in + "libs/lib": "lib", in + "libs/lib64": "lib64", in + "libs/usr/lib": "usr/lib",
		in + "1.7/usr/bin": in + "1.7/usr/bin", in + "bin": in + "bin", in + "busybox/bin": in + "busybox/bin", in + "redis": in + "redis",
		"../../../examples/numa-pair": "examples/numa-pair",
	}
	written := map[string]string{"/init": start, "/run.sh": run, "/etc/passwd": "root:x:0:0::/:/bin/sh\n",
		"/etc/hosts": "127.0.0.1 localhost\n", "/etc/resolv.conf": ""}
	if how.Kubelet {
		program := kubelet(t)
		copied[program] = program
		for _, dir := range []string{"bin", "lib", "usr/lib"} {
			copied[in+"systemd/"+dir] = dir
		}
		written["/etc/systemd/system/lab.service"] = unit
		written["/etc/machine-id"] = strings.Repeat("ab", 16) + "\n"
		written["/etc/hosts"] += "10.0.0.1 " + node + "\n"
	}
	if how.Network {
		if _, err := os.Stat(in + "net/veth.ko"); err != nil {
			t.Skipf("skipped: what gives pods addresses could not be fetched: %v", err)
		}
		copied[in+"net"], copied[in+"memcached"] = in+"net", in+"memcached"
	}
	maps.Copy(copied, how.Files)
	for from, to := range copied {
		to = filepath.Join(root, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		must(t, exec.Command("cp", "-aT", from, to))
	}
	for path, text := range written {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(root+"/new", 0o755); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "initramfs")
	must(t, exec.Command("sh", "-c", `cd "$1" && find . | "$2" cpio -o -H newc >"$3"`, "sh", root, in+"busybox/bin/busybox", image))
	// The kernel would move pages between nodes by itself, those of running programs among them. To clear a
	// page that it has translated code of takes the emulator minutes, and the machine then seems to hang.
	line := "console=ttyS0 loglevel=5 panic=-1 numa_balancing=disable proxima.test=" + test + " proxima.words=" + strings.Join(how.Words, ",")
	if how.Version1 {
		line += " proxima.version1"
	}
	boot := slices.Concat(machine, []string{"-kernel", in + "vmlinuz", "-initrd", image, "-append", line})
	printed, hangs := emulate(t, boot, how.Patience)
	if hangs {
		// Once in dozens of runs the emulator itself spins and prints nothing more.
		t.Logf("the emulated machine hangs, and is started again; it has printed:\n%s", printed)
		printed, hangs = emulate(t, boot, how.Patience)
	}
	if hangs {
		t.Fatalf("the emulated machine hangs; it has printed:\n%s", printed)
	}
	if !strings.Contains(printed, "--- PASS: "+test) {
		t.Fatalf("the test in the machine did not pass; it said:\n%s", said(printed))
	}
}

// said returns the last ten messages of a test's output, of each the first line. A test that did not pass prints
// the logs of others at its end, which are long.
func said(printed string) string {
	lines := regexp.MustCompile(`(?m)^ +\w+\.go:\d+: .*`).FindAllString(strings.ReplaceAll(printed, "\r", ""), -1)
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// emulate returns what the machine prints until it is off, or hangs.
func emulate(t *testing.T, boot []string, patience time.Duration) (printed string, hangs bool) {
	t.Helper()
	// The machine ends with the thread that has started it, however this process ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	qemu := exec.CommandContext(ctx, "qemu-system-x86_64", boot...)
	qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var console, complaints strings.Builder // of these it has many: what it cannot emulate of the processor
	word := &lastWord{}
	qemu.Stdout, qemu.Stderr = io.MultiWriter(&console, t.Output(), word), &complaints
	if err := qemu.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for ctx.Err() == nil && word.silent(ProcessorTime(qemu.Process.Pid)) < patience {
			time.Sleep(time.Second)
		}
		cancel()
	}()
	err := qemu.Wait()
	if err != nil && ctx.Err() == nil {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
	return console.String(), err != nil
}

// lastWord tells for how long nothing has been written. A kernel whose processor spins says so again and
// again: from then on its own words do not count, until somebody else says something.
type lastWord struct {
	spoken  atomic.Bool
	since   time.Duration // of processors, when something had been written for the last time
	line    []byte        // which has not ended yet
	stalled bool
}

func (w *lastWord) Write(p []byte) (int, error) {
	w.line = append(w.line, p...)
	for {
		line, rest, whole := bytes.Cut(w.line, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		w.line = slices.Clone(rest)
		kernel := bytes.HasPrefix(line, []byte("["))
		w.stalled = kernel && (w.stalled || bytes.Contains(line, []byte("self-detected stall")))
		if !w.stalled {
			w.spoken.Store(true)
		}
	}
}

// silent is how much time of processors has gone by since the last word, of so much in all.
func (w *lastWord) silent(all time.Duration) time.Duration {
	if w.spoken.Swap(false) {
		w.since = all
	}
	return all - w.since
}

// ProcessorTime is how long a process has been running on processors; 0 once it is gone.
func ProcessorTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind its name
	var user, system int64
	if fields := strings.Fields(rest); len(fields) > 12 {
		_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	}
	if err != nil {
		return 0
	}
	return time.Duration(user+system) * time.Second / 100 // the kernel counts hundredths for everybody
}

func must(t testing.TB, c *exec.Cmd) {
	t.Helper()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
}
