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

func TestManifestsWithoutPodsAreRefused(t *testing.T) {
	var out strings.Builder
	err := dispatch([]string{"simulate", "--shape", "cores=4", manifestFile(t, "kind: Service\nspec: {ports: [{port: 80}]}")}, &out)
	if err == nil || !strings.Contains(err.Error(), "no pods") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
