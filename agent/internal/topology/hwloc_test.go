package topology

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"proxima.io/agent/internal/cpuset"
)

const hwlocCache = "/var/cache/proxima-agent-lab/hwloc"

// The hwloc project has recorded dozens of real machines, with kernels from 2.6 on. What this package reads
// of each is compared with what hwloc's own program printed: the CPUs, and the NUMA nodes with their memory.
func TestRealMachinesThatHwlocRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short leaves out what has to be fetched")
	}
	script, err := filepath.Abs("../../testdata/hwloc.sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(hwlocCache, 0o755); err != nil {
		t.Skipf("skipped: %v", err)
	}
	if out, err := exec.Command("sh", script, hwlocCache).CombinedOutput(); err != nil {
		t.Skipf("skipped: the trees of hwloc could not be fetched: %v\n%s", err, out)
	}
	dirs, err := filepath.Glob(hwlocCache + "/trees/*")
	if err != nil || len(dirs) < 40 {
		t.Fatalf("%d trees, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			m, err := Read(Dir(dir))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, m, name)
		})
	}
}

var (
	processor = regexp.MustCompile(`\bPU L#\d+ \(P#(\d+)`)
	memory    = regexp.MustCompile(`\bNUMANode(?:\([^)]*\))? L#\d+ \(P#(\d+)(?: local=(\d+)KB)?`)
)

// compare compares with what hwloc printed, where it printed the whole machine.
func compare(t *testing.T, m *Topology, name string) {
	t.Helper()
	text, err := os.ReadFile(hwlocCache + "/" + name + ".output")
	if err != nil {
		return
	}
	var ids []int
	for _, found := range processor.FindAllStringSubmatch(string(text), -1) {
		id, _ := strconv.Atoi(found[1])
		ids = append(ids, id)
	}
	want := cpuset.Of(ids...)
	if slices.Contains(limited, name) && want.Within(m.Online) {
		want = m.Online
	}
	if !want.Empty() && !want.Equal(m.Online) { // it prints nothing where the test is of something else
		t.Errorf("CPUs %s, hwloc has %s", m.Online, want)
	}
	for _, found := range memory.FindAllStringSubmatch(string(text), -1) {
		id, _ := strconv.Atoi(found[1])
		n, ok := m.Node(id)
		if !ok {
			t.Errorf("node %d is missing", id)
			continue
		}
		if found[2] == "" {
			continue
		}
		if kib, _ := strconv.ParseInt(found[2], 10, 64); kib != (n.Memory+n.HugePages)/1024 {
			t.Errorf("node %d has %d KiB, hwloc has %d", id, (n.Memory+n.HugePages)/1024, kib)
		}
	}
	for _, w := range m.Warnings {
		t.Log(strings.TrimSpace(w))
	}
}

// limited are the trees of which hwloc prints a part: what the cgroup left that it ran in.
var limited = []string{"16em64t-4s2ca2c-cpusetreorder", "4fake-4gr1nu1pu", "16amd64-4n4c-cgroup-distance-merge", "16amd64-8n2c-cpusets", "32amd64-4s2n4c-cgroup2"}
