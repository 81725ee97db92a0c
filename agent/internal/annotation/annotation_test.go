package annotation

import (
	"reflect"
	"strings"
	"testing"

	"proxima.io/agent/internal/topology"
)

const sourcesAffinity = `
memtier-benchmark:
- scope:
    key: pod/name
    operator: Matches
    values: [redis-*]
  match:
    key: name
    operator: Equals
    values: [redis]
  weight: 10
`

// The source printed its example with the scope's fields one level too high.
const sourcesSlip = `
memtier-benchmark:
- scope:
  key: pod/name
  operator: Matches
  values:
  - redis-*
  match:
    key: name
    operator: Equals
    values:
    - redis
  weight: 10
`

var (
	redis   = Subject{Name: "redis", PodName: "redis-5d4f", PodID: "p1", Namespace: "default", PodLabels: map[string]string{"app": "redis"}}
	memtier = Subject{Name: "memtier-benchmark", PodName: "memtier-x", PodID: "p2", Namespace: "default"}
	nginx   = Subject{Name: "nginx", PodName: "nginx-1", PodID: "p3", Namespace: "web", PodLabels: map[string]string{"app": "nginx"}}
)

func TestTheSourcesPodsWorkUnchanged(t *testing.T) {
	for name, text := range map[string]string{"documented": sourcesAffinity, "as printed": sourcesSlip} {
		w, findings := Read(map[string]string{
			"cri-resource-manager.intel.com/affinity":          text,
			"topologyhints.cri-resource-manager.intel.com/pod": "false",
			"kubectl.kubernetes.io/last-applied-configuration": "{}",
		}, "memtier-benchmark")
		if len(w.Affinities) != 1 || w.Affinities[0].Weight != 10 || w.DeviceHints != No {
			t.Fatalf("%s: %+v %v", name, w, findings)
		}
		a := w.Affinities[0]
		if !a.Applies(&memtier, &redis) || a.Applies(&memtier, &nginx) {
			t.Errorf("%s: must be about redis and nothing else", name)
		}
		if name == "as printed" {
			if len(findings) != 1 || findings[0].Problem != Odd {
				t.Errorf("the slip must be reported, got %v", findings)
			}
		} else if len(findings) != 0 {
			t.Errorf("%s: findings %v", name, findings)
		}
	}
}

func TestOwnShortForm(t *testing.T) {
	for value, want := range map[string]bool{"app=redis": true, "app=nginx": false, "*:app=redis": true, "web:app=redis": false, "default:app=redis": true, "app=redis,tier=": false} {
		w, findings := Read(map[string]string{"proxima.io/near": value}, "memtier")
		if len(findings) != 0 || len(w.Affinities) != 1 || w.Affinities[0].Applies(&memtier, &redis) != want {
			t.Errorf("near %q: %+v %v, want %t", value, w, findings, want)
		}
	}
	if w, _ := Read(map[string]string{"proxima.io/far.memtier": "app=redis"}, "other"); len(w.Affinities) != 0 {
		t.Error("an annotation for one container was taken for another")
	}
	if w, _ := Read(map[string]string{"proxima.io/far": "app=redis"}, "x"); len(w.Affinities) != 1 || w.Affinities[0].Weight >= 0 {
		t.Errorf("far: %+v", w)
	}
}

func TestPreferences(t *testing.T) {
	w, findings := Read(map[string]string{
		"prefer-isolated-cpus.cri-resource-manager.intel.com/pod": "true",
		"prefer-isolated-cpus.resource-policy.nri.io/container.a": "false", // the container's wins
		"memory-type.resource-policy.nri.io/container.a":          "dram, hbm",
		"cpu.preserve.resource-policy.nri.io/pod":                 "true",
		"cri-resource-manager.intel.com/prefer-shared-cpus":       "a: true\nb: false",
		"proxima.io/cores.a": "one-thread",
		"proxima.io/device":  "eth0, nvme0n1",
	}, "a")
	if len(findings) != 0 || w.Isolated != No || len(w.Memory) != 2 || !w.KeepCPUs || w.Shared != Yes || w.HideThreads != Yes || len(w.Devices) != 2 {
		t.Errorf("%+v %v", w, findings)
	}
}

