package cgroup

import (
	"slices"
	"testing"

	"proxima.io/agent/internal/topology"
)

func TestWhereACgroupIs(t *testing.T) {
	for given, want := range map[string]string{
		"":                        "",
		"/kubepods/burstable/p/c": "/kubepods/burstable/p/c",
		"kubepods/p/c":            "/kubepods/p/c",
		"/../../etc":              "/etc",
		"kubepods-burstable-podx.slice:cri-containerd:c1": "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podx.slice/cri-containerd-c1.scope",
		"system.slice:crio:c2":                            "/system.slice/crio-c2.scope",
		":cri-containerd:c3":                              "/cri-containerd-c3.scope",
	} {
		got := Of(given)
		if (want == "") != (len(got) == 0) || (want != "" && got[0] != want) {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
	if got := Below("/kubepods/pod1", "c"); !slices.Equal(got, []string{"/kubepods/pod1/c"}) {
		t.Errorf("%q", got)
	}
	if got := Below("/kubepods.slice/kubepods-pod1.slice", "c"); len(got) != 2 || got[0] != "/kubepods.slice/kubepods-pod1.slice/cri-containerd-c.scope" {
		t.Errorf("%q", got)
	}
}

func TestTheKernelsWord(t *testing.T) {
	tree := topology.Recording{
		"sys/fs/cgroup/kubepods/a/cpuset.cpus.effective":        "2-3",
		"sys/fs/cgroup/kubepods/a/cpuset.mems.effective":        "0",
		"sys/fs/cgroup/cpuset/kubepods/b/cpuset.effective_cpus": "1",
		"sys/fs/cgroup/cpuset/kubepods/b/cpuset.effective_mems": "0-1",
		"sys/fs/cgroup/cpuset/kubepods/b/cgroup.procs":          "77",
		"sys/fs/cgroup/cpuset/kubepods/c/cpuset.effective_cpus": "0-3",
		"sys/fs/cgroup/cpuset/kubepods/c/cpuset.effective_mems": "0",
		"sys/fs/cgroup/cpuset/kubepods/c/cgroup.procs":          "",
	}
	for path, want := range map[string]string{
		"/kubepods/a": "CPUs 2-3 memory 0", "/kubepods/b": "CPUs 1 memory 0-1",
		"/kubepods/c": "CPUs  memory ", // its processes have left
	} {
		if pin, err := Effective(tree, []string{"/none", path}); err != nil || pin.String() != want {
			t.Errorf("%s: %s, %v; want %s", path, pin, err, want)
		}
	}
	if pin, err := Effective(tree, []string{"/none"}); err == nil {
		t.Errorf("%s", pin)
	}
}
