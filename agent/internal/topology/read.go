package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"proxima.io/agent/internal/cpuset"
)

const (
	cpuDir  = "sys/devices/system/cpu"
	nodeDir = "sys/devices/system/node"
)

// reader collects warnings while it reads: a machine with a missing file is still a machine.
type reader struct {
	tree     Tree
	warnings []string
}

// maxWarnings keeps a tree of nothing but garbage from filling the log.
const maxWarnings = 20

func (r *reader) warn(format string, args ...any) {
	if len(r.warnings) < maxWarnings {
		r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
	}
}

// Read reads the machine below tree. It fails only when not even the list of CPUs can be had; anything else
// that is missing or odd is replaced by the plainest assumption and named in Warnings.
func Read(tree Tree) (*Topology, error) {
	r := &reader{tree: tree}
	t := &Topology{}
	online, err := r.onlineCPUs()
	if err != nil {
		return nil, err
	}
	t.Online = online
	present := r.list(cpuDir+"/present", online)
	t.Offline = present.Minus(online)
	t.Isolated = r.list(cpuDir+"/isolated", cpuset.Set{}).Intersect(online)
	t.Nodes = r.nodes(online)
	t.CPUs = r.cpus(online, t.Nodes)
	t.Devices = r.devices(t.Nodes)
	t.Warnings = r.warnings
	return t, nil
}

// onlineCPUs reads the list of CPUs; kernels before 2.6.26 have none, but a directory for each.
func (r *reader) onlineCPUs() (cpuset.Set, error) {
	var first error
	for _, name := range []string{"online", "present"} {
		text, err := r.tree.ReadFile(cpuDir + "/" + name)
		if errors.Is(err, fs.ErrNotExist) {
			if dirs := r.cpuDirectories(); !dirs.Empty() {
				return dirs, nil
			}
		}
		if err == nil {
			var set cpuset.Set
			if set, err = cpuset.Parse(text); err == nil && !set.Empty() {
				return set, nil
			}
		}
		if err == nil {
			err = fmt.Errorf("%s/%s is empty", cpuDir, name)
		}
		r.warn("%v", err)
		if first == nil {
			first = err
		}
	}
	return cpuset.Set{}, fmt.Errorf("cannot tell which CPUs this machine has: %w", first)
}

// cpuDirectories are the CPUs that have a directory, and are not said to be offline in it.
func (r *reader) cpuDirectories() cpuset.Set {
	all := r.directories(cpuDir, "cpu")
	online := all
	for _, id := range all.IDs() {
		if r.number(fmt.Sprintf("%s/cpu%d/online", cpuDir, id), 1) == 0 {
			online = online.Minus(cpuset.Of(id))
		}
	}
	return online
}

// directories are the numbers of what is called NAME0, NAME1, … in a directory.
func (r *reader) directories(dir, name string) cpuset.Set {
	names, err := r.tree.List(dir)
	if err != nil {
		return cpuset.Set{}
	}
	var ids []int
	for _, n := range names {
		number, found := strings.CutPrefix(n, name)
		if id, err := strconv.Atoi(number); found && err == nil && id <= cpuset.MaxID {
			ids = append(ids, id)
		}
	}
	return cpuset.Of(ids...)
}

// set reads a list of CPUs, or where an older kernel has none, the mask beside it.
func (r *reader) set(list, mask string, otherwise cpuset.Set) cpuset.Set {
	if _, err := r.tree.ReadFile(list); !errors.Is(err, fs.ErrNotExist) {
		return r.list(list, otherwise)
	}
	text, err := r.tree.ReadFile(mask)
	if err != nil {
		return otherwise
	}
	set, err := cpuset.ParseMask(text)
	if err != nil {
		r.warn("%s: %v; %q assumed", mask, err, otherwise)
		return otherwise
	}
	return set
}

// list reads a file in the kernel's list format. A file that is not there is normal (kernels differ); garbage
// is not.
func (r *reader) list(path string, otherwise cpuset.Set) cpuset.Set {
	text, err := r.tree.ReadFile(path)
	if err != nil {
		return otherwise
	}
	set, err := cpuset.Parse(text)
	if err != nil {
		r.warn("%s: %v; %q assumed", path, err, otherwise)
		return otherwise
	}
	return set
}

// number reads a file with one decimal number; negative ones (firmware that does not say) count as missing.
func (r *reader) number(path string, otherwise int) int {
	text, err := r.tree.ReadFile(path)
	if err != nil {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		r.warn("%s: %q is not a number; %d assumed", path, text, otherwise)
		return otherwise
	}
	if n < 0 {
		return otherwise
	}
	return n
}
