package cri

import (
	"context"
	"crypto/rand"
	"os"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"proxima.io/agent/internal/cgroup"
	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/kube"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/raw"
)

// Field numbers of the CRI's messages (api.proto; the same in v1alpha2 and v1).
const (
	createPodID, createConfig, createSandbox                   = 1, 2, 3
	configMetadata, configDevices, configLabels, configLinux   = 1, 8, 9, 15
	configNotes, mapKey                                        = 10, 1
	sandboxMetadata, sandboxLabels, sandboxNotes, sandboxLinux = 1, 6, 7, 8
	linuxResources                                             = 1
	resourcePeriod, resourceQuota, resourceShares              = 1, 2, 3
	resourceMemory, resourceOOM                                = 4, 5
	resourceCPUs, resourceMems                                 = 6, 7
	deviceHostPath                                             = 2
	updateID, updateLinux                                      = 1, 2
	firstField                                                 = 1 // the id in requests and responses that have little else
)

// looker follows one call of a method that we look into.
type looker struct {
	door     *Door
	method   string // the last part of its name
	full     string
	prefix   string // "/runtime.v1.RuntimeService/"
	pending  string // the name of the container that is being created
	parent   string // its pod's cgroup
	id       string
	answered bool
}

// looker returns nil for methods that we do not look into. Those that we do have one message each way.
func (d *Door) looker(method string) *looker {
	for _, prefix := range versions {
		switch name := strings.TrimPrefix(method, prefix); name {
		case "CreateContainer", "UpdateContainerResources", "StopContainer", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox":
			return &looker{door: d, method: name, full: method, prefix: prefix}
		}
	}
	return nil
}

// call forwards the call: the request with our pin where there is one, and the answer as it comes.
func (l *looker) call(ctx context.Context, from grpc.ServerStream) error {
	request, reply := &raw.Frame{}, &raw.Frame{}
	if err := from.RecvMsg(request); err != nil {
		return err
	}
	switch l.method {
	case "CreateContainer", "UpdateContainerResources":
		l.door.listing.RLock() // a list that is being made must not miss it
		defer l.door.listing.RUnlock()
	}
	defer func() { l.door.ballast.saw(max(len(request.Bytes), len(reply.Bytes))) }()
	request.Bytes = l.request(request.Bytes)
	var header, trailer metadata.MD
	err := l.door.runtime.Invoke(ctx, l.full, request, reply, grpc.Header(&header), grpc.Trailer(&trailer))
	if err == nil {
		l.response(reply.Bytes)
	}
	l.done(err)
	from.SetTrailer(trailer)
	if headerErr := from.SetHeader(header); err == nil {
		err = headerErr
	}
	if err != nil {
		return err
	}
	return from.SendMsg(reply)
}

// request looks at a request and returns it, with our pin where there is one.
func (l *looker) request(bytes []byte) []byte {
	m := raw.Message(bytes)
	switch l.method {
	case "CreateContainer":
		return l.create(m)
	case "UpdateContainerResources":
		return l.update(m)
	}
	l.id = m.Text(firstField)
	return bytes
}

func (l *looker) create(m raw.Message) raw.Message {
	a := l.door.arrival(m)
	l.door.releaseExited(a.PodID, l.prefix)
	l.pending = "creating-" + rand.Text()
	a.ID, l.parent = l.pending, m.At(createSandbox, sandboxLinux).Text(1)
	pin, _ := l.door.engine.Create(a)
	if pin.Empty() {
		return m
	}
	return m.With(pin.CPUs.String(), createConfig, configLinux, linuxResources, resourceCPUs).
		With(pin.Memory.String(), createConfig, configLinux, linuxResources, resourceMems).
		With(engine.Mark, createConfig, configNotes, mapKey)
}

func (l *looker) update(m raw.Message) raw.Message {
	l.id = m.Text(updateID)
	pin, _ := l.door.engine.Resize(l.id, func(c *policy.Container) {
		resourcesOf(m.At(updateLinux), "").Fill(c, l.door.machine.Memory())
	})
	return m.With(pin.CPUs.String(), updateLinux, resourceCPUs).With(pin.Memory.String(), updateLinux, resourceMems)
}

// response looks at an answer.
func (l *looker) response(bytes []byte) {
	l.answered = true
	if l.method == "CreateContainer" {
		id := raw.Message(bytes).Text(firstField)
		l.door.engine.Rename(l.pending, id, cgroup.Below(l.parent, id))
	}
}

// done is called when the call is over.
func (l *looker) done(err error) {
	switch {
	case l.pending != "" && !l.answered:
		l.door.engine.Drop(l.pending) // it was not created after all
		return
	case l.method == "UpdateContainerResources":
		l.door.statuses.update(l.id)
		l.door.engine.Resized(l.id, err == nil)
		return
	case err != nil || l.id == "":
		return
	}
	l.door.listing.RLock()
	defer l.door.listing.RUnlock()
	switch l.method {
	case "StopContainer", "RemoveContainer":
		l.door.engine.Drop(l.id)
	case "StopPodSandbox", "RemovePodSandbox":
		l.door.engine.DropPod(l.id)
	}
}

// arrival reads a CreateContainerRequest.
func (d *Door) arrival(m raw.Message) engine.Arrival {
	config, sandbox := m.At(createConfig), m.At(createSandbox)
	a := engine.Arrival{Annotations: sandbox.Labels(sandboxNotes)}
	a.Name, a.Labels = config.At(configMetadata).Text(1), config.Labels(configLabels)
	a.PodID, a.PodLabels = m.Text(createPodID), sandbox.Labels(sandboxLabels)
	pod := sandbox.At(sandboxMetadata)
	a.PodName, a.PodUID, a.Namespace = pod.Text(1), pod.Text(2), pod.Text(3)
	resources := resourcesOf(config.At(configLinux, linuxResources), sandbox.At(sandboxLinux).Text(1))
	resources.Fill(&a.Container, d.machine.Memory())
	a.Seen = resources.Seen()
	for _, device := range config.All(configDevices) {
		a.Uses = append(a.Uses, d.machine.DevicesOf(deviceNumber(device.Text(deviceHostPath)))...)
	}
	return a
}

func resourcesOf(r raw.Message, cgroupParent string) kube.Resources {
	return kube.Resources{
		Shares: r.Number(resourceShares), Quota: r.Number(resourceQuota), Period: r.Number(resourcePeriod),
		MemoryLimit: r.Number(resourceMemory), OOMScoreAdj: r.Number(resourceOOM), CgroupParent: cgroupParent,
		CPUs: r.Text(resourceCPUs), MemoryNodes: r.Text(resourceMems),
	}
}

// deviceNumber returns MAJOR:MINOR of a device file, or "" where it is none or cannot be seen from here.
func deviceNumber(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&os.ModeDevice == 0 {
		return ""
	}
	major := (stat.Rdev>>8)&0xfff | (stat.Rdev>>32)&^uint64(0xfff)
	minor := stat.Rdev&0xff | (stat.Rdev>>12)&^uint64(0xff)
	return strconv.FormatUint(major, 10) + ":" + strconv.FormatUint(minor, 10)
}
