package policy

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// A walk lets anything happen to the world between the operator's turns, and asks at every act whether it
// was one that may be. In the end nothing happens any more, and the roll has to end right.
func TestWalkKeepsEveryGuard(t *testing.T) {
	walks, steps := uint64(150), 300
	if os.Getenv("PROXIMA_SOAK") != "" {
		walks = 3000
	}
	evictions, moves := 0, 0
	for seed := range walks {
		w := walk{world: newWorld(seed)}
		for step := range steps {
			if w.happen(); w.chance.IntN(3) > 0 {
				w.turn()
			}
			if w.failure != "" {
				t.Fatalf("walk %d, step %d: %s\n%s", seed, step, w.failure, w.trace())
			}
		}
		w.settle()
		if w.failure != "" {
			t.Fatalf("walk %d, at its end: %s\n%s", seed, w.failure, w.trace())
		}
		evictions += w.evictions
		moves += w.moves
	}
	if evictions < int(walks) || moves < int(walks)/2 {
		t.Errorf("the walks show too little: %d evictions, %d moves of the writer", evictions, moves)
	}
	t.Logf("%d walks: %d evictions, %d moves of the writer", walks, evictions, moves)
}

type walk struct {
	*world
	log       []string
	failure   string
	evictions int
	moves     int
}

func (w *walk) fail(format string, args ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
	}
}

func (w *walk) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%6.2fs ", w.now.Sub(time.Unix(1_800_000_000, 0)).Seconds())+
		fmt.Sprintf(format, args...))
}

func (w *walk) trace() string {
	text := ""
	for _, line := range w.log[max(0, len(w.log)-40):] {
		text += line + "\n"
	}
	return text
}

// turn is one reconcile. Before and in the midst of its act the operator may die.
func (w *walk) turn() {
	o := w.observe()
	d := Decide(o)
	status := Status(o, d)
	w.note("%s %v %s %s: %s", d.Act, d.Wish, d.Pod.Name, d.Reason, d.Message)
	w.judge(o, d)
	if w.status = status; w.chance.IntN(20) == 0 {
		return
	}
	reached := func(*modelProxy) bool { return true }
	if w.chance.IntN(10) == 0 {
		reached = func(*modelProxy) bool { return w.chance.IntN(2) == 0 }
	}
	for _, p := range w.proxies {
		if p.silent || !reached(p) {
			continue
		}
		switch d.Act {
		case Give:
			w.give(p, d.Wish)
		case End:
			w.endOrder(p)
		}
	}
	if d.Act == Evict {
		for _, pod := range w.pods {
			if pod.uid == d.Pod.UID {
				pod.terminating, pod.ready = true, false
				w.evictions++
			}
		}
	}
}

// judge asks the world, and not the rules, whether the act may be.
func (w *walk) judge(o Observation, d Decision) {
	if d.Act == Nothing {
		return
	}
	if w.spec.Paused || !w.onDelete || !w.observed {
		w.fail("acts although paused, not OnDelete or not observed")
	}
	if d.Act == Give && d.Wish.Hold {
		w.judgeHold(d)
	}
	if d.Act == Give && !d.Wish.Hold && d.Wish.Writer != "" {
		w.judgeRelease(d)
	}
	if d.Act == Evict {
		w.judgeEviction(o, d.Pod)
	}
}

func (w *walk) judgeHold(d Decision) {
	begun := slices.ContainsFunc(w.proxies, func(p *modelProxy) bool {
		return p.order != nil && p.order.wish.Hold
	})
	if w.backup && !begun {
		w.fail("begins to hold writes while a backup runs")
	}
	writer := w.podNamed(w.firstReadyWriter())
	for _, pod := range w.pods {
		if writer != nil && writer.revision != w.revision && pod != writer && pod.revision != w.revision {
			w.fail("the writer %s has its turn before the reader %s", writer.name, pod.name)
		}
	}
	if d.Wish.Writer == "" {
		return
	}
	// A barrier is worth something only behind the last write of the old writer.
	for _, p := range w.proxies {
		stays := p.writer == d.Wish.Writer || p.order != nil && p.order.wish.Writer == p.writer
		if p.ready && !stays && !p.isQuiet() {
			w.fail("a barrier begins on %s while %s is not quiet", d.Wish.Writer, p.name)
		}
	}
}

