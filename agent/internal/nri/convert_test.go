package nri

import (
	"slices"
	"testing"

	"github.com/containerd/nri/pkg/api"

	"proxima.io/agent/internal/topology"
)

// A message has device numbers; the machine knows its devices by them.
func TestDevicesThatAContainerGets(t *testing.T) {
	d := &Door{machine: &topology.Topology{Devices: []topology.Device{{Name: "nvme0n1", Number: "259:0"}, {Name: "nvme1n1", Number: "259:1"}, {Name: "eth0"}}}}
	pod, c := owner("a", 1)
	for _, minor := range []int64{1, 7} {
		c.Linux.Devices = append(c.Linux.Devices, &api.LinuxDevice{Path: "/dev/x", Type: "b", Major: 259, Minor: minor})
	}
	if uses := d.arrival(pod, c).Uses; !slices.Equal(uses, []string{"nvme1n1"}) {
		t.Errorf("uses %v, want nvme1n1 alone", uses)
	}
}
