package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const pair = "../../../examples/numa-pair/pair.yaml"

func simulated(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	if err := dispatch(append([]string{"simulate", "--shape", "sockets=2,cores=24,threads=2,memory=192"}, args...), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The source's pair, machine and configuration: what it printed of where both sat.
func TestTheSourcesPlacement(t *testing.T) {
	fallback := filepath.Join(t.TempDir(), "fallback.cfg")
	text := "policy:\n  Active: topology-aware\n  ReservedResources:\n    CPU: 750m\n  topology-aware:\n    PinCPU: true\n    PinMemory: true\n"
	if err := os.WriteFile(fallback, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := simulated(t, "--config", fallback, pair)
	for _, want := range []string{"24-27,72-75", "28-31,76-79", "proxima-agent            100.0 %"} {
		if !strings.Contains(out, want) {
			t.Errorf("without %s:\n%s", want, out)
		}
	}
}

// Who has left is in no pair.
func TestEvents(t *testing.T) {
	events := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(events, []byte("# the client stays\narrive redis-1\narrive memtier-1\nleave redis-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := simulated(t, "--events", events, pair); !strings.Contains(out, "memtier-1/memtier") || strings.Contains(out, "redis-1/redis") || strings.Contains(out, "PLACEMENT") {
		t.Error(out)
	}
}

const alike = `
kind: Pod
metadata: {generateName: bench-}
spec: {containers: [{name: c, resources: {limits: {cpu: 2, memory: 1Gi}}}, {name: d}]}
---
kind: Pod
metadata: {generateName: bench-}
spec: {containers: [{name: c, resources: {limits: {cpu: 2, memory: 1Gi}}}], initContainers: [{name: side, restartPolicy: Always}]}
---
kind: Pod
metadata: {name: bench-0, namespace: other}
spec: {containers: [{name: c}]}
`

func TestEveryContainerIsShownWhateverPodsAreCalled(t *testing.T) {
	out := simulated(t, manifestFile(t, alike))
	for _, want := range []string{"default/bench-0/c ", "default/bench-0/d ", "default/bench-1/c ", "default/bench-1/side ", "other/bench-0/c "} {
		if strings.Count(out, want) != 1 {
			t.Errorf("%q is not shown once:\n%s", want, out)
		}
	}
}

func TestAPodOfTwoNamespacesIsNamedWithItsOwnInEventsAndExplain(t *testing.T) {
	manifests := manifestFile(t, alike)
	for line, want := range map[string]string{"arrive other/bench-0": "other/bench-0/c", "arrive bench-1": "default/bench-1/c", "arrive bench-0": "write NAMESPACE/bench-0"} {
		events := filepath.Join(t.TempDir(), "events")
		if err := os.WriteFile(events, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := dispatch([]string{"simulate", "--shape", "cores=4", "--events", events, manifests}, &out)
		if said := out.String(); err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
		} else if !strings.Contains(said, want) {
			t.Errorf("%s:\n%s", line, said)
		}
	}
	var out strings.Builder
	err := dispatch([]string{"explain", "--shape", "cores=4", "--namespace", "other", "bench-0", manifests}, &out)
	if err != nil || !strings.Contains(out.String(), "other/bench-0/c") || strings.Contains(out.String(), "default/") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestManifestsWithoutPodsAreRefused(t *testing.T) {
	var out strings.Builder
	err := dispatch([]string{"simulate", "--shape", "cores=4", manifestFile(t, "kind: Service\nspec: {ports: [{port: 80}]}")}, &out)
	if err == nil || !strings.Contains(err.Error(), "no pods") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
