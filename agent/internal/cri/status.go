package cri

import (
	"context"
	"encoding/json"
	"sync"

	"proxima.io/agent/internal/cgroup"
	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/kube"
	"proxima.io/agent/internal/raw"
)

// atOnce is how many statuses are asked for at a time.
const atOnce = 16

// verbose is the part of containerd's and CRI-O's verbose status that we need: runtimes that need this door
// are too old for the plain one to have resources.
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

func (v *verbose) fill(a *engine.Arrival, memory int64) {
	linux := v.RuntimeSpec.Linux
	resources := kube.Resources{
		Shares: linux.Resources.CPU.Shares, Quota: linux.Resources.CPU.Quota, Period: linux.Resources.CPU.Period,
		MemoryLimit: linux.Resources.Memory.Limit, OOMScoreAdj: v.RuntimeSpec.Process.OOMScoreAdj, CgroupParent: linux.CgroupsPath,
		CPUs: linux.Resources.CPU.CPUs, MemoryNodes: linux.Resources.CPU.Mems,
	}
	resources.Fill(&a.Container, memory)
	a.Seen = resources.Seen()
	a.Cgroup = cgroup.Of(linux.CgroupsPath)
}

// statuses are the answers for one list while it is made.
type statuses struct {
	mu      sync.Mutex
	answers map[string]*verbose // nil where there was none to be had
	changed map[string]bool     // updated since the list was begun: to be asked for with everybody waiting
}

func (s *statuses) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers, s.changed = map[string]*verbose{}, map[string]bool{}
}

func (s *statuses) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers, s.changed = nil, nil
}

func (s *statuses) of(id string) *verbose {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[id]
}

// update notes that a status is not what it was.
func (s *statuses) update(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		s.changed[id] = true
	}
}

// lacks tells whether a container's status is to be asked for.
func (s *statuses) lacks(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.answers[id]
	return !ok || s.changed[id]
}

func (s *statuses) put(id string, v *verbose) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[id] = v
}

// askStatuses asks for the statuses that are lacking, several at a time. Of a container without one, what is
// known stays.
func (d *Door) askStatuses(ctx context.Context, prefix string, containers []raw.Message) {
	var asking sync.WaitGroup
	defer asking.Wait()
	free := make(chan struct{}, atOnce)
	for _, c := range containers {
		id := c.Text(1)
		if !d.statuses.lacks(id) {
			continue
		}
		free <- struct{}{}
		asking.Go(func() {
			defer func() { <-free }()
			v, err := d.status(ctx, prefix, id)
			if err != nil {
				d.log.Warn("no status of a container; what is known of it stays", "container", id, "error", err)
			}
			d.statuses.put(id, v)
		})
	}
}

func (d *Door) status(ctx context.Context, prefix, id string) (*verbose, error) {
	request := raw.Message(nil).With(id, 1)
	request = append(request, 2<<3, 1) // verbose: true
	reply, err := d.call(ctx, prefix+"ContainerStatus", request)
	if err != nil {
		return nil, err
	}
	v := &verbose{}
	if err := json.Unmarshal([]byte(reply.Labels(2)["info"]), v); err != nil {
		return nil, err
	}
	return v, nil
}
