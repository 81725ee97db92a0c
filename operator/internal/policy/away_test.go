package policy

import (
	"testing"
	"time"

	"proxima.io/operator/internal/proxies"
)

func TestWhileOnePodIsAwayNoOtherGoes(t *testing.T) {
	drained := proxies.Wish{Drain: []string{"db-2"}}
	evicted := func(o *Observation) {
		outdate(o, 0, 1)
		order(o, drained)
		stepped(o, AwaitingPod, "db-2", time.Minute)
	}
	check(t, []row{
		{"it ends", func(o *Observation) {
			evicted(o)
			o.Pods[2].Terminating = true
		}, Decision{Act: Nothing, Reason: "PodEnds", Wish: drained}},
		{"it is missing", func(o *Observation) {
			evicted(o)
			o.Pods = o.Pods[:2]
		}, Decision{Act: End, Reason: "PodMissing"}},
		{"it is not ready", func(o *Observation) {
			evicted(o)
			o.Pods[2].Ready = false
		}, Decision{Act: End, Reason: "PodNotOnline"}},
		{"one proxy does not use it", func(o *Observation) {
			evicted(o)
			member(o, 1, 2, offline)
		}, Decision{Act: End, Reason: "PodNotOnline"}},
		{"one proxy knows the pod before it", func(o *Observation) {
			evicted(o)
			member(o, 1, 2, func(m *proxies.Member) { m.UID = "uid-before" })
		}, Decision{Act: End, Reason: "PodNotOnline"}},
		{"one proxy has seen no barrier", func(o *Observation) {
			evicted(o)
			member(o, 1, 2, func(m *proxies.Member) { m.Barrier, m.BarrierMS = "running", nil })
		}, Decision{Act: End, Reason: "PodNotOnline"}},
		{"one proxy has seen a barrier before its role", func(o *Observation) {
			evicted(o)
			member(o, 1, 2, func(m *proxies.Member) { m.RoleMS = 50 })
		}, Decision{Act: End, Reason: "PodNotOnline"}},
		{"it is finished", evicted,
			Decision{Act: Give, Reason: "Draining", Wish: drainOf("db-1"), Pod: Pod{Name: "db-1"}}},
		{"its image is not there", func(o *Observation) {
			evicted(o)
			o.Pods[2].Ready, o.Pods[2].Failure = false, "server: ErrImagePull: no such image"
		}, Decision{Act: End, Reason: "PodFails", Stalled: true}},
		{"no node takes it, for a minute", func(o *Observation) {
			evicted(o)
			o.Pods[2].Ready, o.Pods[2].Unschedulable = false, noon.Add(-time.Minute)
		}, Decision{Act: End, Reason: "PodNotOnline"}},
		{"no node takes it, for three minutes", func(o *Observation) {
			evicted(o)
			o.Pods[2].Ready, o.Pods[2].Unschedulable = false, noon.Add(-3*time.Minute)
		}, Decision{Act: End, Reason: "PodUnschedulable", Stalled: true}},
		{"it is late", func(o *Observation) {
			evicted(o)
			member(o, 1, 2, offline)
			stepped(o, AwaitingPod, "db-2", 3*time.Hour)
		}, Decision{Act: End, Reason: "PodLate", Stalled: true}},
		{"a person deletes another one: the drained one serves again", func(o *Observation) {
			outdate(o, 0, 1, 2)
			order(o, drained)
			o.Pods[1].Terminating = true
		}, Decision{Act: End, Reason: "PodEnds"}},
		{"an old one is not online everywhere", func(o *Observation) {
			outdate(o, 0, 1, 2)
			member(o, 0, 1, offline)
		}, Decision{Act: Nothing, Reason: "MemberOffline"}},
		{"the set grows", func(o *Observation) {
			outdate(o, 0, 1, 2)
			o.Set.Replicas = 5
		}, Decision{Act: Nothing, Reason: "PodMissing"}},
		{"the set shrinks", func(o *Observation) {
			*o = calm(4, 3)
			outdate(o, 0, 1, 2, 3)
			o.Set.Replicas = 3
		}, Decision{Act: Nothing, Reason: "Scales"}},
	})
}
