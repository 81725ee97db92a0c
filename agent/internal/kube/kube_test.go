package kube

import (
	"testing"

	"proxima.io/agent/internal/policy"
)

func TestRequestsComeBackFromLinuxResources(t *testing.T) {
	const capacity = 1000 << 30
	for name, c := range map[string]struct {
		from           Resources
		qos            string
		request, limit int
		memory         int64
	}{
		"guaranteed":            {Resources{8192, 800000, 100000, 1 << 30, -997, "/kubepods/pod1", "", ""}, policy.Guaranteed, 8000, 8000, 1 << 30},
		"guaranteed, systemd":   {Resources{1536, 150000, 100000, 1, -997, "kubepods-pod1.slice", "", ""}, policy.Guaranteed, 1500, 1500, 1},
		"guaranteed, no quota":  {Resources{4096, 0, 100000, 1, -997, "/kubepods/pod1", "", ""}, policy.Guaranteed, 4000, 0, 1},
		"burstable":             {Resources{102, 0, 0, 0, 900, "/kubepods/burstable/pod1", "", ""}, "Burstable", 100, 0, 100 << 30},
		"burstable with limits": {Resources{512, 200000, 100000, 5, 900, "kubepods-burstable-pod1.slice", "", ""}, "Burstable", 500, 2000, 5},
		"best effort":           {Resources{2, 0, 0, 0, 1000, "/kubepods/besteffort/pod1", "", ""}, "BestEffort", 0, 0, 0},
		"no kubelet":            {Resources{2048, 200000, 100000, 7, 0, "/custom", "", ""}, policy.Guaranteed, 2000, 2000, 7},
		"no kubelet, nothing":   {Resources{}, "BestEffort", 0, 0, 0},
	} {
		var got policy.Container
		c.from.Fill(&got, capacity)
		if got.QOS != c.qos || got.Request != c.request || got.Limit != c.limit || got.Memory/(1<<30) != c.memory/(1<<30) {
			t.Errorf("%s: %s, %d, %d, %d", name, got.QOS, got.Request, got.Limit, got.Memory)
		}
	}
}

func TestCPUsetsThatAreSeen(t *testing.T) {
	if pin := (Resources{CPUs: "0-1,4", MemoryNodes: "garbage"}).Seen(); pin.CPUs.String() != "0-1,4" || !pin.Memory.Empty() {
		t.Errorf("%+v", pin)
	}
}

// Every request that a pod can write comes back as itself.
func TestSharesRoundTrip(t *testing.T) {
	for milli := 3; milli < 300_000; milli += 7 {
		var got policy.Container
		Resources{Shares: int64(milli * 1024 / 1000), CgroupParent: "/kubepods/burstable/x"}.Fill(&got, 0)
		if got.Request != milli {
			t.Fatalf("%d came back as %d", milli, got.Request)
		}
	}
}

func TestWhoHasNoMemoryLimit(t *testing.T) {
	var c policy.Container
	for _, step := range []struct {
		limit int64
		none  bool
	}{{0, true}, {1 << 30, false}, {-1, true}} {
		Resources{MemoryLimit: step.limit, OOMScoreAdj: 900, CgroupParent: "/kubepods/burstable/x"}.Fill(&c, 1<<40)
		if c.NoMemoryLimit != step.none {
			t.Errorf("limit %d: no limit %t", step.limit, c.NoMemoryLimit)
		}
	}
}

// An update says only what it changes.
func TestWhatIsNotGivenStays(t *testing.T) {
	for name, c := range map[string]struct {
		from           Resources
		request, limit int
		memory         int64
	}{
		"nothing":        {Resources{}, 8000, 8000, 1 << 30},
		"memory alone":   {Resources{MemoryLimit: 2 << 30}, 8000, 8000, 2 << 30},
		"quota alone":    {Resources{Quota: 400_000}, 4000, 4000, 1 << 30},
		"all of the CPU": {Resources{Shares: 4096, Quota: 200_000, Period: 50_000}, 4000, 4000, 1 << 30},
		"no limits":      {Resources{Quota: -1, MemoryLimit: -1}, 8000, 0, 0},
	} {
		got := policy.Container{Request: 8000, Limit: 8000, Memory: 1 << 30}
		got.QOS = policy.Guaranteed
		c.from.Fill(&got, 1<<40)
		if got.QOS != policy.Guaranteed || got.Request != c.request || got.Limit != c.limit || got.Memory != c.memory {
			t.Errorf("%s: %s, %d, %d, %d", name, got.QOS, got.Request, got.Limit, got.Memory)
		}
	}
}