// Forms of keys and values that nri-plugins takes, and its manifests have.
func TestNRIPluginsForms(t *testing.T) {
	const domain = ".resource-policy.nri.io"
	all := []topology.MemoryKind{topology.DRAM, topology.PMEM, topology.HBM}
	for _, c := range []struct {
		key, value string
		want       Preferences
		unserved   bool
	}{
		{"hide-hyperthreads" + domain, "true", Preferences{HideThreads: Yes}, false},
		{"hide-hyperthreads" + domain + "/pod", "1", Preferences{HideThreads: Yes}, false},
		{"prefer-shared-cpus" + domain + "/pod", "F", Preferences{Shared: No}, false},
		{"topologyhints" + domain + "/pod", "none", Preferences{DeviceHints: No}, false},
		{"topologyhints" + domain + "/pod", "all", Preferences{DeviceHints: Yes}, false},
		{"topologyhints" + domain + "/pod", "devices,pod-resources", Preferences{DeviceHints: Yes}, true},
		{"topologyhints" + domain + "/pod", "mounts", Preferences{DeviceHints: No}, true},
		{"memory-type" + domain + "/pod", "mixed", Preferences{Memory: all}, false},
		{"prefer-cpu-priority" + domain + "/pod", "default", Preferences{}, false},
	} {
		w, findings := Read(map[string]string{c.key: c.value}, "a")
		unserved := len(findings) == 1 && findings[0].Problem == Unserved
		if !reflect.DeepEqual(w.Preferences, c.want) || unserved != c.unserved || (len(findings) > 0) != c.unserved {
			t.Errorf("%s: %s gives %+v, %v", c.key, c.value, w.Preferences, findings)
		}
	}
	w, _ := Read(map[string]string{"prefer-shared-cpus" + domain: "true", "prefer-shared-cpus" + domain + "/pod": "false"}, "a")
	if w.Shared != No {
		t.Error("the key with /pod wins over the one without")
	}
}

func TestAContainersOwnKeyReplacesItsPods(t *testing.T) {
	exclusive := Preferences{Shared: No, Reserved: No}
	for _, c := range []struct {
		pod, container string
		want           Preferences
	}{
		{"unpinned", "exclusive", exclusive},
		{"reserved", "exclusive", exclusive},
		{"isolated", "exclusive", exclusive},
		{"isolated", "shared", Preferences{Shared: Yes, Reserved: No}},
		{"shared", "unpinned", Preferences{Reserved: No, KeepCPUs: true, KeepMemory: true}},
		{"exclusive", "misspelt", exclusive},
	} {
		w, _ := Read(map[string]string{"proxima.io/cpus": c.pod, "proxima.io/cpus.a": c.container}, "a")
		if !reflect.DeepEqual(w.Preferences, c.want) {
			t.Errorf("%s, and %s for the container: %+v, want %+v", c.pod, c.container, w.Preferences, c.want)
		}
	}
	w, _ := Read(map[string]string{
		"cpu.preserve.resource-policy.nri.io/pod":    "true",
		"memory.preserve.resource-policy.nri.io/pod": "true",
		"proxima.io/cpus":                            "exclusive",
	}, "a")
	if w.KeepCPUs || !w.KeepMemory {
		t.Errorf("our word on CPUs replaces the dialects', and says nothing of memory: %+v", w.Preferences)
	}
}

