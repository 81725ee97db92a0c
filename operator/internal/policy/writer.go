package policy

// writer: once all readers are new, the lowest of them that serves everywhere becomes the writer. The old
// one then is a reader like the others.
func writer(v *view) *Decision {
	pod, found := v.pod(v.writer)
	if !found || v.isUpdated(pod) || pod.Terminating {
		return nil
	}
	if blocked := tooSmall(v, pod); blocked != nil {
		return blocked
	}
	for index := len(v.pods) - 1; index >= 0; index-- {
		if next := v.pods[index]; next.UID != pod.UID && v.isFinished(next) {
			return v.move(next, MovingWriter)
		}
	}
	if blocked := guard(v); blocked != nil {
		return blocked
	}
	return v.await(pod.Name, "NoNextWriter", "no updated member can take the writes of "+pod.Name)
}
