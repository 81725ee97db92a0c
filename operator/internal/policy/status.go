package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proxima.io/operator/api/v1alpha1"
)

// Status is the object's status with this decision: what is shown, and what the next turns have to know.
func Status(o Observation, d Decision) v1alpha1.SmartUpdateStatus {
	v := look(o)
	status := *o.Status.DeepCopy()
	status.Roll, status.LastRoll = v.rolls(d)
	status.ObservedGeneration = o.Generation
	status.Step = &v1alpha1.Step{
		Name: d.Step, Pod: d.StepPod, Message: d.Message, Since: metav1.NewTime(d.Since),
	}
	v.showMembers(&status)
	v.setConditions(&status, d)
	return status
}

// rolls returns the roll under way and the last one. A roll begins with its first act, and ends when nothing
// is left to be done.
func (v *view) rolls(d Decision) (*v1alpha1.Roll, *v1alpha1.LastRoll) {
	roll, last := v.Status.Roll.DeepCopy(), v.Status.LastRoll
	if v.Set == nil {
		return nil, last
	}
	if roll == nil {
		if d.Act == Nothing || len(v.outdated()) == 0 {
			return nil, last
		}
		roll = &v1alpha1.Roll{Began: metav1.NewTime(v.Now), Revision: v.Set.UpdateRevision}
	}
	for _, proxy := range v.asked {
		if proxy.Answer.LongestHoldMS != nil && proxy.Answer.Order != nil {
			roll.LongestHoldMS = max(roll.LongestHoldMS, *proxy.Answer.LongestHoldMS)
		}
	}
	if v.isAtRest(d) {
		return nil, &v1alpha1.LastRoll{
			Began: roll.Began, Ended: metav1.NewTime(v.Now), Revision: roll.Revision,
			LongestHoldMS: roll.LongestHoldMS,
		}
	}
	if choice := v.rulesChoice(); choice != "" {
		roll.Writer = choice
	}
	moved := v.Status.Writer != "" && v.writer != "" && v.writer != v.Status.Writer
	if d.Failed != nil {
		roll.Moves = d.Failed
	} else if moved || roll.Revision != v.Set.UpdateRevision || v.Status.ObservedGeneration != v.Generation {
		roll.Moves = nil
	}
	roll.Revision = v.Set.UpdateRevision
	return roll, last
}

func (v *view) isAtRest(d Decision) bool {
	return d.Step == Resting && d.Act == Nothing
}

// showMembers tells of each pod. While no proxy answers, the writer stays as it was last seen.
func (v *view) showMembers(status *v1alpha1.SmartUpdateStatus) {
	if len(v.asked) > 0 {
		status.Writer = v.writer
	}
	status.Members = nil
	for index := len(v.pods) - 1; index >= 0; index-- {
		pod := v.pods[index]
		member := v1alpha1.Member{
			Pod: pod.Name, Revision: pod.Revision, Online: fmt.Sprintf("%d/%d", v.onlineIn(pod), len(v.ready)),
		}
		for _, proxy := range v.ready {
			told := proxy.member(pod.UID)
			switch {
			case told == nil:
			case member.Role == "":
				member.Role = told.Role
			case member.Role != told.Role:
				member.Role = "mixed"
			}
			if told != nil && told.Version != "" && pod.Name == v.writer {
				if status.Versions == nil {
					status.Versions = &v1alpha1.Versions{}
				}
				status.Versions.Running = told.Version
			}
		}
		status.Members = append(status.Members, member)
	}
}

// setConditions sets what kstatus knows, and whether a backup runs.
func (v *view) setConditions(status *v1alpha1.SmartUpdateStatus, d Decision) {
	rests := v.isAtRest(d)
	backup, backupReason, backupMessage := metav1.ConditionFalse, "NoBackup", "no backup runs"
	if v.BackupsUnknown != "" {
		backup, backupReason, backupMessage = metav1.ConditionUnknown, "BackupsUnknown", v.BackupsUnknown
	} else if len(v.Backups) > 0 {
		backup, backupReason, backupMessage = metav1.ConditionTrue, "BackupRuns", v.Backups[0].Name
	}
	for _, condition := range []metav1.Condition{
		{Type: v1alpha1.Ready, Status: is(rests), Reason: d.Reason, Message: d.Message},
		{Type: v1alpha1.Reconciling, Status: is(!rests && !d.Stalled), Reason: d.Reason, Message: d.Message},
		{Type: v1alpha1.Stalled, Status: is(d.Stalled), Reason: d.Reason, Message: d.Message},
		{Type: v1alpha1.BackupRunning, Status: backup, Reason: backupReason, Message: backupMessage},
	} {
		condition.ObservedGeneration = v.Generation
		condition.LastTransitionTime = metav1.NewTime(v.Now)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
}

func is(holds bool) metav1.ConditionStatus {
	if holds {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
