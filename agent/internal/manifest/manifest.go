// Package manifest turns users' Kubernetes manifests into the containers that a node would be asked to start,
// so that a placement can be tried before anything is deployed.
package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

type metadata struct {
	Name        string            `yaml:"name"`
	Namespace   string            `yaml:"namespace"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type template struct {
	Metadata metadata `yaml:"metadata"`
	Spec     podSpec  `yaml:"spec"`
}

// object is a Pod, or anything that has a pod template (Deployment, StatefulSet, DaemonSet, Job, CronJob), or
// a List of such.
type object struct {
	Kind     string   `yaml:"kind"`
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		podSpec     `yaml:",inline"`
		Replicas    *int      `yaml:"replicas"`
		Template    *template `yaml:"template"`
		JobTemplate struct {
			Spec struct {
				Template *template `yaml:"template"`
			} `yaml:"spec"`
		} `yaml:"jobTemplate"`
	} `yaml:"spec"`
	Status podStatus `yaml:"status"`
	Items  []object  `yaml:"items"`
}

// podStatus is what a cluster adds to a pod that runs.
type podStatus struct {
	PodIP  string `yaml:"podIP"`
	PodIPs []struct {
		IP string `yaml:"ip"`
	} `yaml:"podIPs"`
	ContainerStatuses []struct {
		Name        string `yaml:"name"`
		ContainerID string `yaml:"containerID"` // RUNTIME://ID
	} `yaml:"containerStatuses"`
}

// addresses are the pod's, each once.
func (s *podStatus) addresses() []string {
	var list []string
	if s.PodIP != "" {
		list = append(list, s.PodIP)
	}
	for _, more := range s.PodIPs {
		if more.IP != "" && !slices.Contains(list, more.IP) {
			list = append(list, more.IP)
		}
	}
	return list
}

// ids are the runtime's, by the containers' names.
func (s *podStatus) ids() map[string]string {
	ids := map[string]string{}
	for _, c := range s.ContainerStatuses {
		if _, id, found := strings.Cut(c.ContainerID, "://"); found {
			ids[c.Name] = id
		}
	}
	return ids
}

// copyMark is replaced by the number of the copy, so that pairs can be told apart: "app: redis-$n".
const copyMark = "$n"

// maxPods bounds what one set of manifests may ask for.
const maxPods = 10_000

// Read reads YAML documents and returns the pods that so many copies of them make. Objects without pods
// (services) are passed over.
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
			if pods, err = o.appendTo(pods); err != nil {
				return nil, err
			}
		}
		if !bytes.Contains(text, []byte(copyMark)) {
			break
		}
	}
	return pods, nil
}

// appendTo appends the pods of the object, and of those in its list.
func (o *object) appendTo(pods []Pod) ([]Pod, error) {
	for i := range o.Items {
		var err error
		if pods, err = o.Items[i].appendTo(pods); err != nil {
			return nil, err
		}
	}
	meta, spec, replicas := o.Metadata, o.Spec.podSpec, 1
	t := cmp.Or(o.Spec.Template, o.Spec.JobTemplate.Spec.Template)
	if t != nil {
		meta, spec = t.Metadata, t.Spec
		meta.Name, meta.Namespace = o.Metadata.Name, cmp.Or(meta.Namespace, o.Metadata.Namespace)
		if o.Spec.Replicas != nil {
			replicas = *o.Spec.Replicas
		}
	}
	if len(spec.Containers) == 0 {
		return pods, nil
	}
	if replicas > maxPods-len(pods) {
		return nil, fmt.Errorf("%s %s: more than %d pods", o.Kind, o.Metadata.Name, maxPods)
	}
	meta.Namespace = cmp.Or(meta.Namespace, "default")
	for i := range replicas {
		own := meta
		if t != nil {
			own.Name = fmt.Sprintf("%s-%d", meta.Name, i)
		}
		pod, err := makePod(own, spec)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.Kind, o.Metadata.Name, err)
		}
		pod.Addresses, pod.IDs = o.Status.addresses(), o.Status.ids()
		pods = append(pods, pod)
	}
	return pods, nil
}
