package pool

import (
	"fmt"
	"io"
	"strings"

	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/topology"
)

// Draw writes the tree, one line a pool; note adds what the caller knows of it (who sits there, what is
// free).
func (t *Tree) Draw(w io.Writer, note func(*Pool) []string) {
	t.draw(w, 0, "", "", note)
}

func (t *Tree) draw(w io.Writer, id int, first, rest string, note func(*Pool) []string) {
	p := &t.Pools[id]
	fmt.Fprintf(w, "%s%s\n", first, t.describe(p))
	stem := rest + "   "
	if len(p.Children) > 0 {
		stem = rest + "│  "
	}
	if note != nil {
		for _, line := range note(p) {
			fmt.Fprintf(w, "%s%s\n", stem, line)
		}
	}
	for i, child := range p.Children {
		if i == len(p.Children)-1 {
			t.draw(w, child, rest+"└─ ", rest+"   ", note)
		} else {
			t.draw(w, child, rest+"├─ ", rest+"│  ", note)
		}
	}
}

func (t *Tree) describe(p *Pool) string {
	cores, efficient := 0, 0
	for _, id := range p.CPUs.IDs() {
		cpu, _ := t.Topology.CPU(id)
		if cpu.Siblings.Intersect(p.CPUs).First() != id {
			continue // counted with its lowest sibling
		}
		cores++
		if cpu.Kind == topology.Efficiency {
			efficient++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: CPUs %s", p.Name, p.CPUs)
	fmt.Fprintf(&b, " (%d in %d cores", p.CPUs.Len(), cores)
	if efficient > 0 {
		fmt.Fprintf(&b, ", %d of them efficiency cores", efficient)
	}
	b.WriteString(")")
	if isolated := p.CPUs.Intersect(t.Topology.Isolated); !isolated.Empty() {
		fmt.Fprintf(&b, ", isolated %s", isolated)
	}
	fmt.Fprintf(&b, ", memory %s", t.memory(p.Memory))
	return b.String()
}

// memory sums up nodes by what they are made of: "128 GiB on node 0, 512 GiB pmem on node 2".
func (t *Tree) memory(nodes cpuset.Set) string {
	var parts []string
	for _, kind := range []topology.MemoryKind{topology.HBM, topology.DRAM, topology.PMEM} {
		total, of := int64(0), cpuset.Set{}
		for _, n := range t.Topology.Nodes {
			if nodes.Has(n.ID) && n.Kind == kind {
				total += n.Memory
				of = of.Union(cpuset.Of(n.ID))
			}
		}
		if of.Empty() {
			continue
		}
		label := ""
		if kind != topology.DRAM {
			label = " " + string(kind)
		}
		parts = append(parts, fmt.Sprintf("%.4g GiB%s on node %s", float64(total)/(1<<30), label, of))
	}
	if len(parts) == 0 {
		return "unknown"
	}
	return strings.Join(parts, ", ")
}
