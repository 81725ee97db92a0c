package lab

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"proxima.io/agent/internal/raw"
)

// Pod is a pod with its containers, as kubelet would ask for it.
type Pod struct {
	client *Client
	config raw.Message
	parent string
	ID     string
}

// sub appends a message field, and num a varint field.
func sub(m raw.Message, number protowire.Number, inner raw.Message) raw.Message {
	return protowire.AppendBytes(protowire.AppendTag(m, number, protowire.BytesType), inner)
}

func num(m raw.Message, number protowire.Number, value int64) raw.Message {
	return protowire.AppendVarint(protowire.AppendTag(m, number, protowire.VarintType), uint64(value))
}

// RunPod runs a sandbox in the host's network. The class is Guaranteed, Burstable or BestEffort.
func (c *Client) RunPod(name, class string, annotations map[string]string) *Pod {
	c.t.Helper()
	below := map[string]string{"Guaranteed": "", "Burstable": "burstable/", "BestEffort": "besteffort/"}[class]
	p := &Pod{client: c, parent: fmt.Sprintf("/%s/%spod-%s", cgroup(), below, name)}
	metadata := raw.Message(nil).With(name, 1).With("uid-"+name, 2).With("default", 3)
	p.config = sub(nil, 1, metadata)
	p.config = sub(p.config, 6, raw.Message(nil).With("app", 1).With(name, 2))
	for key, value := range annotations {
		p.config = sub(p.config, 7, raw.Message(nil).With(key, 1).With(value, 2))
	}
	hostNetwork := sub(nil, 1, num(num(nil, 1, 2), 3, 2)) // network and IPC of the node
	p.config = sub(p.config, 8, sub(raw.Message(nil).With(p.parent, 1), 2, hostNetwork))
	p.ID = c.Call("RunPodSandbox", sub(nil, 1, p.config)).Text(1)
	return p
}

// Run creates and starts a container with so many thousandths of a CPU (as request and, if limited, as limit too), and
// returns its id.
func (p *Pod) Run(name string, milli int64, limited bool) string {
	p.client.t.Helper()
	resources := num(nil, 3, max(2, milli*1024/1000))
	if limited {
		resources = num(num(num(resources, 1, 100_000), 2, milli*100), 4, 64<<20)
	}
	config := sub(nil, 1, raw.Message(nil).With(name, 1))
	config = sub(config, 2, raw.Message(nil).With(image, 1))
	config = sub(config, 9, raw.Message(nil).With("io.kubernetes.container.name", 1).With(name, 2))
	config = sub(config, 15, sub(nil, 1, resources))
	request := sub(sub(raw.Message(nil).With(p.ID, 1), 2, config), 3, p.config)
	id := p.client.Call("CreateContainer", request).Text(1)
	p.client.Call("StartContainer", raw.Message(nil).With(id, 1))
	return id
}

// Stop stops a container and removes it, as kubelet does before it starts the next one of that name.
func (p *Pod) Stop(id string) {
	p.client.t.Helper()
	p.client.Call("StopContainer", raw.Message(nil).With(id, 1))
	p.client.Call("RemoveContainer", raw.Message(nil).With(id, 1))
}

// Remove stops and removes the pod.
func (p *Pod) Remove() {
	p.client.t.Helper()
	p.client.Call("StopPodSandbox", raw.Message(nil).With(p.ID, 1))
	p.client.Call("RemovePodSandbox", raw.Message(nil).With(p.ID, 1))
}

// CPUs reads a container's cpuset from its cgroup, Memory its memory nodes.
func (p *Pod) CPUs(id string) (string, error) { return p.cgroup(id, "cpuset.cpus") }

// Memory reads the memory nodes of a container's cgroup.
func (p *Pod) Memory(id string) (string, error) { return p.cgroup(id, "cpuset.mems") }

// cgroup reads a cpuset file in either version of cgroups.
func (p *Pod) cgroup(id, file string) (string, error) {
	text, err := os.ReadFile("/sys/fs/cgroup/cpuset" + p.parent + "/" + id + "/" + file)
	if err != nil {
		text, err = os.ReadFile("/sys/fs/cgroup" + p.parent + "/" + id + "/" + file + ".effective")
	}
	return strings.TrimSpace(string(text)), err
}

// cgroup is the directory of all pods of this process, in every hierarchy.
func cgroup() string { return fmt.Sprintf("kubepods-lab%d", os.Getpid()) }

// removeCgroups removes the directories that runc leaves to kubelet. A directory goes only when it is empty, children first.
func removeCgroups() {
	found, err := filepath.Glob("/sys/fs/cgroup/*/" + cgroup())
	if err != nil {
		return
	}
	for _, root := range append(found, "/sys/fs/cgroup/"+cgroup()) {
		var dirs []string
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for _, dir := range slices.Backward(dirs) {
			_ = os.Remove(dir) // what is still in use stays
		}
	}
}
