package annotation

import (
	"fmt"
	"strings"
)

// ownPreferences are proxima.io/NAME for the pod and proxima.io/NAME.CONTAINER for one container.
var ownPreferences = map[string]setter{
	"cpus":         ownCPUs,
	"cores":        ownCores,
	"memory":       memoryKinds,
	"priority":     foreign["prefer-cpu-priority"],
	"device-hints": choice(func(p *Preferences) *Choice { return &p.DeviceHints }),
	"device":       ownDevices,
}

// ownNames lists every NAME of our dialect.
func ownNames() []string { return append(sortedKeys(ownPreferences), "far", "near") }

// ownCPUs: which CPUs, in one word, whatever other dialects say about them.
func ownCPUs(p *Preferences, value string) error {
	p.Shared, p.Isolated, p.Reserved, p.KeepCPUs = Unsaid, Unsaid, No, false
	switch value {
	case "shared":
		p.Shared = Yes
	case "exclusive":
		p.Shared = No
	case "isolated":
		p.Shared, p.Isolated = No, Yes
	case "reserved":
		p.Reserved = Yes
	case "unpinned":
		p.KeepCPUs, p.KeepMemory = true, true
	default:
		return fmt.Errorf("%.40q is none of shared, exclusive, isolated, reserved, unpinned", value)
	}
	return nil
}

// ownCores: how exclusive CPUs are cut.
func ownCores(p *Preferences, value string) error {
	switch value {
	case "whole":
		p.SplitCores, p.HideThreads = false, No
	case "threads":
		p.SplitCores, p.HideThreads = true, No
	case "one-thread":
		p.SplitCores, p.HideThreads = false, Yes
	default:
		return fmt.Errorf("%.40q is none of whole, threads, one-thread", value)
	}
	return nil
}

func ownDevices(p *Preferences, value string) error {
	p.Devices = nil
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			p.Devices = append(p.Devices, name)
		}
	}
	return nil
}

// nearWeight is the pull of proxima.io/near: stronger than CRI-RM's default of 1, so that a pod which carries
// both dialects follows ours.
const nearWeight = 10

func (r *reader) ownKeys() {
	suffixes := []string{"", "." + r.container}
	for _, name := range sortedKeys(ownPreferences) {
		before := r.wishes.Preferences // the container's key replaces the pod's, and adds nothing to it
		for _, suffix := range suffixes {
			key := ownDomain + "/" + name + suffix
			if value, ok := r.take(key); ok {
				r.set(before, key, value, ownPreferences[name])
			}
		}
	}
	for _, suffix := range suffixes {
		for name, weight := range map[string]int{"near": nearWeight, "far": -nearWeight} {
			key := ownDomain + "/" + name + suffix
			if value, ok := r.take(key); ok {
				r.near(key, value, weight)
			}
		}
	}
}

// near reads the short form: labels of the other pod, "app=redis" or "app=redis,role=primary". The other pod
// is looked for in the own namespace, in another with "namespace:" in front, and in all with "*:".
func (r *reader) near(key, value string, weight int) {
	namespace, labels, found := strings.Cut(value, ":")
	scope := Expression{Key: "pod/namespace", Operator: "Equals", Values: []string{namespace}}
	switch {
	case !found:
		labels, scope = value, Expression{Operator: sameNamespace}
	case namespace == "*":
		scope = Expression{Operator: "AlwaysTrue"}
	}
	affinity := Affinity{Scope: &scope, Weight: weight, Source: key}
	for pair := range strings.SplitSeq(labels, ",") {
		name, want, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || name == "" {
			r.found(Malformed, key, "%.60q is not a label such as app=redis", pair)
			return
		}
		affinity.Match = append(affinity.Match, Expression{Key: "pod/labels/" + name, Operator: "Equals", Values: []string{want}})
	}
	r.wishes.Affinities = append(r.wishes.Affinities, affinity)
}
