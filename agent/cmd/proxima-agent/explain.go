package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"

	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/simulate"
	"proxima.io/agent/internal/status"
)

var explainVerb = verb{"explain", "why a pod's containers sit where they sit: every pool that was considered", runExplain}

func runExplain(args []string, out io.Writer) error {
	set := flags("explain", "[flags] POD [MANIFEST...]",
		"Shows for a pod the pools that were considered, in the order of preference, with what each had to offer. Without\nmanifests the agent of this node is asked; with them their pods are placed first, as simulate does.")
	var s scene
	s.register(set)
	asJSON := set.Bool("json", false, "write JSON")
	socket := set.String("socket", defaultSocket, "the agent's Unix `socket`")
	namespace := set.String("namespace", "", "the pod's namespace (default any)")
	if err := parse(set, args, out); err != nil {
		return err
	}
	if set.NArg() == 0 {
		return fmt.Errorf("no pod named")
	}
	if set.NArg() == 1 { // no manifests: ask the agent of this node
		var decisions []policy.Decision
		query := url.Values{"pod": {set.Arg(0)}, "namespace": {*namespace}}
		if err := status.Get(context.Background(), *socket, "/explain?"+query.Encode(), &decisions); err != nil {
			return err
		}
		return writeDecisions(out, decisions, *asJSON)
	}
	if err := s.load(set.Args()[1:]); err != nil {
		return err
	}
	ours := &simulate.Ours{Policy: s.policy}
	simulate.Play(ours, s.pods, simulate.InOrder(len(s.pods)))
	var decisions []policy.Decision
	for _, p := range s.pods {
		for _, c := range p.Containers {
			if p.Name == set.Arg(0) && (*namespace == "" || p.Namespace == *namespace) {
				decisions = append(decisions, ours.Decisions[c.ID])
			}
		}
	}
	if len(decisions) == 0 {
		return fmt.Errorf("no pod is called %s", set.Arg(0))
	}
	return writeDecisions(out, decisions, *asJSON)
}

func writeDecisions(out io.Writer, decisions []policy.Decision, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(decisions)
	}
	for i, d := range decisions {
		if i > 0 {
			fmt.Fprintln(out)
		}
		writeDecision(out, d)
	}
	return nil
}

// writeDecision shows every pool that was considered, best first, with what decides, in that order.
func writeDecision(out io.Writer, d policy.Decision) {
	fmt.Fprintf(out, "%s: %s in %s\n%s\n", d.ID, d.Place.Kind, d.Place.Pool, d.Reason)
	if d.Place.Short != "" {
		fmt.Fprintf(out, "short: %s\n", d.Place.Short)
	}
	if len(d.Candidates) == 0 {
		return
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POOL\tFITS\tISOLATED\tAFFINITY\tSPLIT CORES\tDEVICES\tMEMORY FITS\tROOM\tMEMORY NODES\tRIGHT CORES\tSPARES HELD\tDEPTH\tFREE CPUS\tSHARERS")
	for _, c := range policy.BestFirst(d.Candidates) {
		fits := "yes"
		if !c.Fits {
			fits = "no: " + c.Why
		}
		fmt.Fprintf(table, "%s\t%s\t%t\t%.2f\t%d\t%d\t%t\t%t\t%d\t%d\t%t\t%d\t%.2f\t%d\n", c.Pool, fits, c.Isolated, c.Affinity, c.Splits,
			c.Devices, c.MemFits, c.Room, c.MemNodes, c.Right, c.Spares, c.Depth, float64(c.Free)/1000, c.Crowd)
	}
	table.Flush()
}