func TestNothingIsIgnoredInSilence(t *testing.T) {
	for key, want := range map[string]struct {
		problem Problem
		message string
	}{
		"rdtclass.cri-resource-manager.intel.com/pod":            {Unserved, "RDT"},
		"rdtclass.cri-resource-manager.intel.com":                {Unserved, "RDT"},
		"rdtclas.cri-resource-manager.intel.com/pod":             {Unknown, "rdtclass"},
		"deny.topologyhints.resource-policy.nri.io/container.b":  {Unserved, "path"},
		"topologyhints.resource-policy.nri.io":                   {Malformed, "pod-resources"},
		"cold-start.resource-policy.nri.io/container.a":          {Unserved, "memory-type"},
		"prefer-shared-cpu.resource-policy.nri.io/pod":           {Unknown, "prefer-shared-cpus"},
		"prefer-shared-cpus.resource-policy.nri.io/containers.a": {Unknown, "container.NAME"},
		"resource-policy.nri.io/afinity":                         {Unknown, "affinity"},
		"proxima.io/naer":                                        {Unknown, "near"},
		"proxima.oi/near":                                        {Unknown, "proxima.io"},
		"topologyhints.cri-resource-manger.intel.com/pod":        {Unknown, "cri-resource-manager.intel.com"},
		"prefer-shared-cpus.resource-policy.nir.io/pod":          {Unknown, "resource-policy.nri.io"},
		"cpu.preserve.resource-policy.nri/container.a":           {Unknown, "resource-policy.nri.io"},
		"proxima/near":         {Unknown, "proxima.io"},
		"near":                 {Unknown, "proxima.io/near"},
		"cpus.redis":           {Unknown, "proxima.io/cpus.redis"},
		"prefer-isolated-cpus": {Unknown, "prefer-isolated-cpus.resource-policy.nri.io/pod"},
		"anti-affinity":        {Unknown, "resource-policy.nri.io/anti-affinity"},
		"prefer-isolated-cpus.nri-resmgr.example.com/pod":   {Unknown, "before a release"},
		"nri-resource-policy.example.io/affinity":           {Unknown, "before a release"},
		"proxima.dev/near":                                  {Unknown, "before a release"},
		"something-else.cri-resource-manager.intel.com/pod": {Unknown, "unknown key"},
		"hide-hyperthreads.resource-policy.nri.io/pod":      {Malformed, "neither true nor false"},
		"memory-type.resource-policy.nri.io/pod":            {Malformed, "none of dram"},
		"cri-resource-manager.intel.com/anti-affinity":      {Malformed, "YAML"},
		"proxima.io/near":                                   {Malformed, "not a label"},
		"proxima.io/cpus":                                   {Malformed, "none of shared"},
	} {
		_, findings := Read(map[string]string{key: "bad"}, "a")
		if len(findings) != 1 || findings[0].Problem != want.problem || !strings.Contains(findings[0].Message, want.message) {
			t.Errorf("%s: %v, want %s with %q", key, findings, want.problem, want.message)
		}
	}
}

// Whose keys they are not: the words of a domain alone are nobody's misspelling.
func TestOthersAnnotationsAreTheirs(t *testing.T) {
	for _, key := range []string{"intel.com/x", "nri.io/x", "io/x", "gpu.intel.com/x", "policy.k8s.io/x", "x", "memory", "priority", "nearby", "/", "./x", "kubernetes.io/config.seen"} {
		if _, findings := Read(map[string]string{key: "1"}, "a"); len(findings) != 0 {
			t.Errorf("%s: %v", key, findings)
		}
	}
}

func TestContainersThatThePodDoesNotHave(t *testing.T) {
	for key, value := range map[string]string{
		"proxima.io/cpus.redsi": "shared",
		"proxima.io/near.redsi": "app=db",
		"prefer-shared-cpus.resource-policy.nri.io/container.redsi": "true",
		"cri-resource-manager.intel.com/prefer-shared-cpus":         "redsi: true\nredis: true",
		"cri-resource-manager.intel.com/affinity":                   "redsi: [exporter]\nredis: [exporter]",
		"resource-policy.nri.io/anti-affinity":                      "redsi: [exporter]",
	} {
		findings := Strangers(map[string]string{key: value}, []string{"", "exporter", "redis"})
		if len(findings) != 1 || findings[0].Key != key || findings[0].Problem != Unknown || !strings.Contains(findings[0].Message, "redsi; did you mean redis?") {
			t.Errorf("%s: %v", key, findings)
		}
	}
	for key, value := range map[string]string{
		"proxima.io/cpus.redis": "shared", "proxima.io/cpus": "shared", "prefer-shared-cpus.resource-policy.nri.io/pod": "true",
		"cri-resource-manager.intel.com/prefer-shared-cpus": "true", "cri-resource-manager.intel.com/affinity": "[", "app.io/cpus.x": "",
	} {
		if findings := Strangers(map[string]string{key: value}, []string{"exporter", "redis"}); len(findings) != 0 {
			t.Errorf("%s: %v", key, findings)
		}
	}
}

