package manifest

import (
	"fmt"
	"slices"

	"proxima.io/agent/internal/annotation"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/quantity"
)

type container struct {
	Name          string `yaml:"name"`
	RestartPolicy string `yaml:"restartPolicy"` // of init containers: Always makes a sidecar
	Resources     struct {
		Requests map[string]string `yaml:"requests"`
		Limits   map[string]string `yaml:"limits"`
	} `yaml:"resources"`
}

type podSpec struct {
	InitContainers []container `yaml:"initContainers"`
	Containers     []container `yaml:"containers"`
}

// Pod is the containers of one pod, and what its annotations made us say.
type Pod struct {
	Name       string
	Namespace  string
	Containers []policy.Container
	Findings   []annotation.Finding
	// Addresses and IDs are of a pod that runs in a cluster: its own, and the runtime's of its containers by
	// their names.
	Addresses []string
	IDs       map[string]string
}

// makePod makes a pod of those containers that stay: init containers only prepare, and are gone by then, but
// count for the quality of service.
func makePod(meta metadata, spec podSpec) (Pod, error) {
	pod := Pod{Name: meta.Name, Namespace: meta.Namespace}
	all := slices.Concat(spec.InitContainers, spec.Containers)
	made, names := make([]policy.Container, len(all)), make([]string, len(all))
	guaranteed, bestEffort := true, true
	for i, from := range all {
		c, exact, err := makeContainer(from)
		if err != nil {
			return pod, fmt.Errorf("container %s: %w", from.Name, err)
		}
		guaranteed = guaranteed && exact
		bestEffort = bestEffort && c.Request == 0 && c.Limit == 0 && c.Memory == 0
		if slices.Contains(names[:i], c.Name) {
			return pod, fmt.Errorf("two containers are called %s", c.Name)
		}
		made[i], names[i] = c, c.Name
	}
	pod.Findings = annotation.Strangers(meta.Annotations, names)
	for i, c := range made {
		c.PodName, c.Namespace, c.PodLabels = meta.Name, meta.Namespace, meta.Labels
		c.PodID = meta.Namespace + "/" + meta.Name
		c.PodUID = c.PodID
		c.ID = c.PodID + "/" + c.Name
		switch {
		case guaranteed:
			c.QOS = policy.Guaranteed
		case bestEffort:
			c.QOS = "BestEffort"
		default:
			c.QOS = "Burstable"
		}
		var findings []annotation.Finding
		c.Wishes, findings = annotation.Read(meta.Annotations, c.Name)
		for _, f := range findings {
			if !slices.Contains(pod.Findings, f) { // what is wrong for the pod is wrong for each of its containers
				pod.Findings = append(pod.Findings, f)
			}
		}
		if i >= len(spec.InitContainers) || all[i].RestartPolicy == "Always" {
			pod.Containers = append(pod.Containers, c)
		}
	}
	return pod, nil
}

// makeContainer also tells whether the container is one of a Guaranteed pod: limits for both, and requests
// equal to them.
func makeContainer(from container) (c policy.Container, exact bool, err error) {
	c.Name = from.Name
	requests, limits := from.Resources.Requests, from.Resources.Limits
	amount := func(of map[string]string, name string) string {
		if text, ok := of[name]; ok {
			return text
		}
		return "0"
	}
	if c.Limit, err = quantity.MilliCPU(amount(limits, "cpu")); err != nil {
		return c, false, err
	}
	if c.Memory, err = quantity.Bytes(amount(limits, "memory")); err != nil {
		return c, false, err
	}
	c.Request = c.Limit // what Kubernetes assumes where only a limit is written
	if text, ok := requests["cpu"]; ok {
		if c.Request, err = quantity.MilliCPU(text); err != nil {
			return c, false, err
		}
	}
	request := c.Memory
	if text, ok := requests["memory"]; ok {
		if request, err = quantity.Bytes(text); err != nil {
			return c, false, err
		}
	}
	exact = c.Limit > 0 && c.Memory > 0 && c.Request == c.Limit && request == c.Memory
	if c.NoMemoryLimit = c.Memory == 0; c.NoMemoryLimit {
		c.Memory = request
	}
	return c, exact, nil
}
