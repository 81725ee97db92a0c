package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"text/tabwriter"

	"proxima.io/agent/internal/simulate"
)

var simulateVerb = verb{"simulate", "place the pods of manifests on a machine that need not exist", runSimulate}

// result is one line of the comparison. Shares are of pairs on one NUMA node, 0 … 1.
type result struct {
	Placement string  `json:"placement"`
	Mean      float64 `json:"mean"`
	Worst     float64 `json:"worst"`
}

func runSimulate(args []string, out io.Writer) error {
	set := flags("simulate", "[flags] MANIFEST...",
		"Lets the pods of Kubernetes manifests arrive on a machine and shows where each container sits, and how many\nclient–server pairs (as their affinity annotations say) share a NUMA node, beside what a node does without the agent.")
	var s scene
	s.register(set)
	orders := set.Int("orders", 1, "orders of arrival to draw; 1 takes the pods as they are listed")
	seed := set.Uint64("seed", 1, "where the drawing begins")
	eventFile := set.String("events", "", "a `file` of lines \"arrive POD\" and \"leave POD\" instead; POD is a name, or NAMESPACE/NAME")
	asJSON := set.Bool("json", false, "write JSON")
	serve := set.String("serve", "", "tell proxies the result at this Unix `socket`, as an agent would, until interrupted; manifests are read again when they change")
	if err := parse(set, args, out); err != nil {
		return err
	}
	if *orders < 1 || (*orders > 1 && *eventFile != "") {
		return errors.New("--orders is at least 1, and does not go with --events")
	}
	if err := s.load(set.Args()); err != nil {
		return err
	}
	if *serve != "" {
		if *orders > 1 || *eventFile != "" || *asJSON {
			return errors.New("--serve goes with neither --orders, --events nor --json")
		}
		return s.serve(*serve, set.Args(), out)
	}
	events := simulate.InOrder(len(s.pods))
	if *eventFile != "" {
		var err error
		if events, err = s.events(*eventFile); err != nil {
			return err
		}
	}
	results, last := s.compare(events, *orders, *seed)
	if *asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"pairs": results, "placed": last.State.InOrder(), "pins": last.Policy.Pins(last.State)})
	}
	writePlacement(out, last)
	if len(results) > 0 {
		writeResults(out, results, *orders)
	}
	return nil
}

// compare plays all orders under every way to place, and returns our last state too. Without a pair that is
// there at the end there are no results.
func (s *scene) compare(events []simulate.Event, orders int, seed uint64) ([]result, *simulate.Ours) {
	pairs := simulate.Pairs(s.pods)
	random := rand.New(rand.NewPCG(seed, 0))
	var ours *simulate.Ours
	placers := []struct {
		name string
		make func() simulate.Placer
	}{
		{"proxima-agent", func() simulate.Placer { ours = &simulate.Ours{Policy: s.policy}; return ours }},
		{"no pinning", func() simulate.Placer { return &simulate.Unpinned{Machine: s.machine} }},
		{"kubelet's static policy", func() simulate.Placer { return &simulate.Cutter{Machine: s.machine} }},
		{"a random node", func() simulate.Placer { return &simulate.Cutter{Machine: s.machine, Random: random} }},
	}
	results, paired := make([]result, len(placers)), 0
	for i, p := range placers {
		results[i] = result{Placement: p.name, Worst: math.Inf(1)}
	}
	for n := range orders {
		if orders > 1 {
			events = simulate.Shuffled(len(s.pods), rand.New(rand.NewPCG(seed, uint64(n))))
		}
		for i, p := range placers {
			placer := p.make()
			simulate.Play(placer, s.pods, events)
			share, present := simulate.Share(s.machine, placer, pairs)
			paired += present
			results[i].Mean += share / float64(orders)
			results[i].Worst = min(results[i].Worst, share)
		}
	}
	if paired == 0 {
		results = nil
	}
	return results, ours
}

func (s *scene) events(file string) ([]simulate.Event, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// A pod is also known by its bare name, unless two namespaces have it.
	index, several := map[string]int{}, map[string]bool{}
	for i, p := range s.pods {
		_, known := index[p.Name]
		several[p.Name] = known
		index[p.Name], index[p.Namespace+"/"+p.Name] = i, i
	}
	var events []simulate.Event
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 || (fields[0] != "arrive" && fields[0] != "leave") {
			return nil, fmt.Errorf("%s:%d: neither \"arrive POD\" nor \"leave POD\"", file, n)
		}
		pod, ok := index[fields[1]]
		if several[fields[1]] {
			return nil, fmt.Errorf("%s:%d: two namespaces have a pod %s: write NAMESPACE/%s", file, n, fields[1], fields[1])
		}
		if !ok {
			return nil, fmt.Errorf("%s:%d: no pod is called %s", file, n, fields[1])
		}
		events = append(events, simulate.Event{Pod: pod, Leave: fields[0] == "leave"})
	}
	return events, lines.Err()
}

func writePlacement(out io.Writer, ours *simulate.Ours) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONTAINER\tPOOL\tKIND\tCPUS\tMEMORY NODE\tREASON")
	for _, c := range ours.State.InOrder() {
		pin := ours.Policy.PinOf(ours.State, c.ID)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, c.Pool, c.Kind, dash(pin.CPUs.String()), dash(pin.Memory.String()),
			ours.Decisions[c.ID].Reason)
	}
	table.Flush()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func writeResults(out io.Writer, results []result, orders int) {
	fmt.Fprintf(out, "\nPairs on one NUMA node, over %d order(s) of arrival:\n", orders)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PLACEMENT\tMEAN\tWORST ORDER")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%.1f %%\t%.1f %%\n", r.Placement, 100*r.Mean, 100*r.Worst)
	}
	table.Flush()
}
