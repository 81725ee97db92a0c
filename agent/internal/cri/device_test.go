package cri

import (
	"slices"
	"testing"

	"proxima.io/agent/internal/raw"
	"proxima.io/agent/internal/topology"
)

// A request names device files; the machine knows its devices by number.
func TestDevicesThatARequestGives(t *testing.T) {
	d := &Door{machine: &topology.Topology{Devices: []topology.Device{{Name: "null", Number: "1:3"}, {Name: "zero", Number: "1:5"}, {Name: "eth0"}}}}
	m := createRequest("a", 1)
	for _, path := range []string{"/dev/null", "/dev/urandom", "/dev/there-is-none", "/etc/hostname", ""} {
		m = m.With(path, createConfig, configDevices, deviceHostPath)
	}
	if uses := d.arrival(m).Uses; !slices.Equal(uses, []string{"null"}) {
		t.Errorf("uses %v, want null alone", uses)
	}
	if uses := d.arrival(raw.Message("\xff\xff")).Uses; uses != nil {
		t.Errorf("a request that cannot be read uses %v", uses)
	}
}
