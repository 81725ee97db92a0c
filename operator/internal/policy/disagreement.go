package policy

import (
	"fmt"
	"strings"
	"time"
)

// disagreement: nothing is evicted before all ready proxies say the same writer.
func disagreement(v *view) *Decision {
	same := true
	var said []string
	for _, proxy := range v.ready {
		name := proxy.Answer.Writer
		same = same && name == v.ready[0].Answer.Writer
		if name == "" {
			name = "none"
		}
		said = append(said, proxy.Pod+": "+name)
	}
	wish := v.asItIs()
	if wish.Writer != "" && (!same || v.writer != wish.Writer) {
		return v.allFollow(wish.Writer)
	}
	if same {
		return nil
	}
	return v.keep(&Decision{
		Step: Waiting, Reason: "WritersDiffer", Again: whenBlocked,
		Message: "proxies do not say the same writer: " + strings.Join(said, ", "),
	})
}

// allFollow: some proxy writes to this member already, so that all others have to follow.
func (v *view) allFollow(writer string) *Decision {
	following := &Decision{
		Step: MovingWriter, StepPod: writer, Reason: "WriterMoves", Wish: v.asItIs(), Again: whileHeld,
		Message: fmt.Sprintf("proxies move the writer to %s", writer),
	}
	if v.Now.Sub(v.since(MovingWriter, writer)) > v.Spec.Limits.Move.Of(5*time.Second) {
		following.Again = whenBlocked
	}
	if v.Now.Sub(v.since(MovingWriter, writer)) > v.Spec.Limits.Pod.Of(2*time.Hour) {
		following.Stalled, following.Reason = true, "MoveIncomplete"
	}
	return following
}

// noWriter: while no proxy has a writer, no member is taken away that serves.
func noWriter(v *view) *Decision {
	if v.writer != "" || len(v.outdated()) == 0 {
		return nil
	}
	return &Decision{
		Step: Waiting, Reason: "NoWriter", Wish: v.afterEvictions(), Again: whenBlocked,
		Message: "no proxy has a member that takes writes",
	}
}
