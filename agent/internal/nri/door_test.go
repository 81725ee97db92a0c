package nri

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/kube"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/topology"
)

// side is the runtime's side of NRI, with the code that containerd and CRI-O have in them.
type side struct {
	*adaptation.Adaptation
	pods       []*api.PodSandbox
	containers []*api.Container
	socket     string

	mu      sync.Mutex
	updated map[string]string // CPUs by id, as updated outside of a request
}

func newSide(t *testing.T, containers int) *side {
	t.Helper()
	dir, err := os.MkdirTemp("", "nri") // the path of a Unix socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &side{socket: dir + "/nri.sock", updated: map[string]string{}}
	for n := range containers {
		pod, c := sharer(fmt.Sprintf("c%d", n))
		c.State = api.ContainerState_CONTAINER_RUNNING
		s.pods, s.containers = append(s.pods, pod), append(s.containers, c)
	}
	synchronize := func(ctx context.Context, cb adaptation.SyncCB) error {
		updates, err := cb(ctx, s.pods, s.containers)
		s.note(updates)
		return err
	}
	update := func(_ context.Context, updates []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) {
		s.note(updates)
		return nil, nil
	}
	s.Adaptation, err = adaptation.New("test", "1", synchronize, update, adaptation.WithSocketPath(s.socket),
		adaptation.WithPluginPath(s.socket+".plugins"), adaptation.WithPluginConfigPath(s.socket+".d"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func (s *side) note(updates []*api.ContainerUpdate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range updates {
		id, cpu := u.GetContainerId(), u.GetLinux().GetResources().GetCpu()
		s.updated[id] = cpu.GetCpus()
		for _, c := range s.containers {
			if c.Id == id { // it is listed like this the next time
				c.Linux.Resources.Cpu.Cpus, c.Linux.Resources.Cpu.Mems = cpu.GetCpus(), cpu.GetMems()
			}
		}
	}
}

func (s *side) has(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updated[id]
}

func sharer(id string) (*api.PodSandbox, *api.Container) {
	pod := &api.PodSandbox{Id: "pod-" + id, Name: id, Uid: "uid-" + id, Namespace: "default",
		Linux: &api.LinuxPodSandbox{CgroupParent: "/kubepods/burstable/" + id}}
	cpu := &api.LinuxCPU{Shares: api.UInt64(uint64(102))}
	return pod, &api.Container{Id: id, PodSandboxId: pod.Id, Name: "c",
		Linux: &api.LinuxContainer{Resources: &api.LinuxResources{Cpu: cpu}}}
}

func owner(id string, cpus int64) (*api.PodSandbox, *api.Container) {
	pod, c := sharer(id)
	pod.Linux.CgroupParent = "/kubepods/" + id
	c.Linux.Resources = &api.LinuxResources{Memory: &api.LinuxMemory{Limit: api.Int64(int64(1 << 30))}, Cpu: &api.LinuxCPU{
		Shares: api.UInt64(uint64(cpus * 1024)), Quota: api.Int64(cpus * 100_000), Period: api.UInt64(uint64(100_000))}}
	return pod, c
}

// connect runs the door on the source's machine until the test ends.
func connect(t *testing.T, socket string) *engine.Engine {
	t.Helper()
	shape, err := topology.ParseShape("sockets=2,cores=24,threads=2,memory=192")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := topology.Read(shape.Recording())
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	e, err := engine.New(engine.Settings{Machine: machine, Options: config.Default(), Inline: true, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { e.Run(ctx) })
	door, err := New(e, machine, log, LastIndex)
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() { _ = door.Serve(ctx, socket) }) // never fails
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	until(t, "not connected", func() bool { return e.Status().Connected })
	return e
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 300 {
		if holds() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal(what)
}

// The runtime's own time-out (2 s) is in force: a plugin that overruns it is thrown out, and would not be
// connected.
func TestAThousandContainersAtConnect(t *testing.T) {
	s := newSide(t, 1000)
	e := connect(t, s.socket)
	until(t, "not all of them were re-pinned", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.updated) == 1000
	})
	until(t, "not connected", func() bool { return e.Status().Connected })
	if st := e.Status(); len(st.Seats) != 1000 || st.Pending != 0 || st.Counters.Faults != 0 || !st.Connected {
		t.Errorf("%d on the books, %d pending, %+v", len(st.Seats), st.Pending, st.Counters)
	}
}

// What changes without a request, here the configuration, is told by connecting again.
func TestChangesOutsideOfARequest(t *testing.T) {
	s := newSide(t, 2)
	e := connect(t, s.socket)
	until(t, "not pinned", func() bool { return s.has("c0") == "0-23,48-71" })
	fewer := config.Default()
	fewer.Available = config.CPUs{Set: cpuset.Range(4, 7)}
	if err := e.Configure(fewer, nil); err != nil {
		t.Fatal(err)
	}
	until(t, "not re-pinned", func() bool { return s.has("c0") == "4-7" && s.has("c1") == "4-7" })
	if _, err := e.Release(); err != nil {
		t.Fatal(err)
	}
	until(t, "not released", func() bool { return s.has("c0") == "0-95" && e.Status().Pending == 0 })
}

func TestAContainersLife(t *testing.T) {
	s := newSide(t, 1)
	e := connect(t, s.socket)
	until(t, "who was there is pinned", func() bool { return s.has("c0") == "0-23,48-71" })
	ctx := context.Background()

	pod, c := owner("redis", 8)
	created, err := s.CreateContainer(ctx, &api.CreateContainerRequest{Pod: pod, Container: c})
	cpu := created.GetAdjust().GetLinux().GetResources().GetCpu()
	if err != nil || cpu.GetCpus() != "24-27,72-75" || cpu.GetMems() != "1" || len(created.GetUpdate()) != 0 {
		t.Fatalf("created with %v, others %v, %v", cpu, created.GetUpdate(), err)
	}
	pod2, c2 := owner("big", 46)
	created, err = s.CreateContainer(ctx, &api.CreateContainerRequest{Pod: pod2, Container: c2})
	if err != nil || created.GetAdjust().GetLinux().GetResources().GetCpu().GetCpus() == "" || len(created.GetUpdate()) != 1 ||
		created.GetUpdate()[0].GetContainerId() != "c0" {
		t.Fatalf("the sharer is not re-pinned with the answer: %v %v", created, err)
	}
	// A resize goes into the same message as the new resources.
	_, larger := owner("redis", 10)
	resized, err := s.UpdateContainer(ctx, &api.UpdateContainerRequest{Pod: pod, Container: c, LinuxResources: larger.Linux.Resources})
	if err != nil || len(resized.GetUpdate()) == 0 {
		t.Fatalf("%v %v", resized, err)
	}
	for _, u := range resized.GetUpdate() {
		if got := u.GetLinux().GetResources().GetCpu().GetCpus(); u.GetContainerId() == "redis" && got != "24-28,72-76" {
			t.Errorf("resized to CPUs %s", got)
		}
	}
	if _, err := s.StopContainer(ctx, &api.StopContainerRequest{Pod: pod2, Container: c2}); err != nil {
		t.Fatal(err)
	}
	if err := s.StopPodSandbox(ctx, &api.StopPodSandboxRequest{Pod: pod}); err != nil { // its container never came to be stopped
		t.Fatal(err)
	}
	if err := s.RemoveContainer(ctx, &api.RemoveContainerRequest{Pod: pod2, Container: c2}); err != nil {
		t.Fatal(err)
	}
	until(t, "somebody is left on the books", func() bool { return len(e.Status().Seats) == 1 })
}

// Runtimes pass on only what an update changes: the rest of the resources stays, and with it the container's
// CPUs.
func TestAnUpdateOfMemoryAloneKeepsTheCPUs(t *testing.T) {
	s := newSide(t, 0)
	e := connect(t, s.socket)
	ctx := context.Background()
	pod, c := owner("redis", 8)
	if _, err := s.CreateContainer(ctx, &api.CreateContainerRequest{Pod: pod, Container: c}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*api.LinuxResources{
		{Memory: &api.LinuxMemory{Limit: api.Int64(int64(2 << 30))}},
		{Cpu: &api.LinuxCPU{Cpus: "0-95"}},
		{Cpu: &api.LinuxCPU{Shares: api.UInt64(uint64(0)), Quota: api.Int64(int64(0))}, Memory: &api.LinuxMemory{Limit: api.Int64(int64(0))}},
	} {
		updated, err := s.UpdateContainer(ctx, &api.UpdateContainerRequest{Pod: pod, Container: c, LinuxResources: r})
		if err != nil || len(updated.GetUpdate()) != 1 || updated.GetUpdate()[0].GetLinux().GetResources().GetCpu().GetCpus() != "0-3,48-51" {
			t.Errorf("%v: %v %v", r, updated, err)
		}
	}
	if at := e.Status().Seats[0].Place; at.Kind != policy.Exclusive || at.Bytes != 2<<30 {
		t.Errorf("%+v", at)
	}
}

// A runtime says that it has taken a resize, and nothing if it has refused: others get the CPUs only in the
// first case.
func TestAResizeGivesBackWhenItIsTaken(t *testing.T) {
	s := newSide(t, 1)
	e := connect(t, s.socket)
	until(t, "who was there is pinned", func() bool { return s.has("c0") == "0-23,48-71" })
	ctx := context.Background()
	pod, c := owner("big", 92)
	if _, err := s.CreateContainer(ctx, &api.CreateContainerRequest{Pod: pod, Container: c}); err != nil {
		t.Fatal(err)
	}
	_, smaller := owner("big", 4)
	resized, err := s.UpdateContainer(ctx, &api.UpdateContainerRequest{Pod: pod, Container: c, LinuxResources: smaller.Linux.Resources})
	if err != nil || len(resized.GetUpdate()) != 1 {
		t.Fatalf("somebody else is changed too, before it is known whether the runtime takes it: %v %v", resized, err)
	}
	own := resized.GetUpdate()[0].GetLinux().GetResources().GetCpu()
	c.State, c.Linux.Resources = api.ContainerState_CONTAINER_RUNNING, smaller.Linux.Resources
	c.Linux.Resources.Cpu.Cpus, c.Linux.Resources.Cpu.Mems = own.GetCpus(), own.GetMems()
	s.mu.Lock()
	s.pods, s.containers = append(s.pods, pod), append(s.containers, c)
	s.mu.Unlock()
	if err := s.PostUpdateContainer(ctx, &api.PostUpdateContainerRequest{Pod: pod, Container: c}); err != nil {
		t.Fatal(err)
	}
	until(t, "what was given back is not used", func() bool {
		return kube.Resources{CPUs: s.has("c0")}.Seen().CPUs.Len() > 40 && e.Status().Pending == 0
	})
}

// Two plugins that set one field fail the pod: ours comes last, and leaves alone what it finds set.
func TestAnotherPluginThatPins(t *testing.T) {
	s := newSide(t, 0)
	other, err := stub.New(pinner{}, stub.WithPluginIdx("10"), stub.WithPluginName("other"), stub.WithSocketPath(s.socket),
		stub.WithOnClose(func() {}))
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer other.Stop()
	e := connect(t, s.socket)
	pod, c := owner("redis", 8)
	created, err := s.CreateContainer(context.Background(), &api.CreateContainerRequest{Pod: pod, Container: c})
	if err != nil || created.GetAdjust().GetLinux().GetResources().GetCpu().GetCpus() != "5" {
		t.Fatalf("%v %v", created, err)
	}
	if st := e.Status(); st.Counters.Foreign != 1 || st.Seats[0].Foreign == "" {
		t.Errorf("%+v", st)
	}
}

type pinner struct{}

func (pinner) CreateContainer(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	a := &api.ContainerAdjustment{}
	a.SetLinuxCPUSetCPUs("5")
	return a, nil, nil
}

// Whatever the message lacks, the pod starts.
func TestEmptyMessages(t *testing.T) {
	s := newSide(t, 0)
	e := connect(t, s.socket)
	ctx := context.Background()
	for _, pod := range []*api.PodSandbox{{}, {Id: "p", Annotations: map[string]string{"proxima.io/near": "\x00", "proxima.io/cpus": "?"}}} {
		for _, c := range []*api.Container{{}, {Id: "x", Linux: &api.LinuxContainer{Resources: &api.LinuxResources{Cpu: &api.LinuxCPU{
			Cpus: "garbage", Shares: api.UInt64(uint64(1 << 63)), Quota: api.Int64(int64(-1 << 63))}}}}} {
			if _, err := s.CreateContainer(ctx, &api.CreateContainerRequest{Pod: pod, Container: c}); err != nil {
				t.Errorf("%v %v: %v", pod, c, err)
			}
			if _, err := s.UpdateContainer(ctx, &api.UpdateContainerRequest{Pod: pod, Container: c, LinuxResources: &api.LinuxResources{}}); err != nil {
				t.Errorf("%v %v: %v", pod, c, err)
			}
		}
	}
	if faults := e.Status().Counters.Faults; faults != 0 {
		t.Errorf("%d faults", faults)
	}
}
