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

// tooSmall forbids to take this pod away: more than half of the replicas have to stay online everywhere.
func tooSmall(v *view, leaving Pod) *Decision {
	stay := 0
	for _, pod := range v.pods {
		if pod.UID != leaving.UID && v.isOnline(pod) {
			stay++
		}
	}
	if 2*stay > v.Set.Replicas || v.Spec.AllowSmall && v.Set.Replicas == 2 && stay == 1 {
		return nil
	}
	return &Decision{
		Step: Waiting, Wish: v.afterEvictions(), Reason: "TooSmall", Stalled: true, Again: atRest,
		Message: fmt.Sprintf("without %s, %d of %d replicas would stay online, which is no majority: give the set "+
			"three, or set allowSmall where there are two", leaving.Name, stay, v.Set.Replicas),
	}
}
