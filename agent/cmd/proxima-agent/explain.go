package main

import (
	"encoding/json"
	"fmt"
	"io"

	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/simulate"
)

var explainVerb = verb{"explain", "why a pod's containers sit where they sit: every pool that was considered", runExplain}

func runExplain(args []string, out io.Writer) error {
	set := flags("explain", "[flags] POD MANIFEST...",
		"Places the pods of manifests as simulate does, and shows for one of them the pools that were considered, in the\norder of preference, with what each had to offer.")
	var s scene
	s.register(set)
	asJSON := set.Bool("json", false, "write JSON")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() == 0 {
		return fmt.Errorf("no pod named")
	}
	if err := s.load(set.Args()[1:]); err != nil {
		return err
	}
	ours := &simulate.Ours{Policy: s.policy}
	simulate.Play(ours, s.pods, simulate.InOrder(len(s.pods)))
	var decisions []policy.Decision
	for _, p := range s.pods {
		for _, c := range p.Containers {
			if p.Name == set.Arg(0) {
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
