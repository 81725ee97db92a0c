package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/nodes"
	"proxima.io/agent/internal/simulate"
)

// serve tells proxies where the pods would be, so that routes can be tried on a machine that need not exist.
// The pods' addresses and their containers' ids are those of their status, as `kubectl get pods
// --output=yaml` writes it.
func (s *scene) serve(socket string, files []string, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	shown := &shown{next: make(chan struct{}), snapshot: s.snapshot()}
	server := &nodes.Server{Now: shown.get, Changed: shown.changed, Log: log}
	go config.Watch(ctx, log, func() {
		again := scene{machineFlags: s.machineFlags, config: s.config, where: s.where, copies: s.copies}
		if err := again.load(files); err != nil {
			log.Error("the manifests cannot be read; what they said before is told", "error", err)
			return
		}
		shown.set(again.snapshot())
	}, files...)
	fmt.Fprintf(out, "proxies may follow %s\n", socket)
	serveNodes(ctx, server, socket, log)
	return nil
}

// snapshot places all pods as they are listed.
func (s *scene) snapshot() nodes.Snapshot {
	ours := &simulate.Ours{Policy: s.policy}
	simulate.Play(ours, s.pods, simulate.InOrder(len(s.pods)))
	var pods []nodes.Pod
	for _, p := range s.pods {
		pod := nodes.Pod{Name: p.Name, IPs: p.Addresses, Containers: []nodes.Container{}}
		if pod.IPs == nil {
			pod.IPs = []string{}
		}
		for _, c := range p.Containers {
			pod.UID, pod.Namespace = c.PodUID, c.Namespace
			at := nodes.Container{ID: c.ID, Name: c.Name, Nodes: []int{}}
			if id, told := p.IDs[c.Name]; told {
				at.ID = id
			}
			if cpus, placed := ours.CPUs(c.ID); placed {
				at.Nodes, at.CPUs = s.machine.NodesOf(cpus).IDs(), cpus.String()
				at.Own = ours.Own(c.ID).Intersect(cpus).String()
			}
			pod.Containers = append(pod.Containers, at)
		}
		pods = append(pods, pod)
	}
	return nodes.Of(s.where.Node, s.machine, pods)
}

// shown is a snapshot that may be exchanged.
type shown struct {
	mu       sync.Mutex
	snapshot nodes.Snapshot
	next     chan struct{}
}

func (s *shown) get() nodes.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot
}

func (s *shown) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

func (s *shown) set(snapshot nodes.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot = snapshot
	close(s.next)
	s.next = make(chan struct{})
}
