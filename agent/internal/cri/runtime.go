package cri

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/connectivity"

	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/raw"
)

// Our own calls to the runtime.
const (
	callTimeout    = 10 * time.Second
	listTimeout    = 20 * time.Second // for all calls of one list that containers wait for
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
	said := "" // the last failure: the same one every two seconds is said once
	for ctx.Err() == nil {
		var failed error
		for _, prefix := range versions {
			err := d.synchronize(ctx, prefix)
			if err == nil {
				failed = nil
				d.engine.Attach(updater{d, prefix})
				d.runtime.WaitForStateChange(ctx, connectivity.Ready)
				d.engine.Attach(nil)
				d.log.Warn("the runtime has closed the connection")
				break
			}
			failed = errors.Join(failed, err)
		}
		switch {
		case failed == nil:
			said = ""
		case failed.Error() != said && ctx.Err() == nil:
			said = failed.Error()
			d.log.Warn("the runtime does not tell what is running; trying again", "every", reconnectAfter, "error", failed)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectAfter):
		}
	}
}

// synchronize asks twice what is running: once for the statuses, which can take long and nobody waits for,
// and once more with everybody waiting, for what has changed since.
func (d *Door) synchronize(ctx context.Context, prefix string) error {
	before, err := d.list(ctx, prefix)
	if err != nil {
		return err
	}
	d.statuses.start()
	defer d.statuses.stop()
	d.askStatuses(ctx, prefix, before.containers)

	d.listing.Lock()
	defer d.listing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	here, err := d.list(ctx, prefix)
	if err != nil {
		return err
	}
	d.askStatuses(ctx, prefix, here.containers)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var arrivals []engine.Arrival
	for _, c := range here.containers {
		arrivals = append(arrivals, d.found(here.pods[c.Text(2)], c))
	}
	d.engine.Synchronize(arrivals, here.names)
	return nil
}

// list is what a runtime has.
type list struct {
	pods       map[string]raw.Message // by id
	names      map[string][]string    // of all their containers
	containers []raw.Message          // that have not ended
}

func (d *Door) list(ctx context.Context, prefix string) (list, error) {
	l := list{pods: map[string]raw.Message{}, names: map[string][]string{}}
	sandboxes, err := d.call(ctx, prefix+"ListPodSandbox", nil)
	if err != nil {
		return l, err
	}
	all, err := d.call(ctx, prefix+"ListContainers", nil)
	if err != nil {
		return l, err
	}
	for _, p := range sandboxes.All(1) {
		l.pods[p.Text(1)], l.names[p.Text(1)] = p, nil
	}
	for _, c := range all.All(1) {
		pod := c.Text(2)
		if _, ok := l.pods[pod]; !ok {
			continue
		}
		l.names[pod] = append(l.names[pod], c.At(3).Text(1))
		if c.Number(6) <= running {
			l.containers = append(l.containers, c)
		}
	}
	return l, nil
}

// found describes a container of a list.
func (d *Door) found(pod, c raw.Message) engine.Arrival {
	a := engine.Arrival{Annotations: pod.Labels(6)}
	a.ID, a.PodID, a.Name, a.Labels = c.Text(1), c.Text(2), c.At(3).Text(1), c.Labels(8)
	a.PodName, a.PodUID, a.Namespace, a.PodLabels = pod.At(2).Text(1), pod.At(2).Text(2), pod.At(2).Text(3), pod.Labels(5)
	_, a.Marked = c.Labels(9)[engine.Mark]
	old, known := d.engine.Container(a.ID)
	if known {
		a.Uses = old.Uses
	}
	if s := d.statuses.of(a.ID); s != nil {
		s.fill(&a, d.machine.Memory())
	} else if known {
		a.Request, a.Limit, a.Memory, a.NoMemoryLimit, a.QOS = old.Request, old.Limit, old.Memory, old.NoMemoryLimit, old.QOS
	}
	return a
}

// releaseExited gives back what a pod's exited containers had, before the pod's next one is placed: kubelet
// starts app containers after init containers, and the CRI tells nobody of an exit.
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
