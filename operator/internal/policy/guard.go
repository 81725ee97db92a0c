package policy

import (
	"fmt"
	"time"
)

// guard returns what forbids the next act; nil: nothing does.
func guard(v *view) *Decision {
	blocked := &Decision{Step: Waiting, Wish: v.afterEvictions(), Again: whenBlocked}
	switch {
	case v.BackupsUnknown != "":
		blocked.Reason = "BackupsUnknown"
		blocked.Message = "backups cannot be listed: " + v.BackupsUnknown
	case len(v.Backups) > 0:
		blocked.Reason = "BackupRuns"
		blocked.Message = fmt.Sprintf("backup %s runs since %s", v.Backups[0].Name,
			v.Backups[0].Since.UTC().Format(time.RFC3339))
	default:
		return nil
	}
	return blocked
}

// tooSmall: without one member no majority of the set would stay, however healthy it is.
func tooSmall(v *view) *Decision {
	if 2*(v.Set.Replicas-1) > v.Set.Replicas || v.Spec.AllowSmall && v.Set.Replicas == 2 {
		return nil
	}
	return &Decision{
		Step: Waiting, Wish: v.afterEvictions(), Reason: "TooSmall", Stalled: true, Again: atRest,
		Message: fmt.Sprintf("without one of %d replicas no majority would stay: give the set three, "+
			"or set allowSmall where there are two", v.Set.Replicas),
	}
}

// majorityStays: after the eviction of this pod more than half of the replicas serve in every ready proxy.
func (v *view) majorityStays(leaving Pod) bool {
	stay := 0
	for _, pod := range v.pods {
		if pod.UID != leaving.UID && v.isOnline(pod) {
			stay++
		}
	}
	if v.Spec.AllowSmall && v.Set.Replicas == 2 {
		return stay == 1
	}
	return 2*stay > v.Set.Replicas
}
