package main

import (
	"encoding/json"
	"fmt"
	"io"

	"proxima.io/agent/internal/pool"
	"proxima.io/agent/internal/topology"
)

var topologyVerb = verb{"topology", "draw this machine, or a recorded one, as the tree of pools", runTopology}

func runTopology(args []string, out io.Writer) error {
	set := flags("topology", "[--root DIR|FILE | --shape NUMBERS] [--json]",
		"Draws the sockets, dies, NUMA nodes and caches that containers can be placed in.")
	var machine machineFlags
	machine.register(set)
	asJSON := set.Bool("json", false, "write what was read as JSON")
	if err := parseFlags(set, args, out); err != nil {
		return err
	}
	m, err := machine.read()
	if err != nil {
		return err
	}
	if *asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(m)
	}
	drawTopology(m, out)
	return nil
}

func drawTopology(m *topology.Topology, out io.Writer) {
	pool.Build(m, m.Online).Draw(out, nil)
	for _, line := range []struct{ what, value string }{{"offline CPUs", m.Offline.String()}, {"isolated CPUs", m.Isolated.String()}} {
		if line.value != "" {
			fmt.Fprintf(out, "%s: %s\n", line.what, line.value)
		}
	}
	for _, d := range m.Devices {
		fmt.Fprintf(out, "%s %s: node %d\n", d.Class, d.Name, d.Node)
	}
	for _, w := range m.Warnings {
		fmt.Fprintln(out, "warning:", w)
	}
}
