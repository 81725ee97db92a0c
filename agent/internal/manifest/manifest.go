// Package manifest turns users' Kubernetes manifests into the containers that a node would be asked to start,
// so that a placement can be tried before anything is deployed.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

type metadata struct {
	Name         string            `yaml:"name"`
	GenerateName string            `yaml:"generateName"`
	Namespace    string            `yaml:"namespace"`
	Labels       map[string]string `yaml:"labels"`
	Annotations  map[string]string `yaml:"annotations"`
}

type template struct {
	Metadata metadata `yaml:"metadata"`
	Spec     podSpec  `yaml:"spec"`
}

// jobSpec is what makes pods: of a Job, of a CronJob's jobs, and but for the numbers of everything else.
type jobSpec struct {
	Template    *template `yaml:"template"`
	Parallelism *int      `yaml:"parallelism"`
	Completions *int      `yaml:"completions"`
}

// atOnce is how many pods run at a time.
func (j *jobSpec) atOnce() int {
	count := 1
	if j.Parallelism != nil {
		count = *j.Parallelism
	}
	if j.Completions != nil {
		count = min(count, *j.Completions)
	}
	return count
}

// object is a Pod, or anything that has a pod template (Deployment, StatefulSet, DaemonSet, Job, CronJob), or
// a List of such.
type object struct {
	Kind     string   `yaml:"kind"`
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		podSpec     `yaml:",inline"`
		Replicas    *int `yaml:"replicas"`
		jobSpec     `yaml:",inline"`
		JobTemplate struct {
			Spec jobSpec `yaml:"spec"`
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

// Read reads YAML documents and returns the pods that so many copies of them make, each with a name that no
// other pod of its namespace has. Objects without pods (services) are passed over.
func Read(text []byte, copies int) ([]Pod, error) {
	var all cast
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
			if err = all.add(&o); err != nil {
				return nil, err
			}
		}
		if !bytes.Contains(text, []byte(copyMark)) {
			break
		}
	}
	all.name()
	pods := make([]Pod, len(all.roles))
	for i, r := range all.roles {
		pod, err := makePod(r.meta, r.spec)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.of.Kind, r.of.Metadata.Name, err)
		}
		pod.Addresses, pod.IDs = r.of.Status.addresses(), r.of.Status.ids()
		pods[i] = pod
	}
	return pods, nil
}
