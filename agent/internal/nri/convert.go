package nri

import (
	"slices"
	"strconv"

	"github.com/containerd/nri/pkg/api"

	"proxima.io/agent/internal/cgroup"
	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/kube"
	"proxima.io/agent/internal/policy"
)

func (d *Door) arrival(pod *api.PodSandbox, c *api.Container) engine.Arrival {
	a := engine.Arrival{Annotations: pod.GetAnnotations()}
	a.ID, a.Name, a.Labels = c.GetId(), c.GetName(), c.GetLabels()
	a.PodID, a.PodUID, a.PodName, a.Namespace = pod.GetId(), pod.GetUid(), pod.GetName(), pod.GetNamespace()
	a.PodLabels = pod.GetLabels()
	resources := d.resources(pod, c, c.GetLinux().GetResources())
	resources.Fill(&a.Container, d.machine.Memory())
	a.Seen = resources.Seen()
	_, a.Marked = c.GetAnnotations()[engine.Mark]
	a.Cgroup = cgroup.Of(c.GetLinux().GetCgroupsPath())
	a.Addresses, a.AddressesTold = addresses(pod)
	for _, device := range c.GetLinux().GetDevices() {
		number := strconv.FormatInt(device.GetMajor(), 10) + ":" + strconv.FormatInt(device.GetMinor(), 10)
		a.Uses = append(a.Uses, d.machine.DevicesOf(number)...)
	}
	return a
}

// addresses returns a pod's addresses. A runtime that tells none may be too old for that (containerd before
// 2.1), unless the pod has the node's network.
func addresses(pod *api.PodSandbox) (list []string, told bool) {
	if list = pod.GetIps(); len(list) > 0 {
		return list, true
	}
	namespaces := pod.GetLinux().GetNamespaces()
	own := slices.ContainsFunc(namespaces, func(n *api.LinuxNamespace) bool { return n.GetType() == "network" })
	return []string{}, len(namespaces) > 0 && !own
}

func (d *Door) resources(pod *api.PodSandbox, c *api.Container, r *api.LinuxResources) kube.Resources {
	return kube.Resources{
		Shares: int64(r.GetCpu().GetShares().GetValue()), Quota: r.GetCpu().GetQuota().GetValue(),
		Period: int64(r.GetCpu().GetPeriod().GetValue()), MemoryLimit: r.GetMemory().GetLimit().GetValue(),
		OOMScoreAdj: c.GetLinux().GetOomScoreAdj().GetValue(), CgroupParent: pod.GetLinux().GetCgroupParent(),
		CPUs: r.GetCpu().GetCpus(), MemoryNodes: r.GetCpu().GetMems(),
	}
}

// riding writes changes that ride on a request: a container that is gone by then must not fail the request.
func riding(changes []policy.Change) []*api.ContainerUpdate {
	list := make([]*api.ContainerUpdate, 0, len(changes))
	for _, c := range changes {
		u := &api.ContainerUpdate{}
		u.SetContainerId(c.ID)
		if !c.CPUs.Empty() {
			u.SetLinuxCPUSetCPUs(c.CPUs.String())
		}
		if !c.Memory.Empty() {
			u.SetLinuxCPUSetMems(c.Memory.String())
		}
		u.SetIgnoreFailure()
		list = append(list, u)
	}
	return list
}