func TestMalformedAffinities(t *testing.T) {
	for name, entry := range map[string]string{
		"no match":         "- weight: 5",
		"unknown field":    "- {match: {key: name, operator: Exists}, wieght: 5}",
		"unknown operator": "- match: {key: name, operator: Equal, values: [x]}",
		"unknown key":      "- match: {key: pod/nmae, operator: Equals, values: [x]}",
		"two values":       "- match: {key: name, operator: Equals, values: [x, y]}",
		"weight":           "- {match: {key: name, operator: Exists}, weight: 1001}",
		"weight of text":   "- {match: {key: name, operator: Exists}, weight: heavy}",
		"bad glob":         "- match: {key: name, operator: Matches, values: ['[']}",
		"a list of lists":  "- [x]",
		"not a list":       "  match: {}",
		"scope, no op":     "- {scope: {key: name}, match: {key: name, operator: Exists}}",
	} {
		w, findings := Read(map[string]string{"resource-policy.nri.io/affinity": "a:\n" + entry + "\n"}, "a")
		if len(w.Affinities) != 0 || len(findings) != 1 || findings[0].Problem != Malformed {
			t.Errorf("%s: %+v %v", name, w, findings)
		}
	}
	// One bad entry does not take the good ones with it.
	w, findings := Read(map[string]string{"resource-policy.nri.io/affinity": "a:\n- b\n- [x]\n- c\n"}, "a")
	if len(w.Affinities) != 2 || len(findings) != 1 {
		t.Errorf("%+v %v", w, findings)
	}
}

func TestOperatorsAndKeys(t *testing.T) {
	s := Subject{ID: "c1", Name: "redis", PodName: "redis-0", PodUID: "u1", Namespace: "cache", QOS: "Guaranteed",
		Labels: map[string]string{"l": "v"}, PodLabels: map[string]string{"app": "redis"}}
	for _, c := range []struct {
		key, operator string
		values        []string
		want          bool
	}{
		{"name", "Equals", []string{"redis"}, true}, {"name", "NotEqual", []string{"redis"}, false},
		{"pod/name", "Matches", []string{"redis-?"}, true}, {"pod/name", "MatchesNot", []string{"redis-?"}, false},
		{"pod/qosclass", "In", []string{"Burstable", "Guaranteed"}, true}, {"qosclass", "NotIn", []string{"Burstable"}, true},
		{"labels/l", "Exists", nil, true}, {"labels/m", "Exists", nil, false}, {"labels/m", "NotExists", nil, true},
		{"tags/t", "Exists", nil, false}, {"pod/uid", "Equals", []string{"u1"}, true}, {"id", "Equals", []string{"c1"}, true},
		{"pod/labels/app", "MatchesAny", []string{"x*", "red*"}, true}, {"pod/labels/app", "MatchesNone", []string{"x*"}, true},
		{":pod/qosclass:pod/name:name", "Equals", []string{"Guaranteed:redis-0:redis"}, true},
		{":,pod/namespace:labels/none:name", "Equals", []string{"cache,,redis"}, true},
		{"labels/io.kubernetes.container.name", "In", []string{"redis"}, true},
		{"labels/m", "NotEqual", []string{"v"}, true}, {"", "AlwaysTrue", nil, true},
	} {
		e := Expression{c.key, c.operator, c.values}
		if err := e.check(); err != nil {
			t.Errorf("%+v: %v", e, err)
		} else if got := e.holds(&s, &s); got != c.want {
			t.Errorf("%+v: %t, want %t", e, got, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("cri-resource-manager.intel.com/affinity", sourcesSlip)
	f.Add("resource-policy.nri.io/affinity", "memtier-benchmark: [redis]")
	f.Add("proxima.io/near", "*:app=redis")
	f.Fuzz(func(t *testing.T, key, value string) {
		w, _ := Read(map[string]string{key: value}, "memtier-benchmark")
		for i := range w.Affinities {
			w.Affinities[i].Applies(&memtier, &redis)
		}
	})
}