func (w *walk) judgeRelease(d Decision) {
	to := d.Wish.Writer
	for _, p := range w.proxies {
		if p.order != nil && !p.order.wish.Hold && p.order.wish.Writer == to || p.writer == to {
			// The move was decided before, and this proxy or another one has not followed yet.
			return
		}
	}
	w.moves++
	pod := w.podNamed(to)
	for _, p := range w.proxies {
		if p.ready && (!p.isQuiet() || pod == nil || p.barrier != pod.uid) {
			w.fail("%s becomes the writer although %s is not quiet or has seen no barrier", to, p.name)
		}
	}
}

func (w *walk) judgeEviction(o Observation, pod Pod) {
	ready := 0
	serving := false
	for _, p := range w.proxies {
		if !p.ready {
			continue
		}
		if ready++; p.silent {
			w.fail("evicts %s although %s does not answer", pod.Name, p.name)
		}
		if p.byHand {
			w.fail("evicts %s beside a person's order", pod.Name)
		}
		if p.writer != w.firstReadyWriter() {
			w.fail("evicts %s although proxies say different writers", pod.Name)
		}
		serving = serving || p.sees[pod.UID] || p.sessions[pod.UID] > 0
	}
	if ready == 0 {
		w.fail("evicts %s without proxies", pod.Name)
	}
	if w.backup {
		w.fail("evicts %s while a backup runs", pod.Name)
	}
	if pod.Revision == fmt.Sprint(w.revision) {
		w.fail("evicts %s, which is up to date", pod.Name)
	}
	if !serving {
		return
	}
	stay := 0
	for ordinal := range w.replicas {
		other := w.pods[ordinal]
		if other != nil && other.uid == pod.UID {
			continue
		}
		everywhere := other != nil && !other.terminating
		for _, p := range w.proxies {
			everywhere = everywhere && (!p.ready || p.sees[other.uid])
		}
		if everywhere {
			stay++
		} else {
			w.fail("two pods away: %s goes while ordinal %d is not online everywhere", pod.Name, ordinal)
		}
		if other != nil && other.revision == w.revision && everywhere {
			for _, p := range w.proxies {
				if p.ready && other.name != p.writer && p.proofs[other.uid].Before(p.roles[other.uid]) {
					w.fail("%s goes while %s has not proven %s", pod.Name, p.name, other.name)
				}
			}
		}
	}
	if 2*stay <= w.replicas {
		w.fail("without %s only %d of %d stay online", pod.Name, stay, w.replicas)
	}
	for _, p := range w.proxies {
		if !p.ready {
			continue
		}
		if p.writer == pod.Name {
			w.fail("evicts %s, to which %s writes", pod.Name, p.name)
		}
		if p.order == nil || !slices.Contains(p.order.wish.Drain, pod.Name) {
			w.fail("evicts %s, which %s does not drain", pod.Name, p.name)
		} else if p.sessions[pod.UID] > 0 && w.now.Sub(p.order.drained[pod.Name]) < 9*time.Second {
			w.fail("evicts %s with sessions left, before limits.drain", pod.Name)
		}
	}
}

func (w *walk) firstReadyWriter() string {
	for _, p := range w.proxies {
		if p.ready {
			return p.writer
		}
	}
	return ""
}

