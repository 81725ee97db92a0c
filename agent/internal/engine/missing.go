package engine

import (
	"cmp"
	"slices"
	"time"

	"proxima.io/agent/internal/annotation"
)

// allHere is how long after its last container a pod is taken to be complete. A runtime tells of one
// container after the other, and not which is the last.
const allHere = time.Minute

// missing is a pod whose annotations name containers. It is remembered until it goes, even if all of them
// have come: each later container of it comes with the same annotations.
type missing struct {
	annotations map[string]string
	come        []string // names of its containers
	since       time.Time
	said        bool // what there is to say since the last of them came
	findings    []annotation.Finding
}

// meet notes that some containers of a pod have come. The lock is held.
func (e *Engine) meet(podID string, annotations map[string]string, names ...string) {
	m := e.missing[podID]
	if m == nil {
		if len(annotation.Strangers(annotations, nil)) == 0 {
			return // they name no container
		}
		m = &missing{annotations: annotations}
		e.missing[podID] = m
	}
	for _, name := range names {
		if !slices.Contains(m.come, name) {
			m.come = append(m.come, name)
			m.since, m.findings = time.Now(), nil
			m.said = len(annotation.Strangers(m.annotations, m.come)) == 0
		}
	}
}

// sayMissing says of pods that are complete by now what their annotations say about containers that they do
// not have, and tells when it has to look again.
func (e *Engine) sayMissing(now time.Time) (next time.Duration, any bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for podID, m := range e.missing {
		if m.said {
			continue
		}
		if wait := m.since.Add(allHere).Sub(now); wait > 0 {
			next, any = min(cmp.Or(next, wait), wait), true
			continue
		}
		m.said, m.findings = true, annotation.Strangers(m.annotations, m.come)
		for _, c := range e.state.InOrder() {
			if c.PodID == podID {
				e.say(m.findings, "pod", c.PodName, "namespace", c.Namespace)
				break
			}
		}
	}
	return next, any
}

// said are the findings about a container, and those about the containers that its pod does not have. The
// lock is held.
func (e *Engine) said(id, podID string) []annotation.Finding {
	if m := e.missing[podID]; m != nil {
		return slices.Concat(e.record(id).findings, m.findings)
	}
	return e.record(id).findings
}

// say counts and logs findings. The lock is held.
func (e *Engine) say(findings []annotation.Finding, about ...any) {
	for _, f := range findings {
		e.counters.Annotations[problemIndex(f.Problem)]++
		e.log.Warn(f.String(), about...)
	}
}
