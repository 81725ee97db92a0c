package policy

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/proxies"
)

// move moves the writer on all proxies at once. Where it stands is what the proxies' orders say: first all
// hold, and when all are quiet, all begin a barrier on the next writer; when it has passed on all, all write
// there and resume. Each turn does one of these.
func (v *view) move(to Pod, step string) *Decision {
	back := v.afterEvictions()
	moving := &Decision{Wish: back, Step: step, StepPod: to.Name, Reason: "WriterMoves", Again: whileHeld}
	if back.Writer == to.Name {
		moving.Message = fmt.Sprintf("proxies write to %s from now on", to.Name)
		return moving
	}
	if !v.holds() {
		return v.beginMove(moving)
	}

	held, quiet, prepared, passed := v.moveStands(to)
	switch limit := v.Spec.Limits.Move.Of(5 * time.Second); {
	case held >= limit || v.holdEnded():
		moving.Reason, moving.Message = v.whatFailed(quiet, to)
		moving.Failed = v.failure(moving.Reason, moving.Message)
	case prepared && passed:
		moving.Wish.Writer = to.Name
		moving.Message = fmt.Sprintf("%s has all writes: proxies write there and resume", to.Name)
	case prepared || quiet:
		moving.Wish.Hold, moving.Wish.Writer = true, to.Name
		moving.Message = fmt.Sprintf("all proxies are quiet: a barrier begins on %s", to.Name)
	default:
		moving.Wish.Hold = true
		moving.Message = fmt.Sprintf("all proxies hold new writes, and those under way at %s end", v.writer)
	}
	return moving
}

// beginMove holds writes on all proxies, unless an attempt has failed just now, or once too often.
func (v *view) beginMove(moving *Decision) *Decision {
	failed := v.failedMoves()
	switch {
	case failed.Failed >= v.moves():
		moving.Reason, moving.Stalled, moving.Again = failed.Reason, true, whenBlocked
		moving.Message = fmt.Sprintf("the writer was not moved in %d attempts: %s; change the object to try again",
			failed.Failed, failed.Message)
	case v.Now.Before(failed.Next.Time):
		moving.Reason, moving.Again = failed.Reason, whenBlocked
		moving.Message = fmt.Sprintf("attempt %d to move the writer has failed: %s", failed.Failed, failed.Message)
	default:
		if blocked := guard(v); blocked != nil {
			return blocked
		}
		moving.Wish.Hold = true
		moving.Message = fmt.Sprintf("the writer moves from %s to %s", v.writer, moving.StepPod)
	}
	return moving
}

// moveStands sums up the proxies: the longest hold, and whether all of them are quiet, which they are only
// while they hold, have been told the next writer, and have seen the barrier pass on it.
func (v *view) moveStands(to Pod) (held time.Duration, quiet, prepared, passed bool) {
	quiet, prepared, passed = true, true, true
	for _, proxy := range v.asked {
		answer := proxy.Answer
		if answer.HeldMS != nil {
			held = max(held, time.Duration(*answer.HeldMS)*time.Millisecond)
		}
		quiet = quiet && answer.Quiet
		prepared = prepared && answer.Order != nil && answer.Order.Writer == to.Name
		member := answer.Member(to.UID)
		passed = passed && member != nil && member.Barrier == proxies.Passed
	}
	return held, quiet, prepared, passed
}

func (v *view) holdEnded() bool {
	for _, proxy := range v.asked {
		if order := proxy.Answer.Order; order != nil && order.HoldEnded != "" {
			return true
		}
	}
	return false
}

// isDecided: some proxy was told to write to the next writer without a hold, so that all have to follow.
func (v *view) isDecided() bool {
	for _, proxy := range v.asked {
		order := proxy.Answer.Order
		if order != nil && !order.Hold && order.Writer != "" {
			return true
		}
	}
	return false
}

func (v *view) whatFailed(quiet bool, to Pod) (reason, message string) {
	if quiet {
		return "BarrierLate", fmt.Sprintf("no barrier has passed on %s within limits.move", to.Name)
	}
	pinned, names := 0, ""
	old, _ := v.pod(v.writer)
	for _, proxy := range v.asked {
		if proxy.Answer.Quiet {
			continue
		}
		names += " " + proxy.Pod
		if member := proxy.member(old.UID); member != nil {
			pinned += member.Sessions
		}
	}
	return "SessionsPinned", fmt.Sprintf("%d sessions keep %s; not quiet within limits.move:%s",
		pinned, v.writer, names)
}

// failedMoves are the failed attempts, of this template and this generation of the object.
func (v *view) failedMoves() v1alpha1.Moves {
	roll := v.Status.Roll
	if roll == nil || roll.Moves == nil || roll.Revision != v.Set.UpdateRevision ||
		v.Status.ObservedGeneration != v.Generation {
		return v1alpha1.Moves{}
	}
	return *roll.Moves
}

func (v *view) moves() int32 {
	if v.Spec.Limits.Moves == 0 {
		return 10
	}
	return v.Spec.Limits.Moves
}

// failure counts a failed attempt. The pause before the next one doubles, from 2 s up to a minute.
func (v *view) failure(reason, message string) *v1alpha1.Moves {
	count := v.failedMoves().Failed + 1
	pause := min(time.Second<<min(count, 6), time.Minute)
	return &v1alpha1.Moves{
		Failed: count, Next: metav1.NewTime(v.Now.Add(pause)), Reason: reason, Message: message,
	}
}
