package main

import (
	"context"
	"flag"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"proxima.io/agent/internal/cri"
	"proxima.io/agent/internal/nodes"
)

const defaultNodes = "/run/proxima-agent/nodes.sock"

// nodesFlags say which processes are told where the pods are.
type nodesFlags struct {
	socket, list string
	readers      nodes.Readers
}

func (n *nodesFlags) register(set *flag.FlagSet) {
	set.StringVar(&n.socket, "nodes-socket", defaultNodes, "Unix `socket` where proxies follow which pod is on which NUMA node; empty is none")
	set.StringVar(&n.list, "nodes-readers", "", "who may read there besides root: a `list` such as uid:1000,gid:2000 (default: the agent's group)")
}

func (n *nodesFlags) check() (err error) {
	n.readers, err = nodes.ParseReaders(n.list)
	return err
}

// tellNodes serves the nodes' socket until the context ends, and tries again where it cannot.
func (s *service) tellNodes(ctx context.Context) {
	server := &nodes.Server{Changed: s.engine.Changed, Readers: s.nodes.readers, Log: s.log, Followed: s.askAddresses,
		Now: func() nodes.Snapshot { machine, pods := s.engine.Where(); return nodes.Of(s.where.Node, machine, pods) }}
	serveNodes(ctx, server, s.nodes.socket, s.log)
}

func serveNodes(ctx context.Context, server *nodes.Server, socket string, log *slog.Logger) {
	for said := ""; ; {
		l, err := server.Listen(socket)
		if err == nil {
			said = ""
			err = server.Serve(ctx, l)
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			log.Error("nobody can follow the nodes; trying again", "socket", socket, "every", listenAgain, "error", err,
				"remedy", "free the path, or choose another with --nodes-socket")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenAgain):
		}
	}
}

// Times of asking for addresses again, where the runtime does not tell them.
const (
	askAgain     = time.Second
	askAgainLast = time.Minute
)

// askAddresses asks the runtime for the addresses of pods that the door was not told, while somebody follows.
func (s *service) askAddresses(ctx context.Context) {
	asker, err := cri.NewAsker(s.door.runtime)
	if err != nil {
		s.log.Error("the addresses of pods cannot be asked for", "error", err)
		return
	}
	defer asker.Close()
	said, delay := "", askAgain
	for ctx.Err() == nil {
		changed := s.engine.Changed()
		var failed error
		for _, pod := range s.engine.Unaddressed() {
			addresses, err := asker.Addresses(ctx, pod)
			if status.Code(err) == codes.NotFound {
				continue // it has gone, or is about to
			}
			if err != nil {
				failed = err // so it is for the others
				break
			}
			s.engine.SetAddresses(pod, addresses)
		}
		if failed == nil {
			said, delay = "", askAgain
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		if failed.Error() != said && ctx.Err() == nil {
			said = failed.Error()
			s.log.Warn("the runtime does not tell the addresses of pods; their clients and servers have the host's distance",
				"socket", s.door.runtime, "error", failed, "remedy", "containerd before 2.1 tells them over its CRI only: name its socket with --cri-runtime")
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, askAgainLast)
	}
}
