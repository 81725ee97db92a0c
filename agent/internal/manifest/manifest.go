// Package manifest turns users' Kubernetes manifests into the containers that a node would be asked to start, so that a
// placement can be tried before anything is deployed.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"proxima.io/agent/internal/annotation"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/quantity"
)

type metadata struct {
	Name        string            `yaml:"name"`
	Namespace   string            `yaml:"namespace"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type container struct {
	Name      string `yaml:"name"`
	Resources struct {
		Requests map[string]string `yaml:"requests"`
		Limits   map[string]string `yaml:"limits"`
	} `yaml:"resources"`
}

type podSpec struct {
	Containers []container `yaml:"containers"`
}

// object is a Pod, or anything that has a pod template: Deployment, StatefulSet, Job, DaemonSet.
type object struct {
	Kind     string   `yaml:"kind"`
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		podSpec  `yaml:",inline"`
		Replicas *int `yaml:"replicas"`
		Template *struct {
			Metadata metadata `yaml:"metadata"`
			Spec     podSpec  `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

// Pod is the containers of one pod, and what its annotations made us say.
type Pod struct {
	Name       string
	Containers []policy.Container
	Findings   []annotation.Finding
}

// copyMark is replaced by the number of the copy, so that pairs can be told apart: "app: redis-$n".
const copyMark = "$n"

// maxPods bounds what one set of manifests may ask for.
const maxPods = 10_000

// Read reads YAML documents and returns the pods that so many copies of them make. Objects without pods (services) are
// passed over.
func Read(text []byte, copies int) ([]Pod, error) {
	var pods []Pod
	for n := 1; n <= copies; n++ {
		documents := yaml.NewDecoder(bytes.NewReader(bytes.ReplaceAll(text, []byte(copyMark), []byte(strconv.Itoa(n)))))
		for {
			var o object
			err := documents.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			some, err := o.pods()
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", o.Kind, o.Metadata.Name, err)
			}
			if pods = append(pods, some...); len(pods) > maxPods {
				return nil, fmt.Errorf("more than %d pods", maxPods)
			}
		}
		if !bytes.Contains(text, []byte(copyMark)) {
			break
		}
	}
	return pods, nil
}

func (o *object) pods() ([]Pod, error) {
	meta, spec, replicas := o.Metadata, o.Spec.podSpec, 1
	if t := o.Spec.Template; t != nil {
		name, namespace := meta.Name, meta.Namespace
		meta, spec = t.Metadata, t.Spec
		meta.Name = name
		if meta.Namespace == "" {
			meta.Namespace = namespace
		}
		if o.Spec.Replicas != nil {
			replicas = *o.Spec.Replicas
		}
	}
	if len(spec.Containers) == 0 {
		return nil, nil
	}
	if replicas > maxPods {
		return nil, fmt.Errorf("%d replicas", replicas)
	}
	if meta.Namespace == "" {
		meta.Namespace = "default"
	}
	var pods []Pod
	for i := range replicas {
		own := meta
		if o.Spec.Template != nil {
			own.Name = fmt.Sprintf("%s-%d", meta.Name, i)
		}
		pod, err := makePod(own, spec)
		if err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

func makePod(meta metadata, spec podSpec) (Pod, error) {
	pod := Pod{Name: meta.Name}
	names := make([]string, len(spec.Containers))
	for i, c := range spec.Containers {
		names[i] = c.Name
	}
	pod.Findings = annotation.Strangers(meta.Annotations, names)
	guaranteed, bestEffort := true, true
	for _, from := range spec.Containers {
		c, exact, err := makeContainer(from)
		if err != nil {
			return pod, fmt.Errorf("container %s: %w", from.Name, err)
		}
		guaranteed = guaranteed && exact
		bestEffort = bestEffort && c.Request == 0 && c.Limit == 0 && c.Memory == 0
		pod.Containers = append(pod.Containers, c)
	}
	for i := range pod.Containers {
		c := &pod.Containers[i]
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
	}
	return pod, nil
}

// makeContainer also tells whether the container is one of a Guaranteed pod: limits for both, and requests equal to them.
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
	if c.Memory == 0 {
		c.Memory = request
	}
	return c, exact, nil
}
