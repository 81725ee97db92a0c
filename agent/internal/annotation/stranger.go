package annotation

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"proxima.io/agent/internal/spelling"
)

// Strangers reports what a pod's annotations say about containers that it does not have. Only who has the
// whole pod can ask: a runtime tells of one container after the other.
func Strangers(annotations map[string]string, containers []string) []Finding {
	r := reader{annotations: annotations}
	for _, key := range sortedKeys(annotations) {
		for _, name := range named(key, annotations[key]) {
			if !slices.Contains(containers, name) {
				r.found(Unknown, key, "the pod has no container %.60s%s", name, spelling.Hint(spelling.Nearest(name, containers, 3)))
			}
		}
	}
	return r.findings
}

// named returns the containers that an annotation of one of the dialects names.
func named(key, value string) []string {
	domain, name, _ := strings.Cut(key, "/")
	base, preference, ours := split(domain)
	switch {
	case !ours:
		return nil
	case base == ownDomain:
		own, container, found := strings.Cut(name, ".")
		if !found || !slices.Contains(ownNames(), own) {
			return nil
		}
		return []string{container}
	case preference != "":
		container, found := strings.CutPrefix(name, "container.")
		if !found {
			return nil
		}
		return []string{container}
	}
	var byContainer map[string]yaml.Node // affinities, and the old form of preferences
	if len(value) > maxValue || yaml.Unmarshal([]byte(value), &byContainer) != nil {
		return nil // for the whole pod, or Read says what is wrong with it
	}
	return sortedKeys(byContainer)
}
