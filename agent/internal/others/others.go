// Package others finds who else pins containers on this node: kubelet's static CPU manager, CRI-RM, an NRI
// policy plugin. Two that pin the same containers undo each other's work at best and fail pods at worst.
package others

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"proxima.io/agent/internal/cpuset"
)

// Found is one other that pins.
type Found struct {
	Name string `json:"name"`
	Why  string `json:"why"` // how it was found, and what to do about it
	// Leaves are the CPUs that it does not hand out; only known of kubelet.
	Leaves *cpuset.Set `json:"leaves,omitempty"`
	// MemoryOnly: it pins memory, and no CPUs.
	MemoryOnly bool `json:"memoryOnly,omitempty"`
}

// Where they are known by, below the node's root.
const (
	kubeletState  = "cpu_manager_state"    // kubelet's record of its CPU manager, in its directory
	kubeletMemory = "memory_manager_state" // and of its memory manager
	pluginDir     = "opt/nri/plugins"
	nriPolicy     = "var/lib/nri-resource-policy/cache" // the state of nri-plugins' policies, which their charts run in a pod
)

// criRMSockets are where CRI-RM listens; ours listens elsewhere even when it takes CRI-RM's place.
var criRMSockets = []string{"var/run/cri-resmgr/cri-resmgr.sock", "run/cri-resmgr/cri-resmgr.sock"}

// policyPlugins are NRI plugins known to set cpusets, by what their file names contain. NRI itself names no
// other plugins, and of one that is started as a pod only nriPolicy is known: what another has pinned is
// found container by container.
var policyPlugins = []string{"topology-aware", "balloons", "cri-resource-manager", "koordlet", "dra-driver-cpu"}

// Kubelet is where kubelet keeps its state, below the node's root, if it is not told another place.
const Kubelet = "/var/lib/kubelet"

// Paths are the files whose change is worth another look. kubelet is the directory where kubelet keeps its
// state.
func Paths(root, kubelet string) []string {
	paths := []string{filepath.Join(root, kubelet, kubeletState), filepath.Join(root, kubelet, kubeletMemory)}
	for _, path := range append([]string{pluginDir, nriPolicy}, criRMSockets...) {
		paths = append(paths, filepath.Join(root, path))
	}
	return paths
}

// Find looks below the node's root directory. ownSocket is the CRI socket that this agent itself listens on,
// if any.
func Find(root, kubelet, ownSocket string) []Found {
	var found []Found
	if f := cpuManager(filepath.Join(root, kubelet, kubeletState)); f != nil {
		found = append(found, *f)
	}
	if f := memoryManager(filepath.Join(root, kubelet, kubeletMemory)); f != nil {
		found = append(found, *f)
	}
	for _, socket := range criRMSockets {
		path := filepath.Join(root, socket)
		if !same(path, ownSocket) && listens(path) {
			found = append(found, Found{Name: "CRI-RM", Why: "it listens on " + path + "; stop it"})
			break
		}
	}
	plugins, err := os.ReadDir(filepath.Join(root, pluginDir))
	if err != nil {
		plugins = nil // no directory, no plugins
	}
	for _, plugin := range plugins {
		for _, name := range policyPlugins {
			if strings.Contains(plugin.Name(), name) {
				found = append(found, Found{Name: "NRI plugin " + plugin.Name(), Why: "it is in /opt/nri/plugins; remove it from there"})
			}
		}
	}
	path := filepath.Join(root, nriPolicy)
	if _, err := os.Stat(path); err == nil {
		found = append(found, Found{Name: "nri-plugins' resource policy", Why: path + " exists; remove it where that plugin is gone"})
	}
	return found
}

// listens tells whether somebody is behind a socket: one that was killed leaves it.
func listens(path string) bool {
	connection, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		connection.Close()
		return true
	}
	nobody := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ECONNREFUSED)
	return !nobody // behind a full or a forbidden one there is
}

func same(path, own string) bool {
	a, errA := os.Stat(path)
	b, errB := os.Stat(own)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

func cpuManager(path string) *Found {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var state struct {
		PolicyName    string `json:"policyName"`
		DefaultCPUSet string `json:"defaultCpuSet"`
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return nil // kubelet is writing it; the watch brings us back
	}
	if state.PolicyName != "static" {
		return nil
	}
	f := &Found{Name: "kubelet's static CPU manager", Why: path + " says policyName static; turn that off, or set others: take-rest"}
	if leaves, err := cpuset.Parse(state.DefaultCPUSet); err == nil {
		f.Leaves = &leaves
	}
	return f
}

func memoryManager(path string) *Found {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var state struct {
		PolicyName string `json:"policyName"`
	}
	if err := json.Unmarshal(text, &state); err != nil || !strings.EqualFold(state.PolicyName, "static") {
		return nil
	}
	return &Found{Name: "kubelet's static memory manager", MemoryOnly: true,
		Why: path + " says policyName " + state.PolicyName + "; turn that off, or set others: take-rest"}
}
