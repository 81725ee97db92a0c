package engine

import (
	"strings"
	"testing"
	"time"

	"proxima.io/agent/internal/config"
)

func ofPod(name string, annotations map[string]string) Arrival {
	a := arrival("id-"+name, "Burstable", 100)
	a.Name, a.PodID, a.PodName, a.Annotations = name, "pod", "pod", annotations
	return a
}

// What is written for a container that a pod does not have is said when the pod is complete, once, and taken
// back if the container comes after all.
func TestContainersThatAPodDoesNotHave(t *testing.T) {
	e, _ := start(t, "cores=4", Settings{Options: config.Default()})
	annotations := map[string]string{"proxima.io/cpus.redsi": "shared", "proxima.io/cores.redis": "threads"}
	said := func(when string, want ...string) {
		t.Helper()
		for _, seat := range e.Status().Seats {
			if len(seat.Findings) != len(want) {
				t.Errorf("%s: %s has %v, want %d", when, seat.Name, seat.Findings, len(want))
				continue
			}
			for i, f := range seat.Findings {
				if !strings.Contains(f.String(), want[i]) {
					t.Errorf("%s: %v, want %q", when, f, want[i])
				}
			}
		}
	}
	later := func() {
		if _, again := e.sayMissing(time.Now().Add(2 * allHere)); again {
			t.Error("it looks again at a pod that is complete")
		}
	}
	e.Create(ofPod("wait", annotations))
	if next, again := e.sayMissing(time.Now()); !again || next > allHere {
		t.Errorf("it does not look again in time: %s, %t", next, again)
	}
	said("others may come")
	later()
	said("no others came", "no container redis", "no container redsi")
	e.Create(ofPod("redis", annotations))
	said("redis has come")
	later()
	said("that was all", "redsi; did you mean redis?")
	if n := e.Status().Counters.Annotations[0]; n != 3 {
		t.Errorf("%d counted", n)
	}
	known := []Arrival{ofPod("redis", annotations)}
	e.Synchronize(known, map[string][]string{"pod": {"wait", "redis"}})
	later()
	said("said already", "redsi; did you mean redis?")
	if n := e.Status().Counters.Annotations[0]; n != 3 {
		t.Errorf("%d counted, the last one twice", n)
	}
	// Started again, the agent hears of the ended ones too.
	again, _ := start(t, "cores=4", Settings{Options: config.Default()})
	again.Synchronize(known, map[string][]string{"pod": {"redsi", "redis"}})
	if _, left := again.sayMissing(time.Now().Add(2 * allHere)); left || len(again.Status().Seats[0].Findings) != 0 {
		t.Errorf("the ended one is missing: %v", again.Status().Seats[0].Findings)
	}
	e.DropPod("pod")
	if len(e.missing) != 0 {
		t.Error("the pod is gone, and remembered")
	}
}

// Containers come one after the other, and each with the annotations of its pod: who came before is not
// missing.
func TestAContainerThatCameBeforeTheOthersIsNotMissing(t *testing.T) {
	e, _ := start(t, "cores=4", Settings{})
	annotations := map[string]string{"proxima.io/cpus.first": "shared"}
	e.Create(ofPod("first", annotations))
	e.Create(ofPod("second", annotations))
	e.Stop("id-first")
	e.Create(ofPod("third", annotations))
	if _, again := e.sayMissing(time.Now().Add(2 * allHere)); again {
		t.Error("it looks again although none is missing")
	}
	for _, seat := range e.Status().Seats {
		if len(seat.Findings) > 0 {
			t.Errorf("%s: %v", seat.Name, seat.Findings)
		}
	}
	e.DropPod("pod")
	if len(e.missing) != 0 {
		t.Error("the pod is gone, and remembered")
	}
}

// A connection that is made anew says nothing that was said before.
func TestFindingsAreCountedOnce(t *testing.T) {
	e, _ := start(t, "cores=4", Settings{Options: config.Default()})
	a := ofPod("a", map[string]string{"proxima.io/naer": "app=x"})
	e.Create(a)
	e.Synchronize([]Arrival{a}, map[string][]string{"pod": {"a"}})
	if s := e.Status(); s.Counters.Annotations[0] != 1 || len(s.Seats[0].Findings) != 1 {
		t.Errorf("%+v, %v", s.Counters, s.Seats[0].Findings)
	}
}
