package topology

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"proxima.io/agent/internal/cpuset"
)

func read(t *testing.T, tree Tree) *Topology {
	t.Helper()
	machine, err := Read(tree)
	if err != nil {
		t.Fatal(err)
	}
	return machine
}

func shaped(t *testing.T, shape string) Recording {
	t.Helper()
	s, err := ParseShape(shape)
	if err != nil {
		t.Fatal(err)
	}
	return s.Recording()
}

func TestTheSourcesMachine(t *testing.T) {
	m := read(t, shaped(t, "sockets=2,cores=24,threads=2,memory=192"))
	if len(m.CPUs) != 96 || len(m.Nodes) != 2 || len(m.Warnings) != 0 {
		t.Fatalf("%d CPUs, %d nodes, warnings %q", len(m.CPUs), len(m.Nodes), m.Warnings)
	}
	cpu, _ := m.CPU(72)
	if cpu.Socket != 1 || cpu.Node != 1 || cpu.Siblings.String() != "24,72" || cpu.L3.String() != "24-47,72-95" {
		t.Errorf("CPU 72: %+v", cpu)
	}
	if n, _ := m.Node(1); n.Memory != 192<<30 || n.Distance[0] != 21 || n.Kind != DRAM {
		t.Errorf("node 1: %+v", n)
	}
}

func TestOddMachines(t *testing.T) {
	m := read(t, shaped(t, "sockets=2,cores=4,threads=2,offline=3;9,isolated=6-7;9,efficiency=4-5,memoryless=1,memory-only=1,memory-of=16"))
	if m.Offline.String() != "3,9" || m.Isolated.String() != "6-7" {
		t.Errorf("offline %s, isolated %s", m.Offline, m.Isolated)
	}
	if cpu, _ := m.CPU(1); cpu.Siblings.String() != "1" {
		t.Errorf("the sibling of CPU 1 is offline, yet siblings are %s", cpu.Siblings)
	}
	if cpu, _ := m.CPU(4); cpu.Kind != Efficiency {
		t.Error("CPU 4 should be an efficiency core")
	}
	if m.MemoryNodes().String() != "0,2" {
		t.Errorf("nodes with memory: %s", m.MemoryNodes())
	}
	if n, _ := m.Node(2); n.Kind != HBM || !n.CPUs.Empty() {
		t.Errorf("a CPU-less node smaller than all DRAM nodes: %+v", n)
	}
}

func TestMemoryTiersDecideTheKindOfMemory(t *testing.T) {
	tree := shaped(t, "sockets=2,cores=2,memory-only=1,memory-of=16")
	tree["sys/devices/virtual/memory_tiering/memory_tier4/nodelist"] = "0-1"
	tree["sys/devices/virtual/memory_tiering/memory_tier22/nodelist"] = "2"
	if n, _ := read(t, tree).Node(2); n.Kind != PMEM {
		t.Errorf("the kernel says tier 22 is slower than 4, got %s", n.Kind)
	}
}

