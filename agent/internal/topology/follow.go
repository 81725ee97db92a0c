package topology

import (
	"cmp"
	"errors"
	"fmt"

	"proxima.io/agent/internal/cpuset"
)

// podsCgroups are the cpusets of all pods, by version 1 of cgroups: kubelet names them so, by its cgroup
// driver.
var podsCgroups = []string{"sys/fs/cgroup/cpuset/kubepods/cpuset.cpus", "sys/fs/cgroup/cpuset/kubepods.slice/cpuset.cpus"}

// Follower reads a machine again when it is not what it was.
type Follower struct {
	tree Tree
	seen fingerprint
}

// fingerprint is what changes when CPUs or memory come and go; it takes a few short files.
type fingerprint struct{ cpus, nodes, memory, pods string }

func fingerprintOf(tree Tree) fingerprint {
	read := func(path string) string {
		content, err := tree.ReadFile(path)
		if err != nil {
			return "" // kernels differ in what they have
		}
		return content
	}
	f := fingerprint{cpus: read(cpuDir + "/online"), nodes: read(nodeDir + "/online"), memory: read(nodeDir + "/has_memory")}
	for _, path := range podsCgroups {
		f.pods = cmp.Or(f.pods, read(path))
	}
	return f
}

// Follow reads the machine below tree for the first time.
func Follow(tree Tree) (*Follower, *Topology, error) {
	f := &Follower{tree: tree}
	machine, err := f.read()
	return f, machine, err
}

// Look returns the machine if it is not what it was at the last call, else nil.
func (f *Follower) Look() (*Topology, error) {
	if fingerprintOf(f.tree) == f.seen {
		return nil, nil
	}
	return f.read()
}

// read reads until nothing has changed meanwhile: of a CPU that goes while it is being read, half would be
// known.
func (f *Follower) read() (*Topology, error) {
	for range 10 {
		before := fingerprintOf(f.tree)
		machine, err := Read(f.tree)
		if fingerprintOf(f.tree) != before {
			continue
		}
		f.seen = before
		if err == nil {
			machine.limitTo(before.pods)
		}
		return machine, err
	}
	return nil, errors.New("CPUs come and go faster than they can be read")
}

// limitTo takes the CPUs away that pods cannot have: version 1 of cgroups takes a CPU that goes offline out
// of every cpuset, and does not give it back. A container that was given such a CPU would not start.
func (t *Topology) limitTo(pods string) {
	may, err := cpuset.Parse(pods)
	if err != nil || may.Empty() || t.Online.Within(may) || !may.Meets(t.Online) {
		return
	}
	lost := t.Online.Minus(may)
	t.Warnings = append(t.Warnings, fmt.Sprintf(
		"CPUs %s are online but not in the pods' cpuset, as after an offline with version 1 of cgroups; write %s into cpuset.cpus of kubepods and of the cgroups below it, or reboot", lost, t.Online))
	t.Online = may.Intersect(t.Online)
	var cpus []CPU
	for _, c := range t.CPUs {
		if t.Online.Has(c.ID) {
			c.Siblings, c.L3 = c.Siblings.Intersect(t.Online), c.L3.Intersect(t.Online)
			cpus = append(cpus, c)
		}
	}
	t.CPUs, t.Isolated = cpus, t.Isolated.Intersect(t.Online)
	for i := range t.Nodes {
		t.Nodes[i].CPUs = t.Nodes[i].CPUs.Intersect(t.Online)
	}
}
