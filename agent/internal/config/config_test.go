package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proxima.io/agent/internal/topology"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func machine(t *testing.T, text string) *topology.Topology {
	t.Helper()
	shape, err := topology.ParseShape(text)
	if err != nil {
		t.Fatal(err)
	}
	m, err := topology.Read(shape.Recording())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const layered = `
default:
  reservedResources: {cpu: 750m}
  colocatePods: true
group.cache:
  reservedResources: {cpu: "cpuset:0,48"}
node.n1:
  pinMemory: false
  others: take-rest
`

func TestLayersLieOverOneAnother(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "agent.yaml"), layered)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "default"), "reservedResources: {cpu: 750m}\ncolocatePods: true\n")
	write(t, filepath.Join(dir, "group.cache"), "reservedResources: {cpu: \"cpuset:0,48\"}\n")
	write(t, filepath.Join(dir, "node.n1"), "pinMemory: false\nothers: take-rest\n")
	for _, path := range []string{file, dir} {
		for _, c := range []struct {
			where    Where
			reserved string
			memory   bool
			others   Others
		}{
			{Where{}, "0", true, StandBack},
			{Where{Node: "n2", Group: "cache"}, "0,48", true, StandBack},
			{Where{Node: "n1", Group: "cache"}, "0,48", false, TakeRest},
		} {
			o, err := Load(path, c.where)
			if err != nil {
				t.Fatal(err)
			}
			p, err := o.Resolve(machine(t, "sockets=2,cores=24,threads=2"), Had{})
			if err != nil || p.Reserved.String() != c.reserved || p.PinMemory != c.memory || o.Others != c.others || !p.ColocatePods {
				t.Errorf("%s, %+v: %+v, reserved %s, %v", path, c.where, o, p.Reserved, err)
			}
		}
	}
}

const fallback = `
policy:
  Active: topology-aware
  ReservedResources:
    CPU: 750m
  AvailableResources:
    cpu: exclude-cpuset:3
  topology-aware:
    PinCPU: true
    PinMemory: false
    PreferIsolatedCPUs: true
    ColocateNamespaces: true
    ReservedPoolNamespaces: [monitoring-*]
    SchedulingClasses: []
logger:
  Debug: "*"
`

func TestCRIRMsPolicySection(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "logger"), "Debug: all")
	write(t, filepath.Join(dir, "policy"), strings.ReplaceAll(fallback[len("\npolicy:\n"):strings.Index(fallback, "logger")], "\n  ", "\n")[2:])
	for _, path := range []string{write(t, filepath.Join(t.TempDir(), "fallback.cfg"), fallback), dir} {
		o, err := Load(path, Where{Node: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		p, err := o.Resolve(machine(t, "cores=4"), Had{})
		if err != nil || p.PinMemory || !p.PreferIsolated || !p.ColocateNamespaces || p.Available.String() != "0-2" || p.Reserved.String() != "0" || len(p.ReservedNamespaces) != 1 {
			t.Errorf("%s: %+v %v", path, p, err)
		}
		if !strings.Contains(strings.Join(o.Notes, "\n"), "logger") {
			t.Errorf("what has no effect must be said: %q", o.Notes)
		}
	}
}

// CRI-RM has options that mean nothing here, so that a misspelt one is no fault; but it is asked for.
func TestMisspeltOptionsOfCRIRM(t *testing.T) {
	for option, want := range map[string]string{
		"PreferIsolatedCPU": "has no effect here; did you mean preferIsolatedCPUs?",
		"colocatepod":       "has no effect here; did you mean colocatePods?",
		"SchedulingClasses": "has no effect here",
	} {
		o, err := Load(write(t, filepath.Join(t.TempDir(), "fallback.cfg"), "policy:\n  topology-aware:\n    "+option+": true\n"), Where{})
		if err != nil || len(o.Notes) != 1 || !strings.HasSuffix(o.Notes[0], want) {
			t.Errorf("%s: %q %v, want %q", option, o.Notes, err, want)
		}
	}
}

func TestFaultsNamePlaceAndRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"default:\n  pinCPUs: true\n":                        ":2: unknown option \"pinCPUs\"; the options are",
		"default:\n  pinCPU: maybe\n":                        ":2: pinCPU: \"maybe\" is neither true nor false",
		"default:\n  reservedResources: {cpu: some}\n":       "or write cpuset:0-3",
		"default:\n  reservedResources: {cpus: 2}\n":         ":2: reservedResources: \"cpus\" is no resource; write {cpu: 2}",
		"policy:\n  ReservedResources: {CPUs: 2}\n":          ":2: ReservedResources: \"CPUs\" is no resource; write {cpu: 2}",
		"default:\n  reservedPoolNamespaces: ['[']\n":        "escape [",
		"default:\n  others: fight\n":                        "none of stand-back, take-rest, ignore",
		"defualt:\n  pinCPU: true\n":                         ":1: \"defualt\" is not a layer",
		"- a\n":                                              ":1: not a map",
		"default: 5\n":                                       "not a map of options",
		"default:\n  pinCPU: true\n  pinCPU: false\n":        "is there twice",
		"policy:\n  Active: balloons\n":                      ":2: policy \"balloons\" has no counterpart",
		"default: {pinCPU: true":                             "agent.yaml",
		"default:\n  availableResources: {cpu: 0}\n":         ":2: availableResources: 0 leaves no CPU",
		"default:\n  availableResources: {cpu: 'cpuset:'}\n": ":2: availableResources: \"cpuset:\" names no CPU; write cpuset:0-3",
		"logger: {}\npolicy: |\n  Active: topology-aware\n  topology-aware:\n    PinCPU: maybe\n": ":5: PinCPU: \"maybe\"",
	} {
		path := write(t, filepath.Join(t.TempDir(), "agent.yaml"), text)
		o, err := Load(path, Where{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, o, err, want)
		}
	}
}

func TestFilesThatAreNoLayersAreRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agent.yaml"), "default: {}")
	if o, err := Load(dir, Where{}); err == nil || !strings.Contains(err.Error(), "not a layer") {
		t.Errorf("%+v %v", o, err)
	}
}

func TestLayersOfOtherNodesLeaveTheDefaults(t *testing.T) {
	o, err := Load(write(t, filepath.Join(t.TempDir(), "a"), "group.x: {pinCPU: false}"), Where{Group: "y"})
	if err != nil || !o.PinCPU || len(o.Notes) != 1 {
		t.Errorf("%+v %v", o, err)
	}
}

func TestNothingLeftIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"availableResources: {cpu: \"cpuset:90\"}":                                                 "agent.yaml:3: availableResources leave no CPU",
		"reservedResources: {cpu: \"cpuset:0-3\"}":                                                 "agent.yaml:3: reservedResources take all",
		"reservedResources: {cpu: \"cpuset:77\"}":                                                  "agent.yaml:3: reservedResources name none",
		"pinCPU: true\n\n  availableResources: {cpu: 2}\n  reservedResources: {cpu: \"cpuset:3\"}": "agent.yaml:6: reservedResources name none",
	} {
		o, err := Load(write(t, filepath.Join(t.TempDir(), "agent.yaml"), "default:\n\n  "+text), Where{})
		if err != nil {
			t.Fatal(err)
		}
		if p, err := o.Resolve(machine(t, "cores=4"), Had{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %+v, %v; want %s", text, p, err, want)
		}
	}
}
