package lab

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"proxima.io/agent/internal/raw"
)

// Pod is a pod with its containers, as kubelet would ask for it.
type Pod struct {
	client *Client
	config raw.Message
	parent string
	logs   string
	own    bool // it has a network of its own
	ID     string
}

// sub appends a message field, and num a varint field.
func sub(m raw.Message, number protowire.Number, inner raw.Message) raw.Message {
	return protowire.AppendBytes(protowire.AppendTag(m, number, protowire.BytesType), inner)
}

func num(m raw.Message, number protowire.Number, value int64) raw.Message {
	return protowire.AppendVarint(protowire.AppendTag(m, number, protowire.VarintType), uint64(value))
}

// RunPod runs a sandbox in the host's network. The class is Guaranteed, Burstable or BestEffort. Its labels
// are app, its name, and role, its name without a number behind it.
func (c *Client) RunPod(name, class string, annotations map[string]string) *Pod {
	c.t.Helper()
	return c.runPod(name, class, annotations, false)
}

// RunPodWithAddress is RunPod with a network of the pod's own, which the runtime must have been given (see
// Network).
func (c *Client) RunPodWithAddress(name, class string, annotations map[string]string) *Pod {
	c.t.Helper()
	return c.runPod(name, class, annotations, true)
}

func (c *Client) runPod(name, class string, annotations map[string]string, own bool) *Pod {
	c.t.Helper()
	below := map[string]string{"Guaranteed": "", "Burstable": "burstable/", "BestEffort": "besteffort/"}[class]
	p := &Pod{client: c, parent: fmt.Sprintf("/%s/%spod-%s", cgroup(), below, name), logs: c.t.TempDir(), own: own}
	metadata := raw.Message(nil).With(name, 1).With("uid-"+name, 2).With("default", 3)
	p.config = sub(nil, 1, metadata)
	role, _, _ := strings.Cut(name, "-")
	for key, value := range map[string]string{"app": name, "role": role} {
		p.config = sub(p.config, 6, raw.Message(nil).With(key, 1).With(value, 2))
	}
	for key, value := range annotations {
		p.config = sub(p.config, 7, raw.Message(nil).With(key, 1).With(value, 2))
	}
	p.config = p.config.With(p.logs, 3)
	p.config = sub(p.config, 8, sub(raw.Message(nil).With(p.parent, 1), 2, sub(nil, 1, p.namespaces())))
	p.ID = c.Call("RunPodSandbox", sub(nil, 1, p.config)).Text(1)
	return p
}

// namespaces are network and IPC of the node, unless the pod has its own, and processes of each container's
// own, as is kubelet's default.
func (p *Pod) namespaces() raw.Message {
	const ofPod, ofContainer, ofNode = 0, 1, 2
	shared := int64(ofNode)
	if p.own {
		shared = ofPod
	}
	return num(num(num(nil, 1, shared), 2, ofContainer), 3, shared)
}

// Address returns the address that the runtime tells of the pod.
func (p *Pod) Address() string {
	p.client.t.Helper()
	return p.client.Call("PodSandboxStatus", raw.Message(nil).With(p.ID, 1)).At(1, 5).Text(1)
}

// Container is what a container is made from.
type Container struct {
	Name    string
	Image   string // default: one that sleeps
	Command []string
	Args    []string
	Env     map[string]string
	Mounts  []Mount
	Milli   int64 // thousandths of a CPU
	Memory  int64 // limit in MiB; 0: 64 if limited, else none
	Limited bool  // the request is the limit too
	// ReadOnly is a root file system that cannot be written, NoPrivileges no capability and none to be had.
	ReadOnly, NoPrivileges bool
}

// Mount is a directory of the node in a container.
type Mount struct {
	Host, Container string
	ReadOnly        bool
}

// Run creates and starts a container that sleeps, with so many thousandths of a CPU (as request and, if
// limited, as limit too), and returns its id.
func (p *Pod) Run(name string, milli int64, limited bool) string {
	p.client.t.Helper()
	return p.Start(Container{Name: name, Milli: milli, Limited: limited})
}

// Start creates and starts a container, and returns its id.
func (p *Pod) Start(c Container) string {
	p.client.t.Helper()
	id := p.client.Call("CreateContainer", p.request(c)).Text(1)
	p.client.Call("StartContainer", raw.Message(nil).With(id, 1))
	return id
}

