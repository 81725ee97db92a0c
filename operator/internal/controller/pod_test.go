package controller

import (
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/policy"
)

func TestAPodIsDescribedByWhatKeepsItFromRunning(t *testing.T) {
	since := metav1.NewTime(time.Unix(1_800_000_000, 0))
	waits := func(reason string) core.PodStatus {
		waiting := core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: reason, Message: "it says"}}
		return core.PodStatus{ContainerStatuses: []core.ContainerStatus{{Name: "server", State: waiting}}}
	}
	condition := func(kind core.PodConditionType, status core.ConditionStatus, reason string) core.PodStatus {
		return core.PodStatus{Conditions: []core.PodCondition{
			{Type: kind, Status: status, Reason: reason, LastTransitionTime: since},
		}}
	}
	initial := waits("CrashLoopBackOff")
	initial.InitContainerStatuses, initial.ContainerStatuses = initial.ContainerStatuses, nil
	for name, row := range map[string]struct {
		status core.PodStatus
		want   policy.Pod
	}{
		"ready":           {condition(core.PodReady, core.ConditionTrue, ""), policy.Pod{Ready: true}},
		"not ready":       {condition(core.PodReady, core.ConditionFalse, ""), policy.Pod{}},
		"is made":         {waits("ContainerCreating"), policy.Pod{}},
		"no image":        {waits("ErrImageNeverPull"), policy.Pod{Failure: "server: ErrImageNeverPull: it says"}},
		"crashes at once": {initial, policy.Pod{Failure: "server: CrashLoopBackOff: it says"}},
		"has failed": {core.PodStatus{Phase: core.PodFailed, Reason: "Evicted", Message: "disk"},
			policy.Pod{Failure: "the pod has failed: Evicted disk"}},
		"no node": {condition(core.PodScheduled, core.ConditionFalse, core.PodReasonUnschedulable),
			policy.Pod{Unschedulable: since.Time}},
		"is scheduled later": {condition(core.PodScheduled, core.ConditionFalse, "SchedulingGated"), policy.Pod{}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &core.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: "db-2", UID: "uid", Labels: map[string]string{apps.ControllerRevisionHashLabelKey: "new"},
				},
				Status: row.status,
			}
			row.want.Name, row.want.UID, row.want.Ordinal, row.want.Revision = "db-2", "uid", 2, "new"
			if got := describe(pod, 2); got != row.want {
				t.Errorf("%+v\nnot\n%+v", got, row.want)
			}
		})
	}
}

func TestACacheThatIsBehindDoesNotHideWhatWasWritten(t *testing.T) {
	version := func(uid types.UID, version string) *v1alpha1.SmartUpdate {
		return &v1alpha1.SmartUpdate{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
	}
	written := version("one", "1000")
	for _, row := range []struct {
		name   string
		cached *v1alpha1.SmartUpdate
		want   string
	}{
		{"behind", version("one", "999"), "1000"}, {"the same", version("one", "1000"), "1000"},
		{"before it", version("one", "1001"), "1001"}, {"another object", version("two", "5"), "5"},
	} {
		kept := &kept{written: written}
		if got := kept.newest(row.cached); got.ResourceVersion != row.want {
			t.Errorf("%s: %s, not %s", row.name, got.ResourceVersion, row.want)
		}
	}
}

func TestOrdinalsAreThoseOfTheSet(t *testing.T) {
	for pod, want := range map[string]int{"db-0": 0, "db-12": 12, "db-x": -1, "other-0": -1, "db": -1, "db-a-0": -1} {
		got, ok := ordinalOf(pod, "db")
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%s: %d %v", pod, got, ok)
		}
	}
}
