package policy

import "fmt"

// broken: outdated pods that serve nobody go first. A broken update is mended by the next one, and so
// nothing of this waits for a pod to be healthy: not for the broken one, and not for the others.
func broken(v *view) *Decision {
	for _, pod := range v.outdated() {
		if !v.isBroken(pod) {
			continue
		}
		if blocked := guard(v); blocked != nil {
			return blocked
		}
		message := "it is not ready and no proxy uses it"
		if pod.Failure != "" {
			message = pod.Failure
		}
		return &Decision{
			Act: Evict, Pod: pod, Wish: v.afterEvictions(), Step: Evicting, StepPod: pod.Name, Reason: "Broken",
			Message: fmt.Sprintf("%s is outdated and serves nobody: %s", pod.Name, message), Again: whileAwaited,
		}
	}
	return nil
}

// isBroken: nobody uses the pod. One that is only not ready may come back, so that it is taken for broken
// only while all others serve; one that cannot run is, whatever the others do.
func (v *view) isBroken(pod Pod) bool {
	if pod.Ready || v.onlineIn(pod) > 0 || v.sessions(pod) > 0 || pod.Name == v.writer {
		return false
	}
	if pod.Failure != "" || !pod.Unschedulable.IsZero() {
		return true
	}
	return v.othersServe(pod)
}

// othersServe: the set has all its other pods, and each serves in every ready proxy.
func (v *view) othersServe(but Pod) bool {
	count := 0
	for _, pod := range v.pods {
		if pod.UID == but.UID {
			continue
		}
		if !v.isOnline(pod) {
			return false
		}
		count++
	}
	return count == v.Set.Replicas-1
}
