package policy

import "fmt"

// older: of two SmartUpdates for one set the older one acts.
func older(v *view) *Decision {
	if v.Older == "" {
		return nil
	}
	return &Decision{
		Step: Waiting, Reason: "AnotherActs", Stalled: true, handsOff: true, Again: atRest,
		Message: fmt.Sprintf("SmartUpdate %s is for StatefulSet %s, too, and is older: delete one of them",
			v.Older, v.Spec.StatefulSet),
	}
}

// set: the set is there, is left to us, and its controller has seen its newest template.
func set(v *view) *Decision {
	blocked := &Decision{Step: Waiting, handsOff: true, Again: whenBlocked}
	switch {
	case v.Set == nil:
		blocked.Reason, blocked.Stalled, blocked.Again = "NoStatefulSet", true, atRest
		blocked.Message = fmt.Sprintf("there is no StatefulSet %s in this namespace", v.Spec.StatefulSet)
	case v.Set.Deleted:
		blocked.Reason = "StatefulSetEnds"
		blocked.Message = fmt.Sprintf("StatefulSet %s is being deleted", v.Spec.StatefulSet)
	case !v.Set.OnDelete:
		blocked.Reason, blocked.Stalled, blocked.Again = "NotOnDelete", true, atRest
		blocked.Message = fmt.Sprintf("set spec.updateStrategy.type of StatefulSet %s to OnDelete: "+
			"with RollingUpdate its controller deletes pods by itself", v.Spec.StatefulSet)
	case !v.Set.Observed:
		blocked.Reason = "NotObserved"
		blocked.Message = fmt.Sprintf("the controller of StatefulSets has not seen the newest template of %s",
			v.Spec.StatefulSet)
	case v.Set.Replicas == 0:
		blocked.Reason, blocked.Again = "NoReplicas", atRest
		blocked.Message = fmt.Sprintf("StatefulSet %s has no replicas", v.Spec.StatefulSet)
	default:
		return nil
	}
	return blocked
}
