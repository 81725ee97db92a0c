// Package cgroup reads what the kernel lets a container use, from either version of cgroups.
package cgroup

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/topology"
)

// Where the cpuset controller may be, below a node's root: version 1, and version 2.
const (
	v1 = "sys/fs/cgroup/cpuset"
	v2 = "sys/fs/cgroup"
)

// Of returns the paths of a container's cgroup by what its OCI specification says: a path, or
// SLICE:PREFIX:NAME for systemd.
func Of(cgroupsPath string) []string {
	parts := strings.Split(cgroupsPath, ":")
	switch {
	case cgroupsPath == "":
		return nil
	case len(parts) == 3:
		return []string{path.Join(slice(parts[0]), parts[1]+"-"+parts[2]+".scope")}
	}
	return []string{path.Clean("/" + cgroupsPath)}
}

// Below returns the paths that a runtime may give to a container in a pod's cgroup.
func Below(parent, id string) []string {
	if base := path.Base(parent); strings.HasSuffix(base, ".slice") {
		return append(Of(base+":cri-containerd:"+id), Of(base+":crio:"+id)...)
	}
	return []string{path.Clean("/" + path.Join(parent, id))}
}

// slice is where systemd has a slice: a-b.slice is in a.slice.
func slice(name string) string {
	stem, found := strings.CutSuffix(name, ".slice")
	if !found || stem == "-" || stem == "" {
		return "/"
	}
	at, so := "/", ""
	for _, part := range strings.Split(stem, "-") {
		so = strings.TrimPrefix(so+"-"+part, "-")
		at = path.Join(at, so+".slice")
	}
	return at
}

// Returns tells whether cpusets keep CPUs that go offline, and use them again once they are back: version 2
// alone does.
func Returns(root topology.Tree) bool {
	_, err := root.ReadFile(v2 + "/cgroup.controllers")
	return err == nil
}

// errNone: there is no such cgroup, or it has no processes.
var errNone = errors.New("no such cgroup")

// Effective returns the CPUs and memory nodes that the kernel lets the first of the cgroups use that is
// there.
func Effective(root topology.Tree, paths []string) (policy.Pin, error) {
	for _, at := range paths {
		for _, where := range []struct{ dir, cpus, memory string }{
			{v1, "cpuset.effective_cpus", "cpuset.effective_mems"}, {v2, "cpuset.cpus.effective", "cpuset.mems.effective"},
		} {
			dir := path.Join(where.dir, at)
			cpus, err := root.ReadFile(dir + "/" + where.cpus)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if where.dir == v1 { // whose cpuset loses its last CPU loses its processes, to the cgroup above
				if processes, err := root.ReadFile(dir + "/cgroup.procs"); err == nil && processes == "" {
					return policy.Pin{}, nil
				}
			}
			memory, err2 := root.ReadFile(dir + "/" + where.memory)
			if err = errors.Join(err, err2); err != nil {
				return policy.Pin{}, err
			}
			var pin policy.Pin
			pin.CPUs, err = cpuset.Parse(cpus)
			pin.Memory, err2 = cpuset.Parse(memory)
			return pin, errors.Join(err, err2)
		}
	}
	return policy.Pin{}, errNone
}
