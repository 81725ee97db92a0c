package cri

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/connectivity"

	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/kube"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/raw"
)

// Our own calls to the runtime.
const (
	callTimeout    = 10 * time.Second
	listTimeout    = 20 * time.Second // for all calls of one list; containers wait for it
	reconnectAfter = 2 * time.Second
	running        = 1 // CONTAINER_RUNNING
	exited         = 2 // CONTAINER_EXITED
)

var versions = []string{"/runtime.v1.RuntimeService/", "/runtime.v1alpha2.RuntimeService/"}

func (d *Door) call(ctx context.Context, method string, request raw.Message) (raw.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply := &raw.Frame{}
	err := d.runtime.Invoke(ctx, method, &raw.Frame{Bytes: request}, reply)
	return reply.Bytes, err
}

// follow asks a runtime that has come up what is running, and becomes the way to re-pin it until it goes.
func (d *Door) follow(ctx context.Context) {
	for ctx.Err() == nil {
		for _, prefix := range versions {
			if err := d.synchronize(ctx, prefix); err == nil {
				d.engine.Attach(updater{d, prefix})
				d.runtime.WaitForStateChange(ctx, connectivity.Ready)
				d.engine.Attach(nil)
				d.log.Warn("the runtime has closed the connection")
				break
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectAfter):
		}
	}
}

// synchronize lists pods and running containers. Their resources come from the verbose status: runtimes that need this door
// are too old for the plain one to have them.
func (d *Door) synchronize(ctx context.Context, prefix string) error {
	d.listing.Lock()
	defer d.listing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	sandboxes, err := d.call(ctx, prefix+"ListPodSandbox", nil)
	if err != nil {
		return err
	}
	containers, err := d.call(ctx, prefix+"ListContainers", nil)
	if err != nil {
		return err
	}
	pods, present := map[string]raw.Message{}, map[string]bool{}
	for _, p := range sandboxes.All(1) {
		pods[p.Text(1)] = p
		present[p.Text(1)] = true
	}
	var arrivals []engine.Arrival
	for _, c := range containers.All(1) {
		if pod, ok := pods[c.Text(2)]; ok && c.Number(6) <= running {
			arrivals = append(arrivals, d.found(ctx, prefix, pod, c))
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.engine.Synchronize(arrivals, present)
	return nil
}

// found describes a container of a list.
func (d *Door) found(ctx context.Context, prefix string, pod, c raw.Message) engine.Arrival {
	a := engine.Arrival{Annotations: pod.Labels(6)}
	a.ID, a.PodID, a.Name, a.Labels = c.Text(1), c.Text(2), c.At(3).Text(1), c.Labels(8)
	a.PodName, a.PodUID, a.Namespace, a.PodLabels = pod.At(2).Text(1), pod.At(2).Text(2), pod.At(2).Text(3), pod.Labels(5)
	if old, known := d.engine.Container(a.ID); known {
		a.Request, a.Limit, a.Memory, a.QOS, a.Uses = old.Request, old.Limit, old.Memory, old.QOS, old.Uses
	}
	d.fillFromStatus(ctx, prefix, &a)
	return a
}

// verbose is the part of containerd's and CRI-O's verbose status that we need.
type verbose struct {
	RuntimeSpec struct {
		Linux struct {
			CgroupsPath string `json:"cgroupsPath"`
			Resources   struct {
				CPU struct {
					Shares int64  `json:"shares"`
					Quota  int64  `json:"quota"`
					Period int64  `json:"period"`
					CPUs   string `json:"cpus"`
					Mems   string `json:"mems"`
				} `json:"cpu"`
				Memory struct {
					Limit int64 `json:"limit"`
				} `json:"memory"`
			} `json:"resources"`
		} `json:"linux"`
		Process struct {
			OOMScoreAdj int64 `json:"oomScoreAdj"`
		} `json:"process"`
	} `json:"runtimeSpec"`
}

func (d *Door) fillFromStatus(ctx context.Context, prefix string, a *engine.Arrival) {
	request := raw.Message(nil).With(a.ID, 1)
	request = append(request, 2<<3, 1) // verbose: true
	reply, err := d.call(ctx, prefix+"ContainerStatus", request)
	if err != nil {
		return // what is known of it stays
	}
	var v verbose
	if err := json.Unmarshal([]byte(reply.Labels(2)["info"]), &v); err != nil {
		return
	}
	a.Request, a.Limit, a.Memory, a.QOS = 0, 0, 0, "" // the status has all of it
	linux := v.RuntimeSpec.Linux
	a.Seen = policy.Pin{CPUs: list(linux.Resources.CPU.CPUs), Memory: list(linux.Resources.CPU.Mems)}
	kube.Resources{
		Shares: linux.Resources.CPU.Shares, Quota: linux.Resources.CPU.Quota, Period: linux.Resources.CPU.Period,
		MemoryLimit: linux.Resources.Memory.Limit, OOMScoreAdj: v.RuntimeSpec.Process.OOMScoreAdj, CgroupParent: linux.CgroupsPath,
	}.Fill(&a.Container, d.memory)
}

// releaseExited gives back what a pod's exited containers had, before the pod's next one is placed: kubelet starts app
// containers after init containers, and the CRI tells nobody of an exit.
func (d *Door) releaseExited(podID, prefix string) {
	known := d.engine.OfPod(podID)
	if len(known) == 0 {
		return
	}
	reply, err := d.call(context.Background(), prefix+"ListContainers", raw.Message(nil).With(podID, 1, 3))
	if err != nil {
		return
	}
	for _, c := range reply.All(1) {
		if id := c.Text(1); c.Number(6) == exited && slices.Contains(known, id) {
			d.engine.Drop(id)
		}
	}
}

// updater re-pins with UpdateContainerResources.
type updater struct {
	door   *Door
	prefix string
}

func (u updater) Update(ctx context.Context, changes []policy.Change) ([]string, error) {
	failed := map[string]bool{}
	for _, c := range changes {
		request := raw.Message(nil).With(c.ID, updateID).
			With(c.CPUs.String(), updateLinux, resourceCPUs).With(c.Memory.String(), updateLinux, resourceMems)
		if _, err := u.door.call(ctx, u.prefix+"UpdateContainerResources", request); err != nil {
			u.door.log.Warn("not re-pinned; trying again", "container", c.ID, "error", err)
			failed[c.ID] = true
		}
	}
	return slices.Collect(maps.Keys(failed)), nil
}
