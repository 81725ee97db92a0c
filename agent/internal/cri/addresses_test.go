package cri

import (
	"context"
	"os"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"google.golang.org/protobuf/encoding/protowire"

	"proxima.io/agent/internal/raw"
)

// The addresses of a pod are asked for in either version of the CRI; of one with the node's network none
// counts.
func TestAddressesOfPodsAreAskedForInBothVersions(t *testing.T) {
	network := raw.Message(nil).With("10.0.0.1", statusPod, statusNetwork, networkIP).With("fd00::1", statusPod, statusNetwork, networkMore, networkIP)
	options := protowire.AppendVarint(protowire.AppendTag(nil, optionNetwork, protowire.VarintType), networkOfNode)
	replies := map[string]raw.Message{
		"own":  network,
		"host": network.With(string(options), statusPod, statusLinux, namespaces, namespaceOptions),
		"none": nil,
	}
	for _, version := range versions {
		dir, err := os.MkdirTemp("", "ask") // the path of a Unix socket must be short
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		runtimeAt(t, dir+"/r.sock", func(method string, stream grpc.ServerStream) error {
			f := &raw.Frame{}
			if err := stream.RecvMsg(f); err != nil {
				return err
			}
			if method != version+"PodSandboxStatus" {
				return status.Error(codes.Unimplemented, "unknown service")
			}
			reply, known := replies[raw.Message(f.Bytes).Text(1)]
			if !known {
				return status.Error(codes.NotFound, "no such pod")
			}
			return stream.SendMsg(&raw.Frame{Bytes: reply})
		})
		asker, err := NewAsker(dir + "/r.sock")
		if err != nil {
			t.Fatal(err)
		}
		defer asker.Close()
		for pod, want := range map[string][]string{"own": {"10.0.0.1", "fd00::1"}, "host": {}, "none": {}} {
			if got, err := asker.Addresses(context.Background(), pod); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s of %s: %q, %v", version, pod, got, err)
			}
		}
		if _, err := asker.Addresses(context.Background(), "gone"); status.Code(err) != codes.NotFound {
			t.Errorf("%s: %v", version, err)
		}
	}
}
