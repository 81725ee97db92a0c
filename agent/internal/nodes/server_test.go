package nodes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"proxima.io/agent/internal/topology"
)

// world is what is told, to be changed.
type world struct {
	mu     sync.Mutex
	now    Snapshot
	next   chan struct{}
	asked  int // how often it was looked at
	server *Server
	path   string
	log    *bytes.Buffer
	end    func()
}

func (w *world) set(pods ...Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now.Pods = append([]Pod{}, pods...)
	close(w.next)
	w.next = make(chan struct{})
}

func (w *world) looks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

func newWorld(t *testing.T, readers Readers, settings ...func(*Server)) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "nodes") // the path of a Unix socket must be short
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	shape, err := topology.ParseShape("sockets=2,nodes=2,cores=2")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := topology.Read(shape.Recording())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{now: Of("worker-7", machine, nil), next: make(chan struct{}), path: dir + "/n.sock", log: &bytes.Buffer{}}
	w.server = &Server{Readers: readers, Log: slog.New(slog.NewTextHandler(w.log, nil)),
		Now: func() Snapshot {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.asked++
			return w.now
		},
		Changed: func() <-chan struct{} {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.next
		}}
	for _, set := range settings {
		set(w.server)
	}
	l, err := w.server.Listen(w.path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Serve(ctx, l) }()
	w.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	t.Cleanup(w.end)
	return w
}

func pod(name string, nodes ...int) Pod {
	return Pod{UID: "u-" + name, Namespace: "default", Name: name, IPs: []string{"10.0.0.1"}, Containers: []Container{{ID: "id-" + name, Name: "c", Nodes: nodes}}}
}

// follower reads lines; every wait is bounded, so that what never comes fails the test.
type follower struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (w *world) follow(t *testing.T) *follower {
	t.Helper()
	conn, err := net.Dial("unix", w.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &follower{t, conn, bufio.NewReaderSize(conn, 1<<20)}
}

func (f *follower) line() (string, error) {
	if err := f.conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return "", err
	}
	return f.in.ReadString('\n')
}

func (f *follower) snapshot() Snapshot {
	f.t.Helper()
	line, err := f.line()
	if err != nil {
		f.t.Fatal(err)
	}
	var s Snapshot
	if err := json.Unmarshal([]byte(line), &s); err != nil {
		f.t.Fatal(err, line)
	}
	return s
}