// happen is one thing that happens by itself or by somebody.
func (w *walk) happen() {
	w.pass([]time.Duration{time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second,
		40 * time.Second}[min(w.chance.IntN(8), w.chance.IntN(8), 4)])
	w.goOn()
	p := w.proxies[w.chance.IntN(len(w.proxies))]
	switch w.chance.IntN(60) {
	case 0:
		w.backup = !w.backup
		w.note("backup %v", w.backup)
	case 1:
		w.revision++
		w.bad[w.revision] = w.chance.IntN(3) == 0
		w.note("template %d, bad %v", w.revision, w.bad[w.revision])
	case 2:
		if pod := w.pods[w.chance.IntN(w.replicas)]; pod != nil {
			pod.terminating, pod.ready = true, false
			w.note("a person deletes %s", pod.name)
		}
	case 3:
		p.silent = !p.silent
		w.note("%s silent %v", p.name, p.silent)
	case 4:
		p.ready = !p.ready
		w.note("%s ready %v", p.name, p.ready)
	case 5:
		w.note("%s begins again", p.name)
		p.order, p.barrier, p.busy = nil, "", 0
		p.roles, p.proofs, p.sees = map[string]time.Time{}, map[string]time.Time{}, map[string]bool{}
		w.refresh(p)
	case 6:
		if len(w.proxies) < 5 {
			w.addProxy()
		}
	case 7:
		p.byHand = !p.byHand
		w.note("%s order by hand %v", p.name, p.byHand)
	case 8:
		w.spec.Paused = !w.spec.Paused
		w.note("paused %v", w.spec.Paused)
	case 9:
		w.observed = !w.observed
	case 10:
		w.onDelete = !w.onDelete
	case 11:
		if w.chance.IntN(4) == 0 {
			w.anotherClock(time.Duration(w.chance.IntN(7200)-3600) * time.Second)
		}
	case 12:
		if pod := w.pods[w.chance.IntN(w.replicas)]; pod != nil {
			delete(p.sees, pod.uid)
			w.note("%s loses %s", p.name, pod.name)
			w.choose(p)
		}
	case 13:
		if pod := w.pods[w.chance.IntN(w.replicas)]; pod != nil {
			pod.ready = false
			w.note("%s is not ready", pod.name)
		}
	}
	// Trouble ends sooner than it begins, so that rolls get on.
	if w.chance.IntN(8) == 0 {
		p.silent, p.ready, p.byHand = false, true, false
		w.observed, w.onDelete, w.spec.Paused = true, true, false
		w.backup = w.backup && w.chance.IntN(3) > 0
	}
}

// anotherClock is an operator that begins again on a machine whose clock is off.
func (w *walk) anotherClock(skew time.Duration) {
	w.skew = skew
	w.started = w.now.Add(skew)
	w.note("the operator begins again, its clock off by %s", skew)
}

// goOn lets pods, proxies and sessions do what they do without anybody.
func (w *walk) goOn() {
	for ordinal := range w.replicas {
		pod := w.pods[ordinal]
		switch {
		case pod == nil:
			w.create(ordinal)
		case w.chance.IntN(3) > 0:
		case pod.terminating:
			delete(w.pods, ordinal)
		case !pod.isBad:
			pod.ready = true
		}
	}
	for _, p := range w.proxies {
		if w.chance.IntN(2) == 0 {
			w.refresh(p)
		}
		for _, pod := range w.pods {
			drained := p.order != nil && !p.order.drained[pod.name].IsZero()
			switch {
			case !p.sees[pod.uid]:
				p.sessions[pod.uid] = 0
			case !drained:
				p.sessions[pod.uid] = w.chance.IntN(3)
			case p.sessions[pod.uid] > 0 && w.chance.IntN(3) == 0:
				p.sessions[pod.uid]--
			}
			if p.sees[pod.uid] && w.chance.IntN(2) == 0 {
				p.proofs[pod.uid] = w.now
			}
			if p.holds() && p.order.wish.Writer == pod.name && w.chance.IntN(2) == 0 {
				p.barrier = pod.uid
			}
		}
		if p.holds() {
			p.busy = max(0, p.busy-1)
		} else {
			p.busy = w.chance.IntN(3)
		}
	}
}

// settle ends all trouble. Then the roll has to end, with nothing left behind.
func (w *walk) settle() {
	w.backup, w.observed, w.onDelete, w.spec.Paused = false, true, true, false
	w.revision++
	for _, p := range w.proxies {
		p.silent, p.ready, p.byHand = false, true, false
	}
	for range 3000 {
		w.pass(100 * time.Millisecond)
		w.goOn()
		w.turn()
		if w.failure != "" || w.isSettled() {
			return
		}
	}
	w.fail("the roll does not end")
}

func (w *walk) isSettled() bool {
	for ordinal := range w.replicas {
		if pod := w.pods[ordinal]; pod == nil || !pod.ready || pod.revision != w.revision {
			return false
		}
	}
	for _, p := range w.proxies {
		if p.order != nil || p.writer != "db-0" {
			return false
		}
	}
	return w.status.Roll == nil && w.status.Step.Name == Resting
}
