package main

import (
	"flag"

	"proxima.io/agent/internal/topology"
)

// machineFlags are the two ways to name a machine, shared by every verb that looks at one.
type machineFlags struct{ root, shape string }

func (m *machineFlags) register(set *flag.FlagSet) {
	set.StringVar(&m.root, "root", "/", "where the machine's /sys is found: a `directory`, or a file that record wrote")
	set.StringVar(&m.shape, "shape", "", "a machine by `numbers` instead, such as sockets=2,cores=24,threads=2")
}

func (m *machineFlags) tree() (topology.Tree, error) {
	if m.shape == "" {
		return topology.Open(m.root)
	}
	shape, err := topology.ParseShape(m.shape)
	if err != nil {
		return nil, err
	}
	return shape.Recording(), nil
}

func (m *machineFlags) read() (*topology.Topology, error) {
	tree, err := m.tree()
	if err != nil {
		return nil, err
	}
	return topology.Read(tree)
}