// until reads on until the pods are these.
func (f *follower) until(names ...string) {
	f.t.Helper()
	for {
		var has []string
		for _, p := range f.snapshot().Pods {
			has = append(has, p.Name)
		}
		if slices.Equal(has, names) {
			return
		}
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func TestFollowersLearnOfEveryChange(t *testing.T) {
	w := newWorld(t, Readers{})
	one, other := w.follow(t), w.follow(t)
	first := one.snapshot()
	if first.Version != 1 || first.Host != "worker-7" || len(first.Nodes) != 4 || len(first.Pods) != 0 {
		t.Errorf("%+v", first)
	}
	if n := first.Nodes[2]; n.ID != 2 || !slices.Equal(n.Sockets, []int{1}) || n.CPUs != "4-5" || n.Distances["2"] != 10 || n.Distances["3"] != 12 || n.Distances["0"] != 21 {
		t.Errorf("node 2 is told as %+v", n)
	}
	w.set(pod("a", 0))
	one.until("a")
	other.until("a")
	w.set(pod("a", 0), pod("b", 1))
	other.until("a", "b")
	late := w.follow(t)
	late.until("a", "b")
	w.set()
	for _, f := range []*follower{one, other, late} {
		f.until()
	}
}

// A change that leaves everything as it was is not told. Many changes at once are told as one.
func TestOnlyChangesAreTold(t *testing.T) {
	w := newWorld(t, Readers{})
	f := w.follow(t)
	f.snapshot()
	for range 5 {
		before := w.looks()
		w.set()
		eventually(t, "it is looked again", func() bool { return w.looks() > before })
	}
	for n := range 500 {
		w.set(pod(fmt.Sprint(n), 0))
	}
	if first := f.snapshot(); len(first.Pods) != 1 {
		t.Errorf("a line without a change: %+v", first)
	}
	looks := w.looks()
	if looks > 100 {
		t.Errorf("looked %d times at 505 changes", looks)
	}
}

// Nothing is done while nobody follows, and nothing is left of those who have gone.
func TestNothingIsDoneWhileNobodyFollows(t *testing.T) {
	asked := make(chan context.Context, 2)
	w := newWorld(t, Readers{}, func(s *Server) { s.Followed = func(ctx context.Context) { asked <- ctx } })
	before := runtime.NumGoroutine()
	w.set(pod("a", 0))
	if w.looks() != 0 {
		t.Error("it was looked for nobody")
	}
	f := w.follow(t)
	f.until("a")
	ctx := <-asked
	f.conn.Close()
	eventually(t, "the last follower's end is noticed", func() bool { return ctx.Err() != nil })
	looks := w.looks()
	for n := range 10 {
		w.set(pod(fmt.Sprint(n), 0))
	}
	eventually(t, "its goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	if w.looks() != looks {
		t.Error("it was looked for one who has gone")
	}
	again := w.follow(t)
	again.until("9")
}

// A follower that reads nothing is closed when a line has waited too long. The others are told meanwhile.
func TestSlowFollowerIsClosedAndTheOthersAreTold(t *testing.T) {
	w := newWorld(t, Readers{}, func(s *Server) { s.patience = 300 * time.Millisecond })
	slow, quick := w.follow(t), w.follow(t)
	quick.snapshot()
	big := make([]Pod, 5000) // more than a socket takes
	for n := range big {
		big[n] = pod(fmt.Sprintf("p%d", n), 0)
	}
	w.set(big...)
	if n := len(quick.snapshot().Pods); n != 5000 {
		t.Errorf("%d pods", n)
	}
	eventually(t, "the slow one is closed", func() bool {
		w.server.mu.Lock()
		defer w.server.mu.Unlock()
		return w.server.followers == 1
	})
	w.set(pod("after", 1))
	quick.until("after")
	// What was sent before can be read, and then it ends in the middle of a line.
	for {
		if _, err := slow.line(); err != nil {
			break
		}
	}
	w.end()
	if !strings.Contains(w.log.String(), "takes nothing") {
		t.Error(w.log.String())
	}
}

func TestFollowerThatSendsSomethingIsClosed(t *testing.T) {
	w := newWorld(t, Readers{})
	f := w.follow(t)
	f.snapshot()
	if _, err := f.conn.Write([]byte("GET / HTTP/1.1\r\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := f.line(); err == nil {
		t.Errorf("%q", line)
	}
}

func TestFollowerBeyondTheLimitIsRefusedWithTheReason(t *testing.T) {
	w := newWorld(t, Readers{})
	var all []*follower
	for range most {
		f := w.follow(t)
		f.snapshot()
		all = append(all, f)
	}
	if line, _ := w.follow(t).line(); !strings.Contains(line, `"refused":"32 follow already"`) {
		t.Errorf("%q", line)
	}
	all[0].conn.Close()
	eventually(t, "there is room again", func() bool {
		line, err := w.follow(t).line()
		return err == nil && strings.Contains(line, `"pods"`)
	})
}

// as runs a step as another user, on a thread of its own.
func as(t *testing.T, uid, gid int, step func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root can become somebody else")
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		set := func(call uintptr, id int) error {
			if _, _, errno := syscall.RawSyscall(call, ^uintptr(0), uintptr(id), ^uintptr(0)); errno != 0 {
				return errno
			}
			return nil
		}
		err := set(syscall.SYS_SETRESGID, gid)
		if err == nil {
			err = set(syscall.SYS_SETRESUID, uid)
		}
		if err == nil {
			step()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestOnlyThoseWhoMayReadAreTold(t *testing.T) {
	const user, group, other = 61001, 62002, 63003
	for _, c := range []struct {
		readers  string
		uid, gid int
		want     string // of the line, or of the error
	}{
		{"", user, group, "permission denied"},
		{fmt.Sprintf("gid:%d", group), user, group, `"pods"`},
		{fmt.Sprintf("gid:%d", group), user, other, "permission denied"},
		{fmt.Sprintf("uid:%d", user), user, other, `"pods"`},
		{fmt.Sprintf("uid:%d", user), other, user, fmt.Sprintf("user %d of group %d may not read", other, user)},
		{fmt.Sprintf("uid:%d, gid:%d", user, group), other, group, `"pods"`},
		{fmt.Sprintf("gid:%d,gid:%d", user, group), other, group, `"pods"`},
		{fmt.Sprintf("gid:%d,gid:%d", user, group), group, other, "may not read"},
	} {
		readers, err := ParseReaders(c.readers)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, readers)
		line := ""
		as(t, c.uid, c.gid, func() {
			conn, err := net.Dial("unix", w.path)
			if err != nil {
				line = err.Error()
				return
			}
			defer conn.Close()
			f := follower{t, conn, bufio.NewReader(conn)}
			if line, err = f.line(); err != nil {
				line = err.Error()
			}
		})
		if !strings.Contains(line, c.want) {
			t.Errorf("readers %q, user %d of group %d: %q, want %q", c.readers, c.uid, c.gid, line, c.want)
		}
		w.follow(t).snapshot() // root always may
		w.end()
		if refused := strings.Contains(line, "refused"); refused != strings.Contains(w.log.String(), "is told nothing") {
			t.Errorf("readers %q: the log says %q", c.readers, w.log.String())
		}
	}
}

func TestListOfReadersThatCannotBeReadIsRefused(t *testing.T) {
	for _, text := range []string{"1000", "uid:", "uid:-1", "uid:root", "group:5", "gid:4294967296", "uid:1 gid:2"} {
		if r, err := ParseReaders(text); err == nil {
			t.Errorf("%q is read as %+v", text, r)
		}
	}
}

// A socket of an agent that lives is not taken away; one that a killed agent left is.
func TestSocketIsReplacedOnlyWhereNobodyListens(t *testing.T) {
	w := newWorld(t, Readers{})
	if _, err := w.server.Listen(w.path); err == nil || !strings.Contains(err.Error(), "another agent listens there") {
		t.Error(err)
	}
	left := w.path + ".left"
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: left, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	again, err := w.server.Listen(left)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// More than followers read is not told, and said; the last that could be told stays.
func TestSnapshotThatIsTooLongIsNotTold(t *testing.T) {
	w := newWorld(t, Readers{})
	f := w.follow(t)
	f.snapshot()
	before := w.looks()
	w.set(pod(strings.Repeat("x", longest), 0))
	eventually(t, "it is looked again", func() bool { return w.looks() > before })
	w.set(pod("a", 0))
	f.until("a")
	w.end()
	if !strings.Contains(w.log.String(), "more than followers read") {
		t.Error(w.log.String())
	}
}

// The CPUs of containers are for people: distances are told without them where there is no room for both.
func TestSnapshotThatIsTooLongIsToldWithoutTheCPUsOfContainers(t *testing.T) {
	all := strings.Repeat("0,", longest/2)
	s := Snapshot{Version: Version, Nodes: []Node{}, Pods: []Pod{pod("a", 0), pod("b", 1)}}
	s.Pods[1].Containers[0].CPUs, s.Pods[1].Containers[0].Own = all, "0"
	line, err := s.line()
	if err != nil || strings.Contains(string(line), "cpus") || strings.Contains(string(line), "own") || !strings.Contains(string(line), `"nodes":[1]`) {
		t.Errorf("%.200s, %v", line, err)
	}
	if s.Pods[1].Containers[0].CPUs != all {
		t.Error("what was given is changed")
	}
}

func TestCachesAndCoresAreThoseOfTheNode(t *testing.T) {
	for _, c := range []struct{ shape, caches, cores string }{
		{"sockets=2,cores=4,caches=2", "[0-1 2-3][4-5 6-7]", "[][]"},
		{"sockets=2,cores=2,threads=2", "[0-1,4-5][2-3,6-7]", "[0,4 1,5][2,6 3,7]"},
	} {
		shape, err := topology.ParseShape(c.shape)
		if err != nil {
			t.Fatal(err)
		}
		machine, err := topology.Read(shape.Recording())
		if err != nil {
			t.Fatal(err)
		}
		caches, cores := "", ""
		for _, n := range Of("", machine, nil).Nodes {
			caches, cores = caches+fmt.Sprint(n.Caches), cores+fmt.Sprint(n.Cores)
		}
		if caches != c.caches || cores != c.cores {
			t.Errorf("%s: caches %s, cores %s", c.shape, caches, cores)
		}
	}
	// Nodes of one cache: each is told its own part.
	shape, err := topology.ParseShape("nodes=2,cores=2")
	if err != nil {
		t.Fatal(err)
	}
	recording := shape.Recording()
	for cpu := range 4 {
		recording[fmt.Sprintf("sys/devices/system/cpu/cpu%d/cache/index3/shared_cpu_list", cpu)] = "0-3"
	}
	machine, err := topology.Read(recording)
	if err != nil {
		t.Fatal(err)
	}
	if told := Of("", machine, nil).Nodes; fmt.Sprint(told[0].Caches, told[1].Caches) != "[0-1] [2-3]" {
		t.Errorf("%+v", told)
	}
}

// A node without CPUs has no socket. Where the firmware tells no distances, none are told.
func TestNodesWithoutCPUsOrDistancesAreTold(t *testing.T) {
	shape, err := topology.ParseShape("cores=2,memory-only=1")
	if err != nil {
		t.Fatal(err)
	}
	recording := shape.Recording()
	delete(recording, "sys/devices/system/node/node0/distance")
	machine, err := topology.Read(recording)
	if err != nil {
		t.Fatal(err)
	}
	line, err := Of("", machine, nil).line()
	want := `{"version":1,"nodes":[{"id":0,"sockets":[0],"cpus":"0-1","caches":["0-1"],"distances":{}},` +
		`{"id":1,"sockets":[],"cpus":"","distances":{"0":17,"1":10}}],"pods":[]}` + "\n"
	if err != nil || string(line) != want {
		t.Errorf("%s, %v", line, err)
	}
}