func TestHugePagesAreNoMemoryForContainers(t *testing.T) {
	tree := shaped(t, "sockets=2,cores=2,memory=64")
	tree[nodeDir+"/node0/hugepages/hugepages-1048576kB/nr_hugepages"] = "8"
	tree[nodeDir+"/node0/hugepages/hugepages-2048kB/nr_hugepages"] = "512"
	tree[nodeDir+"/node1/hugepages/hugepages-2048kB/nr_hugepages"] = "0"
	recorded, err := Record(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*Topology{read(t, tree), read(t, recorded)} {
		if n := m.Nodes[0]; n.Memory != 55<<30 || n.HugePages != 9<<30 || m.Nodes[1].Memory != 64<<30 || len(m.Warnings) != 0 {
			t.Errorf("%+v, warnings %q", m.Nodes, m.Warnings)
		}
	}
	tree[nodeDir+"/node0/hugepages/hugepages-2048kB/nr_hugepages"] = "9223372036854775807"
	if m := read(t, tree); m.Nodes[0].Memory != 56<<30 || len(m.Warnings) != 1 {
		t.Errorf("more huge pages than memory: %+v, warnings %q", m.Nodes[0], m.Warnings)
	}
	one := Recording{cpuDir + "/online": "0-3", "proc/meminfo": "MemTotal: 8388608 kB", "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "512"}
	if m := read(t, one); m.Nodes[0].Memory != 7<<30 {
		t.Errorf("without NUMA nodes: %+v", m.Nodes[0])
	}
}

// A machine with huge pages on one node is no other machine: what is fast memory follows from what is there.
func TestHugePagesDoNotChangeTheKindOfMemory(t *testing.T) {
	tree := shaped(t, "cores=2,memory=64,memory-only=1,memory-of=32")
	tree[nodeDir+"/node0/hugepages/hugepages-1048576kB/nr_hugepages"] = "60"
	if n := read(t, tree).Nodes[1]; n.Kind != HBM {
		t.Errorf("%+v", n)
	}
}

func TestCapacityTellsCoresApart(t *testing.T) {
	tree := shaped(t, "cores=4")
	for cpu, capacity := range map[string]string{"0": "1024", "1": "1000", "2": "446", "3": "446"} {
		tree[cpuDir+"/cpu"+cpu+"/cpu_capacity"] = capacity
	}
	m := read(t, tree)
	var kinds []string
	for _, c := range m.CPUs {
		kinds = append(kinds, string(c.Kind[0]))
	}
	if got := strings.Join(kinds, ""); got != "ppee" {
		t.Errorf("kinds %q", got)
	}
}

func TestDevicesByNode(t *testing.T) {
	tree := shaped(t, "sockets=2,cores=2")
	tree["sys/class/net/eth0/device/numa_node"] = "1"
	tree["sys/class/net/eth1/device/numa_node"] = "-1"
	tree["sys/class/block/nvme0n1/device/device/numa_node"] = "0"
	tree["sys/class/block/nvme0n1/dev"] = "259:0"
	m := read(t, tree)
	want := []Device{{"eth0", "net", 1, ""}, {"nvme0n1", "block", 0, "259:0"}}
	if len(m.Devices) != 2 || m.Devices[0] != want[0] || m.Devices[1] != want[1] {
		t.Errorf("got %+v, want %+v", m.Devices, want)
	}
}

// Whatever single file is missing or full of garbage, the machine can still be read, its CPUs are all there,
// and each appears in its own core.
func TestAnySingleFileMayBeMissingOrGarbage(t *testing.T) {
	whole := shaped(t, "sockets=2,cores=2,threads=2,memory-only=1")
	for path := range whole {
		for _, garbage := range []string{"", "-1", "x,y", "99999999999999999999", "0-65535", "\x00\xff"} {
			tree := maps.Clone(whole)
			tree[path] = garbage
			checkSane(t, tree, path+" = "+garbage)
		}
		tree := maps.Clone(whole)
		delete(tree, path)
		checkSane(t, tree, path+" missing")
	}
}

func checkSane(t *testing.T, tree Recording, what string) {
	t.Helper()
	m, err := Read(tree)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	seen := cpuset.Set{}
	for _, n := range m.Nodes {
		if n.CPUs.Meets(seen) || !n.CPUs.Within(m.Online) || n.Memory < 0 {
			t.Errorf("%s: node %+v", what, n)
		}
		seen = seen.Union(n.CPUs)
	}
	for _, c := range m.CPUs {
		if !c.Siblings.Has(c.ID) || !c.Siblings.Within(m.Online) || !c.L3.Within(m.Online) {
			t.Errorf("%s: CPU %+v", what, c)
		}
	}
}

// Kernels before 4.6 end some values with a NUL, and those before 2.6.26 have directories, masks, and no
// lists.
func TestOldKernels(t *testing.T) {
	whole := shaped(t, "sockets=2,cores=2,threads=2")
	for path, content := range whole {
		whole[path] = content + "\x00"
	}
	want, m := read(t, shaped(t, "sockets=2,cores=2,threads=2")), read(t, whole)
	if len(m.Warnings) > 0 || !m.Online.Equal(want.Online) || !m.CPUs[5].Siblings.Equal(want.CPUs[5].Siblings) || m.Nodes[1].Memory != want.Nodes[1].Memory {
		t.Errorf("with NUL: %+v", m)
	}
	for path := range whole {
		if strings.HasSuffix(path, "/online") || strings.HasSuffix(path, "/present") || strings.HasSuffix(path, "list") {
			delete(whole, path)
		}
	}
	for cpu, mask := range map[string]string{"0": "11", "4": "11", "1": "22", "5": "22", "2": "44", "6": "44", "3": "88", "7": "88"} {
		whole[cpuDir+"/cpu"+cpu+"/topology/thread_siblings"] = "00000000,000000" + mask
	}
	whole[cpuDir+"/cpu3/online"] = "0"
	whole[nodeDir+"/node0/cpumap"], whole[nodeDir+"/node1/cpumap"] = "33", "cc"
	m = read(t, whole)
	if m.Online.String() != "0-2,4-7" || len(m.Nodes) != 2 || m.Nodes[1].CPUs.String() != "2,6-7" || m.CPUs[1].Siblings.String() != "1,5" {
		t.Errorf("without lists: online %s, %+v, %+v", m.Online, m.Nodes, m.CPUs[1])
	}
}

func TestNoCPUsAtAllIsAnError(t *testing.T) {
	if m, err := Read(Recording{"proc/meminfo": "MemTotal: 5 kB"}); err == nil {
		t.Errorf("got %+v", m)
	}
}

func TestRecordingHoldsWhatReadingTakes(t *testing.T) {
	whole := shaped(t, "sockets=2,dies=2,cores=2,threads=2,memory-only=1")
	whole[nodeDir+"/node0/meminfo"] = "Node 0 MemTotal: 77 kB\nNode 0 MemFree: 5 kB"
	whole["etc/machine-id"] = "secret"
	recording, err := Record(whole)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := recording.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "secret") || strings.Contains(text.String(), "MemFree") {
		t.Error("the recording holds more than is needed")
	}
	again, err := ReadRecording(&text)
	if err != nil {
		t.Fatal(err)
	}
	a, b := read(t, whole), read(t, again)
	if len(a.CPUs) != len(b.CPUs) || a.Nodes[0].Memory != b.Nodes[0].Memory || a.CPUs[5].L3.String() != b.CPUs[5].L3.String() {
		t.Error("the recording reads differently from the machine")
	}
}

func TestThisMachine(t *testing.T) {
	m := read(t, Dir("/"))
	if len(m.CPUs) == 0 || len(m.Nodes) == 0 {
		t.Fatalf("%+v", m)
	}
}

func TestBadShapes(t *testing.T) {
	for _, bad := range []string{"", "sockets", "sockets=0", "cores=99999", "cpus=4", "isolated=x", "sockets=4096,cores=4096"} {
		if _, err := ParseShape(bad); err == nil {
			t.Errorf("shape %q was accepted", bad)
		}
	}
}
