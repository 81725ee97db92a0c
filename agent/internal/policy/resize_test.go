package policy

import "testing"

// What a container gives up is nobody's until the runtime has taken the resize: refused, it still runs on it.
func TestAResizeGivesNothingAwayBeforeItIsTaken(t *testing.T) {
	p := New(shaped(t, "cores=8"), pinned)
	before, _ := fill(p, burstable("sharer", 100, 0), guaranteed("a", 4000))
	s, d := p.Resize(before, guaranteed("a", 2000))
	want(t, "a", d.Pin.CPUs.String(), "0-1")
	want(t, "the sharer, meanwhile", p.PinOf(s, "sharer").CPUs.String(), "4-7")
	s, d = p.Resize(s, guaranteed("a", 1000)) // once more before the first was taken
	want(t, "a", d.Pin.CPUs.String(), "0")
	s, d = p.Place(s, guaranteed("b", 3000))
	want(t, "b", d.Pin.CPUs.String(), "4-6")

	undone := p.Undo(s, before.Placed["a"])
	want(t, "a, refused", p.PinOf(undone, "a").CPUs.String(), "0-3")
	want(t, "the sharer, refused", p.PinOf(undone, "sharer").CPUs.String(), "7")
	settled := p.Settle(s, "a")
	want(t, "a, taken", p.PinOf(settled, "a").CPUs.String(), "0")
	want(t, "the sharer, taken", p.PinOf(settled, "sharer").CPUs.String(), "1-3,7")
	for _, s := range []State{s, undone, settled} {
		check(t, p, s)
	}
}

func TestAResizeTakenIsTriedForWhoGotLess(t *testing.T) {
	p := New(shaped(t, "cores=8"), pinned)
	s, _ := fill(p, guaranteed("a", 6000), guaranteed("waits", 4000))
	s, _ = p.Resize(s, guaranteed("a", 2000))
	s = p.Settle(s, "a")
	want(t, "waits", p.PinOf(s, "waits").CPUs.String(), "2-5")
}

// Where others have come to the shared CPUs meanwhile, who is put back is placed anew, and keeps his turn.
func TestAnUndoneResizeNeverPromisesTwice(t *testing.T) {
	p := New(shaped(t, "cores=4"), pinned)
	before, _ := fill(p, burstable("a", 3000, 0))
	s, _ := p.Resize(before, burstable("a", 1000, 0))
	s, _ = p.Place(s, burstable("b", 3000, 0))
	s = p.Undo(s, before.Placed["a"])
	check(t, p, s)
	if a := s.Placed["a"]; a.Short == "" || a.Request != 3000 || a.Order != 0 {
		t.Errorf("%+v", a)
	}
}
