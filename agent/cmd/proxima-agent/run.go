package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"
	"time"

	"proxima.io/agent/internal/cgroup"
	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/cri"
	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/hotplug"
	"proxima.io/agent/internal/nri"
	"proxima.io/agent/internal/others"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/state"
	"proxima.io/agent/internal/status"
	"proxima.io/agent/internal/topology"
)

var runVerb = verb{"run", "place the containers of this node", runRun}

const (
	defaultSocket = "/run/proxima-agent/agent.sock"
	defaultState  = "/var/lib/proxima-agent/state.json"
)

// service is one running agent.
type service struct {
	root, config, fallback string
	kubelet                string // kubelet's directory, below the root
	where                  whereFlags
	door                   doorFlags
	state, socket, http    string
	nodes                  nodesFlags
	dryRun                 bool

	log     *slog.Logger
	machine *topology.Topology
	engine  *engine.Engine
}

// doorFlags say how the runtime is reached.
type doorFlags struct{ nri, index, listen, runtime string }

func (d doorFlags) isCRI() bool { return d.listen != "" }

func (s *service) register(set *flag.FlagSet) {
	set.StringVar(&s.root, "root", "/", "the node's root `directory` (in a pod: where the host's is mounted)")
	set.StringVar(&s.config, "config", "", "configuration `file`, or directory of layers; watched")
	set.StringVar(&s.fallback, "fallback-config", "", "`file` that is read where --config is not there")
	s.where.register(set)
	set.StringVar(&s.kubelet, "kubelet-root", others.Kubelet, "kubelet's `directory` (its --root-dir), where its CPU and memory managers keep their state")
	set.StringVar(&s.state, "state", defaultState, "state `file`")
	set.StringVar(&s.socket, "socket", defaultSocket, "Unix `socket` that status and explain ask")
	s.nodes.register(set)
	set.StringVar(&s.http, "http", "", "`address` for Prometheus and probes as well, such as :9911")
	set.BoolVar(&s.dryRun, "dry-run", false, "decide and report, change nothing")
	set.StringVar(&s.door.nri, "nri-socket", "/var/run/nri/nri.sock", "the runtime's NRI `socket`")
	set.StringVar(&s.door.index, "nri-index", nri.LastIndex, "two `digits`: NRI plugins run in this order, and the agent has to see what others set")
	set.StringVar(&s.door.listen, "cri-listen", "", "be a CRI proxy on this `socket` instead of an NRI plugin")
	set.StringVar(&s.door.runtime, "cri-runtime", "/run/containerd/containerd.sock", "the runtime's CRI `socket`: what --cri-listen leads to; without it, who is asked for the addresses of pods where NRI does not tell them")
}

func runRun(args []string, out io.Writer) error {
	set := flags("run", "[flags]", "Runs on a node: as an NRI plugin, or with --cri-listen as a proxy between kubelet and runtime, it\nhears of every container before it starts, and pins it.")
	s := &service{log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	s.register(set)
	if err := parseFlags(set, args, out); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.nodes.check(); err != nil {
		return err
	}
	return s.run(ctx)
}

func (s *service) run(ctx context.Context) error {
	tree := topology.Dir(s.root)
	follower, machine, err := topology.Follow(tree)
	if err != nil {
		return err
	}
	s.machine = machine
	before, err := state.Load(s.state)
	if err != nil {
		s.log.Error("starting without the saved state", "error", err)
	}
	first := s.see()
	s.engine, err = engine.New(engine.Settings{Machine: s.machine, Options: first.options, Others: first.others, Refused: first.refused,
		State: before, DryRun: s.dryRun, Inline: !s.door.isCRI(), Log: s.log, Look: follower.Look,
		Returns: cgroup.Returns(tree), Effective: func(paths []string) (policy.Pin, error) { return cgroup.Effective(tree, paths) },
		Save: func(st state.Saved) error { return state.Save(s.state, st) }})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 4)
	start := func(f func(context.Context) error) {
		go func() {
			if err := f(ctx); err != nil {
				failed <- err
			}
		}()
	}
	s.listen(start)
	if s.nodes.socket != "" {
		start(func(ctx context.Context) error { s.tellNodes(ctx); return nil })
	}
	start(func(ctx context.Context) error { s.hotplug(ctx); return nil })
	start(func(ctx context.Context) error { s.engine.Run(ctx); return nil })
	start(func(ctx context.Context) error { s.watch(ctx, first); return nil })
	if err := s.open(start); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	// The last word: what the repair had no time to save.
	return errors.Join(err, s.engine.Save())
}

