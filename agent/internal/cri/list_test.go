package cri

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"proxima.io/agent/internal/raw"
)

// slow is a runtime with many containers that answers no status until it is asked for several at once and is
// let go.
type slow struct {
	keeper
	listed int
	letGo  chan struct{}

	mu    sync.Mutex
	late  bool // "late" has come, too
	asked map[string]int
	now   int
}

func (s *slow) handle(method string, stream grpc.ServerStream) error {
	reply := raw.Message(nil)
	switch {
	case strings.HasSuffix(method, "ListPodSandbox"):
		for _, name := range s.names() {
			reply = reply.With("pod-"+name, 1, 1)
		}
	case strings.HasSuffix(method, "ListContainers"):
		for _, name := range s.names() {
			reply = reply.With(string(raw.Message(nil).With(name, 1).With("pod-"+name, 2)), 1)
		}
	case strings.HasSuffix(method, "ContainerStatus"):
		f := &raw.Frame{}
		if err := stream.RecvMsg(f); err != nil {
			return err
		}
		s.mu.Lock()
		s.asked[raw.Message(f.Bytes).Text(1)]++
		s.now++
		s.mu.Unlock()
		select {
		case <-s.letGo:
		case <-stream.Context().Done():
		}
	default:
		return s.keeper.handle(method, stream)
	}
	return stream.SendMsg(&raw.Frame{Bytes: reply})
}

func (s *slow) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for n := range s.listed {
		names = append(names, fmt.Sprint("c", n))
	}
	if s.late {
		names = append(names, "late")
	}
	return names
}

// While a slow runtime is asked what is running, containers come and are changed, and none of that is missed.
func TestNobodyWaitsForTheStatuses(t *testing.T) {
	s := &slow{keeper: keeper{cpus: map[string]string{}}, listed: 100, letGo: make(chan struct{}), asked: map[string]int{}}
	e, _, through, _ := setup(t, s.handle)
	until(t, "the statuses are not asked for side by side", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.now == atOnce
	})
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout/2)
	defer cancel()
	for method, m := range map[string]raw.Message{
		"CreateContainer":          createRequest("late", 2),
		"UpdateContainerResources": withCPUs(raw.Message(nil).With("c0", updateID), 1, updateLinux),
	} {
		if err := through.Invoke(ctx, "/runtime.v1.RuntimeService/"+method, &raw.Frame{Bytes: m}, &raw.Frame{}); err != nil {
			t.Fatalf("%s waited: %v", method, err)
		}
	}
	s.mu.Lock()
	s.late = true
	s.mu.Unlock()
	close(s.letGo)
	until(t, "not connected", func() bool { return e.Status().Connected })
	if n := len(e.Status().Seats); n != 101 {
		t.Errorf("%d on the books", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked["c0"] != 2 || s.asked["c1"] != 1 || s.asked["late"] != 1 {
		t.Errorf("statuses asked for: c0, which was updated, %d times; c1 %d; late %d", s.asked["c0"], s.asked["c1"], s.asked["late"])
	}
}
