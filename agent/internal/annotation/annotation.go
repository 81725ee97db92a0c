// Package annotation reads what users wrote into their pods' annotations: preferences of one container, and
// affinity and anti-affinity between containers. It knows three dialects: ours (proxima.io/…), CRI-RM's and
// nri-plugins'.
//
// Nothing is ignored in silence: every annotation that belongs to one of the dialects, or nearly does, is
// either served or becomes a Finding.
//
// # Layout
//
//	annotation.go  Read, and what it returns
//	preference.go  the preferences and the keys that set them
//	own.go         our dialect
//	affinity.go    affinity and its YAML forms
//	expression.go  the expressions inside it
//	unknown.go     keys that nobody knows, with the nearest one that somebody does
//	stranger.go    containers that the pod does not have
package annotation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Domains of the dialects.
const (
	ownDomain   = "proxima.io"
	nriDomain   = "resource-policy.nri.io"
	criRMDomain = "cri-resource-manager.intel.com"
)

// Problem says what is wrong with an annotation.
type Problem string

const (
	Unknown   Problem = "unknown"   // nobody knows this key: a misspelling, most likely
	Unserved  Problem = "unserved"  // a key of CRI-RM or nri-plugins that this agent does not act upon
	Malformed Problem = "malformed" // the value cannot be read; the annotation has no effect
	Odd       Problem = "odd"       // understood, but not as documented
)

// Finding is one annotation that did not simply do what it says.
type Finding struct {
	Problem Problem `json:"problem"`
	Key     string  `json:"key"`
	Message string  `json:"message"`
}

func (f Finding) String() string {
	return fmt.Sprintf("annotation %s: %s (%s)", f.Key, f.Message, f.Problem)
}

// Wishes is all that a pod's annotations say about one of its containers.
type Wishes struct {
	Preferences
	Affinities []Affinity
}

// Limits on one pod's annotations. Kubernetes itself allows 256 KiB in all.
const (
	maxValue      = 64 << 10
	maxAffinities = 64
)

// Read reads the annotations of a pod for one of its containers. An annotation that cannot be read has no
// effect on its own, and none on the others.
func Read(annotations map[string]string, container string) (Wishes, []Finding) {
	r := reader{annotations: annotations, container: container}
	r.preferences()
	r.ownKeys()
	for _, domain := range []string{criRMDomain, nriDomain} {
		r.affinity(domain+"/affinity", 1)
		r.affinity(domain+"/anti-affinity", -1)
	}
	r.unknownKeys()
	if len(r.wishes.Affinities) > maxAffinities {
		r.found(Malformed, ownDomain, "%d affinities, of which the first %d count", len(r.wishes.Affinities), maxAffinities)
		r.wishes.Affinities = r.wishes.Affinities[:maxAffinities]
	}
	return r.wishes, r.findings
}

type reader struct {
	annotations map[string]string
	container   string
	wishes      Wishes
	findings    []Finding
	// served are the keys that some step has taken, for better or worse.
	served map[string]bool
}

func (r *reader) found(p Problem, key, format string, args ...any) {
	r.findings = append(r.findings, Finding{p, key, fmt.Sprintf(format, args...)})
}

// take returns the value of a key and notes that the key is a known one.
func (r *reader) take(key string) (string, bool) {
	value, ok := r.annotations[key]
	if !ok {
		return "", false
	}
	if r.served == nil {
		r.served = map[string]bool{}
	}
	r.served[key] = true
	if len(value) > maxValue {
		r.found(Malformed, key, "longer than %d bytes", maxValue)
		return "", false
	}
	return strings.TrimSpace(value), true
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
