package policy

import (
	"testing"

	"proxima.io/operator/internal/proxies"
)

func TestAGuardStopsTheNextAct(t *testing.T) {
	backup := func(o *Observation) { o.Backups = []Backup{{Name: "nightly", Since: noon}} }
	drained := proxies.Wish{Drain: []string{"db-2"}}
	check(t, []row{
		{"backup before a drain", func(o *Observation) {
			outdate(o, 2)
			backup(o)
		}, Decision{Act: Nothing, Reason: "BackupRuns"}},
		{"backup before the eviction: the member serves again", func(o *Observation) {
			outdate(o, 2)
			backup(o)
			order(o, drained)
			everywhere(o, 2, noSessions)
		}, Decision{Act: End, Reason: "BackupRuns"}},
		{"backup after the eviction: the pod is finished", func(o *Observation) {
			outdate(o, 1)
			backup(o)
			order(o, drained)
			everywhere(o, 2, offline)
		}, Decision{Act: End, Reason: "PodNotOnline"}},
		{"backup beside a broken pod", func(o *Observation) {
			outdate(o, 2)
			backup(o)
			o.Pods[2].Ready = false
			everywhere(o, 2, offline)
		}, Decision{Act: Nothing, Reason: "BackupRuns"}},
		{"backup before the writer's turn", func(o *Observation) {
			outdate(o, 0)
			backup(o)
		}, Decision{Act: Nothing, Reason: "BackupRuns"}},
		{"backup in the midst of a move, which ends", func(o *Observation) {
			outdate(o, 0)
			backup(o)
			order(o, proxies.Wish{Hold: true})
			quiet(o)
		}, Decision{Act: Give, Reason: "WriterMoves", Wish: proxies.Wish{Hold: true, Writer: "db-1"}}},
		{"backups unknown", func(o *Observation) {
			outdate(o, 2)
			o.BackupsUnknown = "forbidden"
		}, Decision{Act: Nothing, Reason: "BackupsUnknown"}},
		{"two replicas", func(o *Observation) {
			*o = calm(2, 2)
			outdate(o, 1)
		}, Decision{Act: Nothing, Reason: "TooSmall", Stalled: true}},
		{"two replicas, allowed", func(o *Observation) {
			*o = calm(2, 2)
			o.Spec.AllowSmall = true
			outdate(o, 1)
		}, Decision{Act: Give, Reason: "Draining", Wish: proxies.Wish{Drain: []string{"db-1"}}}},
		{"one replica, allowed", func(o *Observation) {
			*o = calm(1, 2)
			o.Spec.AllowSmall = true
			outdate(o, 0)
		}, Decision{Act: Nothing, Reason: "TooSmall", Stalled: true}},
		{"two replicas, one broken", func(o *Observation) {
			*o = calm(2, 2)
			outdate(o, 1)
			o.Pods[1].Ready = false
			everywhere(o, 1, offline)
		}, Decision{Act: Evict, Reason: "Broken", Pod: Pod{Name: "db-1"}}},
	})
}
