package state

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"proxima.io/agent/internal/annotation"
	"proxima.io/agent/internal/cpuset"
	"proxima.io/agent/internal/policy"
)

func example() Saved {
	c := policy.Container{Request: 8000, Limit: 8000, Memory: 1 << 30}
	c.ID, c.Name, c.PodID, c.QOS = "c1", "redis", "p1", policy.Guaranteed
	c.Wishes, _ = annotation.Read(map[string]string{"proxima.io/near": "app=client", "proxima.io/memory": "dram"}, "redis")
	place := policy.Placement{Pool: "socket0", Kind: policy.Exclusive, Exclusive: cpuset.Range(0, 7), Memory: cpuset.Of(0), Bytes: 1 << 30}
	s := policy.State{
		Placed: map[string]*policy.Placed{"c1": {Container: c, Placement: place, Order: 4}},
		Gone:   map[string]policy.Placement{"p2/x": place}, Next: 5,
	}
	return Saved{State: s, Told: map[string]policy.Pin{"c1": {CPUs: cpuset.Range(0, 7)}}, Available: cpuset.Range(0, 15), Reserved: cpuset.Of(8)}
}

func TestStateComesBackAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "state.json")
	if err := Save(path, example()); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil || !reflect.DeepEqual(got, example()) {
		t.Errorf("got %+v, %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".state-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A file cut at any byte is put aside with a reason, and never half believed.
func TestAFileCutAnywhereIsPutAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := Save(path, example()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Load(path)
		if err == nil || len(got.State.Placed) > 0 {
			t.Fatalf("cut at %d: %+v, %v", n, got, err)
		}
		if _, err := os.Stat(path + ".bad"); err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

func TestNoFileIsAnEmptyState(t *testing.T) {
	if got, err := Load(filepath.Join(t.TempDir(), "none")); err != nil || len(got.State.Placed) > 0 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestAnotherVersionIsNotBelieved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, []byte(`{"version":99,"state":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil {
		t.Error("version 99 was believed")
	}
}
