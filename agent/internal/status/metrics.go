package status

import (
	"fmt"
	"io"

	"proxima.io/agent/internal/engine"
)

// WriteMetrics writes Prometheus' text format.
func WriteMetrics(w io.Writer, s engine.Status) {
	metric := func(name, kind, help string, value any) {
		fmt.Fprintf(w, "# HELP proxima_agent_%s %s\n# TYPE proxima_agent_%s %s\nproxima_agent_%s %v\n", name, help, name, kind, name, value)
	}
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	metric("connected", "gauge", "Whether the runtime is connected.", flag(s.Connected))
	metric("passive", "gauge", "Whether the agent changes nothing: dry run, or standing back.", flag(s.Passive != ""))
	metric("others", "gauge", "Others found that pin containers on this node.", len(s.Others))
	metric("containers", "gauge", "Containers on the books.", len(s.Seats))
	lost := 0
	for _, c := range s.Seats {
		lost += flag(c.Lost != "")
	}
	metric("lost", "gauge", "Containers that the kernel lets run elsewhere than they were told.", lost)
	metric("pending", "gauge", "Containers that the runtime has yet to be told about.", s.Pending)
	metric("decisions_total", "counter", "Placements decided.", s.Counters.Decisions)
	metric("short_total", "counter", "Placements that gave less than what is due.", s.Counters.Short)
	metric("faults_total", "counter", "Faults inside, each of which left a container unpinned for a while.", s.Counters.Faults)
	metric("foreign_cpusets_total", "counter", "Containers left alone because they carried a cpuset already.", s.Counters.Foreign)
	metric("lost_total", "counter", "Containers found without the CPUs that they were given.", s.Counters.Lost)
	metric("repairs_total", "counter", "Updates made outside of a request.", s.Counters.Repaired)
	metric("config_refused_total", "counter", "Configurations refused.", s.Counters.Refused)
	labelled := func(name, kind, help string) {
		fmt.Fprintf(w, "# HELP proxima_agent_%s %s\n# TYPE proxima_agent_%s %s\n", name, help, name, kind)
	}
	labelled("annotations_total", "counter", "Annotations that did not simply do what they say.")
	for i, problem := range engine.Problems {
		fmt.Fprintf(w, "proxima_agent_annotations_total{problem=%q} %d\n", problem, s.Counters.Annotations[i])
	}
	labelled("pool_free_exclusive_cpus", "gauge", "CPUs of a pool that could still become exclusive.")
	for _, p := range s.Pools {
		fmt.Fprintf(w, "proxima_agent_pool_free_exclusive_cpus{pool=%q} %d\n", p.Name, p.Exclusive)
	}
	labelled("pool_free_shared_cpus", "gauge", "Shared CPUs of a pool that could still be promised.")
	for _, p := range s.Pools {
		fmt.Fprintf(w, "proxima_agent_pool_free_shared_cpus{pool=%q} %g\n", p.Name, float64(p.Milli)/1000)
	}
}
