package cri

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/kube"
	"proxima.io/agent/internal/raw"
)

// withNumber appends a number at the end of a path of messages.
func withNumber(m raw.Message, n int64, path ...protowire.Number) raw.Message {
	inner := protowire.AppendVarint(protowire.AppendTag(nil, path[len(path)-1], protowire.VarintType), uint64(n))
	for _, number := range slices.Backward(path[:len(path)-1]) {
		inner = protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), inner)
	}
	return append(m[:len(m):len(m)], inner...)
}

func withCPUs(m raw.Message, cpus int64, path ...protowire.Number) raw.Message {
	for field, n := range map[protowire.Number]int64{resourceShares: cpus * 1024, resourceQuota: cpus * 100_000, resourcePeriod: 100_000} {
		m = withNumber(m, n, append(slices.Clone(path), field)...)
	}
	return m
}

// createRequest is of a Guaranteed pod with one container.
func createRequest(name string, cpus int64) raw.Message {
	m := raw.Message(nil).With("pod-"+name, createPodID).With(name, createConfig, configMetadata, 1).
		With("/kubepods/"+name, createSandbox, sandboxLinux, 1).With(name, createSandbox, sandboxMetadata, 1)
	m = withNumber(m, 1<<30, createConfig, configLinux, linuxResources, resourceMemory)
	return withCPUs(m, cpus, createConfig, configLinux, linuxResources)
}

// keeper is a runtime that keeps the cpuset of every container, under its name, and refuses resizes if it is
// told to.
type keeper struct {
	mu     sync.Mutex
	cpus   map[string]string
	refuse bool
}

func (k *keeper) handle(method string, stream grpc.ServerStream) error {
	f := &raw.Frame{}
	if strings.Contains(method, "/List") {
		return stream.SendMsg(f)
	}
	if err := stream.RecvMsg(f); err != nil {
		return err
	}
	m := raw.Message(f.Bytes)
	k.mu.Lock()
	defer k.mu.Unlock()
	if strings.HasSuffix(method, "UpdateContainerResources") {
		r := m.At(updateLinux)
		if k.refuse && r.Number(resourceShares) != 0 {
			return status.Error(codes.Unknown, "unable to set memory limit (current usage is more)")
		}
		if cpus := r.Text(resourceCPUs); cpus != "" {
			k.cpus[m.Text(updateID)] = cpus
		}
		return stream.SendMsg(&raw.Frame{})
	}
	name := m.At(createConfig, configMetadata).Text(1)
	k.cpus[name] = m.At(createConfig, configLinux, linuxResources).Text(resourceCPUs)
	return stream.SendMsg(&raw.Frame{Bytes: raw.Message(nil).With(name, firstField)})
}

func (k *keeper) has(name string) cpuset.Set {
	k.mu.Lock()
	defer k.mu.Unlock()
	return kube.Resources{CPUs: k.cpus[name]}.Seen().CPUs
}

// However a resize ends, no CPU is in two exclusive sets.
func TestAResizeThroughTheDoor(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		k := &keeper{cpus: map[string]string{}, refuse: refuse}
		e, _, through, _ := setup(t, k.handle)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go e.Run(ctx)
		until(t, "not connected", func() bool { return e.Status().Connected })
		call := func(method string, m raw.Message) error {
			return through.Invoke(ctx, "/runtime.v1.RuntimeService/"+method, &raw.Frame{Bytes: m}, &raw.Frame{})
		}
		if err := call("CreateContainer", createRequest("a", 8)); err != nil || k.has("a").String() != "0-3,48-51" {
			t.Fatalf("a has %s, %v", k.has("a"), err)
		}
		resize := withCPUs(raw.Message(nil).With("a", updateID), 4, updateLinux)
		if err := call("UpdateContainerResources", resize); (err != nil) != refuse {
			t.Fatal(err)
		}
		want, books := "0-1,48-49", 4
		if refuse {
			want, books = "0-3,48-51", 8
		}
		until(t, "a is not on the CPUs "+want, func() bool { return k.has("a").String() == want && e.Status().Pending == 0 })
		if at := e.Status().Seats[0]; at.Place.Exclusive.Len() != books || !at.Pin.CPUs.Equal(k.has("a")) {
			t.Errorf("refused %t: on the books is %+v", refuse, at)
		}
		for name, cpus := range map[string]int64{"b": 44, "c": 36} {
			if err := call("CreateContainer", createRequest(name, cpus)); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"b", "c"} {
			if k.has(name).Len() < 36 || k.has(name).Meets(k.has("a")) || k.has("b").Meets(k.has("c")) {
				t.Errorf("refused %t: a has %s, b %s, c %s", refuse, k.has("a"), k.has("b"), k.has("c"))
			}
		}
		// One of memory alone reaches the books too.
		k.mu.Lock()
		k.refuse = false
		k.mu.Unlock()
		if err := call("UpdateContainerResources", withNumber(raw.Message(nil).With("a", updateID), 2<<30, updateLinux, resourceMemory)); err != nil {
			t.Fatal(err)
		}
		if at := e.Status().Seats[0]; at.Place.Bytes != 2<<30 || at.Place.Exclusive.Len() != books {
			t.Errorf("memory alone: %+v", at.Place)
		}
	}
}