// open opens the door to the runtime.
func (s *service) open(start func(func(context.Context) error)) error {
	if !s.door.isCRI() {
		door, err := nri.New(s.engine, s.machine, s.log, s.door.index)
		if err != nil {
			return err
		}
		start(func(ctx context.Context) error { return door.Serve(ctx, s.door.nri) })
		return nil
	}
	door, err := cri.New(s.engine, s.machine, s.log, s.door.runtime)
	if err != nil {
		return err
	}
	start(func(ctx context.Context) error { return door.Serve(ctx, s.door.listen) })
	return nil
}

// listenAgain is how long a listener waits for its address to be free.
const listenAgain = 5 * time.Second

// listen serves what there is to see. Nothing of it may end the agent: kubelet's way to the runtime may lead
// through it.
func (s *service) listen(start func(func(context.Context) error)) {
	server := &status.Server{Engine: s.engine, Node: s.where.Node}
	for _, address := range []string{s.socket, s.http} {
		if address != "" {
			start(func(ctx context.Context) error { s.serve(ctx, server, address); return nil })
		}
	}
}

// serve serves on an address until the context ends, and tries again where it cannot.
func (s *service) serve(ctx context.Context, server *status.Server, address string) {
	for said := ""; ; {
		l, err := status.Listen(address)
		if err == nil {
			said = ""
			err = server.Serve(ctx, l)
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			s.log.Error("nobody can look here; trying again", "address", address, "every", listenAgain, "error", err,
				"remedy", "free the address, or choose another with --socket or --http")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenAgain):
		}
	}
}

// hotplug follows CPUs and memory that come and go.
func (s *service) hotplug(ctx context.Context) {
	s.engine.Look() // what came or went before the kernel is listened to
	if err := hotplug.Watch(ctx, s.engine.Look); err != nil {
		s.log.Warn("the kernel does not tell when CPUs come and go; it is looked at when a container comes or the runtime connects",
			"error", err)
	}
}

// options reads the configuration, or the fallback where there is none, or the defaults where there is
// neither.
func (s *service) options() (config.Options, error) {
	options := config.Default()
	for _, path := range []string{s.config, s.fallback} {
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			loaded, err := config.Load(path, s.where.Where)
			loaded.Notes = append(options.Notes, loaded.Notes...)
			return loaded, err
		}
		options.Notes = append(options.Notes, "configuration "+path+" is not there")
	}
	return options, nil
}

func (s *service) others() []others.Found { return others.Find(s.root, s.kubelet, s.door.listen) }

// seen is what decides how the agent works: its options, or why they are refused, and who else pins.
type seen struct {
	options config.Options
	refused error
	others  []others.Found
}

func (s *service) see() seen {
	options, refused := s.options()
	return seen{options, refused, s.others()}
}

// watch reads the configuration again when it changes, and looks again who else pins when something changes
// where they are known by. A bad configuration is refused whole; the old one stays.
func (s *service) watch(ctx context.Context, last seen) {
	paths := slices.DeleteFunc(append(others.Paths(s.root, s.kubelet), s.config, s.fallback), func(path string) bool { return path == "" })
	config.Watch(ctx, s.log, func() {
		now := s.see()
		if reflect.DeepEqual(now, last) {
			return
		}
		last = now
		err := now.refused
		if err != nil {
			s.engine.Refuse(err)
		} else {
			err = s.engine.Configure(now.options, now.others)
		}
		if err != nil {
			s.log.Error("configuration refused; the old one stays", "error", err)
		}
	}, paths...)
}
