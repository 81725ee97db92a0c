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

// A pod that tells no address either has the node's network or a runtime that does not tell: then it is asked
// for.
func TestPodWithoutAddressIsAskedForUnlessItHasTheNodesNetwork(t *testing.T) {
	namespaces := func(types ...string) *api.LinuxPodSandbox {
		linux := &api.LinuxPodSandbox{}
		for _, kind := range types {
			linux.Namespaces = append(linux.Namespaces, &api.LinuxNamespace{Type: kind})
		}
		return linux
	}
	for _, c := range []struct {
		pod  *api.PodSandbox
		list []string
		told bool
	}{
		{&api.PodSandbox{Ips: []string{"10.0.0.1", "fd00::1"}, Linux: namespaces("network", "pid")}, []string{"10.0.0.1", "fd00::1"}, true},
		{&api.PodSandbox{Linux: namespaces("pid", "ipc")}, nil, true},
		{&api.PodSandbox{Linux: namespaces("network", "pid")}, nil, false},
		{&api.PodSandbox{}, nil, false},
	} {
		if list, told := addresses(c.pod); !slices.Equal(list, c.list) || told != c.told {
			t.Errorf("%v: %q, told %t", c.pod, list, told)
		}
	}
}
