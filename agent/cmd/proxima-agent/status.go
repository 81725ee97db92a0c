package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/status"
)

var statusVerb = verb{"status", "what a running agent has placed where, and what is free", runStatus}

func runStatus(args []string, out io.Writer) error {
	set := flags("status", "[--socket PATH] [--json | --zones]", "Asks the agent of this node.")
	socket := set.String("socket", defaultSocket, "the agent's Unix `socket`")
	asJSON := set.Bool("json", false, "write JSON")
	zones := set.Bool("zones", false, "write the NodeResourceTopology object")
	if err := parseFlags(set, args, out); err != nil {
		return err
	}
	if *asJSON || *zones {
		path := "/status"
		if *zones {
			path = "/zones"
		}
		var raw json.RawMessage
		if err := status.Get(context.Background(), *socket, path, &raw); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "%s\n", raw)
		return err
	}
	var s engine.Status
	if err := status.Get(context.Background(), *socket, "/status", &s); err != nil {
		return err
	}
	writeStatus(out, s)
	return nil
}

func writeStatus(out io.Writer, s engine.Status) {
	switch {
	case s.Passive != "":
		fmt.Fprintln(out, "passive:", s.Passive)
	case s.Released:
		fmt.Fprintln(out, "released: nobody is pinned")
	case !s.Connected:
		fmt.Fprintln(out, "the runtime is not connected")
	}
	for _, note := range s.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POOL\tCPUS\tMEMORY NODES\tFREE EXCLUSIVE\tFREE SHARED")
	depth := map[string]int{}
	for _, p := range s.Pools {
		if p.Parent != "" {
			depth[p.Name] = depth[p.Parent] + 1
		}
		fmt.Fprintf(table, "%*s%s\t%s\t%s\t%d\t%.2f\n", 2*depth[p.Name], "", p.Name, p.CPUs, p.Memory, p.Exclusive, float64(p.Milli)/1000)
	}
	fmt.Fprintln(table, "\nCONTAINER\tPOOL\tKIND\tCPUS\tMEMORY NODES\tREMARKS")
	for _, c := range s.Seats {
		remarks := c.Place.Short
		if c.Foreign != "" {
			remarks = "left alone: it came with " + c.Foreign
		}
		if c.Lost != "" {
			remarks = "LOST: " + c.Lost
		}
		fmt.Fprintf(table, "%s/%s/%s\t%s\t%s\t%s\t%s\t%s\n", c.Namespace, c.Pod, c.Name, c.Place.Pool, c.Place.Kind,
			dash(c.Pin.CPUs.String()), dash(c.Pin.Memory.String()), remarks)
	}
	table.Flush()
	for _, c := range s.Seats {
		for _, f := range c.Findings {
			fmt.Fprintf(out, "%s/%s: %s\n", c.Namespace, c.Pod, f)
		}
	}
	if s.Pending > 0 {
		fmt.Fprintf(out, "%d containers wait to be repaired\n", s.Pending)
	}
}
