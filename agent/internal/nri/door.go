// Package nri is the door to runtimes that have the Node Resource Interface: containerd from 1.7, CRI-O from
// 1.26.
//
// # Layout
//
//	door.go     the hooks, each one question to the engine
//	convert.go  NRI's messages and ours
//	connect.go  connecting, and connecting again
//	log.go      what NRI's stub has to say
package nri

import (
	"context"
	"log/slog"

	"github.com/containerd/nri/pkg/api"

	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/topology"
)

// Door answers the hooks of one runtime. None of them ever returns an error: that would fail the pod.
type Door struct {
	engine  *engine.Engine
	machine *topology.Topology
	log     *slog.Logger
	index   string
	again   updater
}

// New makes a door that runs as a plugin of that index, which has two digits.
func New(e *engine.Engine, machine *topology.Topology, log *slog.Logger, index string) (*Door, error) {
	if err := api.CheckPluginIndex(index); err != nil {
		return nil, err
	}
	return &Door{engine: e, machine: machine, log: log, index: index, again: make(updater, 1)}, nil
}

// Synchronize takes over what is running, and answers with what must change.
func (d *Door) Synchronize(_ context.Context, pods []*api.PodSandbox, containers []*api.Container) ([]*api.ContainerUpdate, error) {
	byID := map[string]*api.PodSandbox{}
	names := map[string][]string{}
	for _, p := range pods {
		byID[p.GetId()] = p
		names[p.GetId()] = nil
	}
	var running []engine.Arrival
	for _, c := range containers {
		pod := byID[c.GetPodSandboxId()]
		if pod == nil {
			continue
		}
		names[pod.GetId()] = append(names[pod.GetId()], c.GetName())
		if c.GetState() == api.ContainerState_CONTAINER_STOPPED {
			continue
		}
		running = append(running, d.arrival(pod, c))
	}
	changes := d.engine.Synchronize(running, names)
	d.engine.Attach(d.again)
	return riding(changes), nil
}

// CreateContainer pins the newcomer, and re-pins whom it displaces.
func (d *Door) CreateContainer(_ context.Context, pod *api.PodSandbox, c *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	pin, changes := d.engine.Create(d.arrival(pod, c))
	adjustment := &api.ContainerAdjustment{}
	if !pin.CPUs.Empty() {
		adjustment.SetLinuxCPUSetCPUs(pin.CPUs.String())
	}
	if !pin.Memory.Empty() {
		adjustment.SetLinuxCPUSetMems(pin.Memory.String())
	}
	if !pin.Empty() {
		adjustment.AddAnnotation(engine.Mark, "")
	}
	return adjustment, riding(changes), nil
}

// UpdateContainer places a container again whose resources change. The cpusets of an update go into the same
// message as the new resources.
func (d *Door) UpdateContainer(_ context.Context, pod *api.PodSandbox, c *api.Container, r *api.LinuxResources) ([]*api.ContainerUpdate, error) {
	pin, changes := d.engine.Resize(c.GetId(), func(to *policy.Container) { d.resources(pod, c, r).Fill(to, d.machine.Memory()) })
	if !pin.CPUs.Empty() || !pin.Memory.Empty() {
		changes = append(changes, policy.Change{ID: c.GetId(), Pin: pin})
	}
	return riding(changes), nil
}

// PostUpdateContainer tells that the runtime has taken the new resources. It does not tell when it has
// refused them.
func (d *Door) PostUpdateContainer(_ context.Context, _ *api.PodSandbox, c *api.Container) error {
	d.engine.Resized(c.GetId(), true)
	return nil
}

// StopContainer gives back what the container had.
func (d *Door) StopContainer(_ context.Context, _ *api.PodSandbox, c *api.Container) ([]*api.ContainerUpdate, error) {
	return riding(d.engine.Stop(c.GetId())), nil
}

// RemoveContainer is for containers that never came to be stopped.
func (d *Door) RemoveContainer(_ context.Context, _ *api.PodSandbox, c *api.Container) error {
	d.engine.Drop(c.GetId())
	return nil
}

// StopPodSandbox forgets the pod.
func (d *Door) StopPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	d.engine.DropPod(pod.GetId())
	return nil
}

// RemovePodSandbox forgets the pod, had its stop been missed.
func (d *Door) RemovePodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return d.StopPodSandbox(ctx, pod)
}