func (p *Pod) request(c Container) raw.Message {
	resources := num(nil, 3, max(2, c.Milli*1024/1000))
	if c.Limited {
		resources = num(num(resources, 1, 100_000), 2, c.Milli*100)
	}
	if c.Limited || c.Memory > 0 {
		resources = num(resources, 4, max(64, c.Memory)<<20)
	}
	config := sub(nil, 1, raw.Message(nil).With(c.Name, 1))
	config = sub(config, 2, raw.Message(nil).With(cmp.Or(c.Image, sleeper), 1))
	for _, word := range c.Command {
		config = config.With(word, 3)
	}
	for _, word := range c.Args {
		config = protowire.AppendString(protowire.AppendTag(config, 4, protowire.BytesType), word)
	}
	for key, value := range c.Env {
		config = sub(config, 6, raw.Message(nil).With(key, 1).With(value, 2))
	}
	for _, m := range c.Mounts {
		mount := raw.Message(nil).With(m.Container, 1).With(m.Host, 2)
		if m.ReadOnly {
			mount = num(mount, 3, 1)
		}
		config = sub(config, 7, mount)
	}
	config = sub(config, 9, raw.Message(nil).With("io.kubernetes.container.name", 1).With(c.Name, 2))
	config = config.With(c.Name+".log", 11)
	security := sub(nil, 3, p.namespaces())
	if c.ReadOnly {
		security = num(security, 7, 1)
	}
	if c.NoPrivileges {
		security = num(sub(security, 1, raw.Message(nil).With("ALL", 2)), 11, 1)
	}
	config = sub(config, 15, sub(sub(nil, 1, resources), 2, security))
	return sub(sub(raw.Message(nil).With(p.ID, 1), 2, config), 3, p.config)
}

// Resize asks the runtime to change a container's request and limit, in thousandths of a CPU. The kernel
// takes periods of a second at most.
func (p *Pod) Resize(id string, milli int64, period time.Duration) error {
	us := period.Microseconds()
	resources := num(num(num(nil, 1, us), 2, milli*us/1000), 3, milli*1024/1000)
	_, err := p.client.Try("UpdateContainerResources", sub(raw.Message(nil).With(id, 1), 2, resources))
	return err
}

// Log returns what a container has written.
func (p *Pod) Log(name string) string {
	text, err := os.ReadFile(filepath.Join(p.logs, name+".log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Process returns the id of a container's first process.
func (p *Pod) Process(id string) (int, error) {
	for _, dir := range []string{"/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"} {
		text, err := os.ReadFile(dir + p.parent + "/" + id + "/cgroup.procs")
		if err == nil {
			first, _, _ := strings.Cut(string(text), "\n")
			return strconv.Atoi(first)
		}
	}
	return 0, fmt.Errorf("container %s has no cgroup", id)
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

// Written returns the CPUs and memory nodes that were written into a container's cgroup, be they there or
// not.
func (p *Pod) Written(id string) (cpus, memory string, err error) {
	for _, dir := range []string{"/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"} {
		dir += p.parent + "/" + id
		list, err1 := os.ReadFile(dir + "/cpuset.cpus")
		nodes, err2 := os.ReadFile(dir + "/cpuset.mems")
		if err = errors.Join(err1, err2); err == nil {
			return strings.TrimSpace(string(list)), strings.TrimSpace(string(nodes)), nil
		}
	}
	return "", "", err
}

// cgroup reads a cpuset file in either version of cgroups.
func (p *Pod) cgroup(id, file string) (string, error) {
	text, err := os.ReadFile("/sys/fs/cgroup/cpuset" + p.parent + "/" + id + "/" + file)
	if err != nil {
		text, err = os.ReadFile("/sys/fs/cgroup" + p.parent + "/" + id + "/" + file + ".effective")
	}
	return strings.TrimSpace(string(text)), err
}

// cgroup is the directory of all pods of this process, in every hierarchy.
func cgroup() string {
	if InGuest() {
		return "kubepods" // nobody else is there, and the agent knows it by that name
	}
	return fmt.Sprintf("kubepods-lab%d", os.Getpid())
}

// removeCgroups removes the directories that runc leaves to kubelet. A directory goes only when it is empty,
// children first.
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

// Exec runs a command in a container, and returns what it printed.
func (p *Pod) Exec(id string, command []string) (string, error) {
	request := raw.Message(nil).With(id, 1)
	for _, word := range command {
		request = protowire.AppendString(protowire.AppendTag(request, 2, protowire.BytesType), word)
	}
	reply, err := p.client.Try("ExecSync", request)
	if err == nil && reply.Number(3) != 0 {
		err = fmt.Errorf("%v: exit code %d: %s", command, reply.Number(3), reply.Text(2))
	}
	return reply.Text(1), err
}
