package controller

import (
	"fmt"
	"slices"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"

	"proxima.io/operator/internal/policy"
)

// failures are reasons for which a container waits that do not end by themselves.
var failures = []string{
	"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "CrashLoopBackOff",
	"CreateContainerConfigError",
}

// describe says what the policy has to know of a pod.
func describe(pod *core.Pod, ordinal int) policy.Pod {
	described := policy.Pod{
		Name: pod.Name, UID: string(pod.UID), Ordinal: ordinal,
		Revision: pod.Labels[apps.ControllerRevisionHashLabelKey], Terminating: pod.DeletionTimestamp != nil,
		Failure: failure(pod),
	}
	for _, condition := range pod.Status.Conditions {
		switch {
		case condition.Type == core.PodReady:
			described.Ready = condition.Status == core.ConditionTrue
		case condition.Type == core.PodScheduled && condition.Status == core.ConditionFalse &&
			condition.Reason == core.PodReasonUnschedulable:
			described.Unschedulable = condition.LastTransitionTime.Time
		}
	}
	return described
}

// failure is the pod's own message about what keeps it from running.
func failure(pod *core.Pod) string {
	if pod.Status.Phase == core.PodFailed {
		return fmt.Sprintf("the pod has failed: %s %s", pod.Status.Reason, pod.Status.Message)
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waits := status.State.Waiting; waits != nil && slices.Contains(failures, waits.Reason) {
			return fmt.Sprintf("%s: %s: %s", status.Name, waits.Reason, waits.Message)
		}
	}
	return ""
}
