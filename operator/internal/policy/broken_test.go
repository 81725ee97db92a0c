package policy

import (
	"testing"
	"time"

	"proxima.io/operator/internal/proxies"
)

func TestOutdatedPodsThatServeNobodyGoFirst(t *testing.T) {
	fails := func(o *Observation, ordinal int) {
		outdate(o, ordinal)
		o.Pods[ordinal].Ready, o.Pods[ordinal].Failure = false, "server: ImagePullBackOff: no such image"
		everywhere(o, ordinal, offline)
	}
	check(t, []row{
		{"one that is not ready", func(o *Observation) {
			outdate(o, 0, 1, 2)
			o.Pods[1].Ready = false
			everywhere(o, 1, offline)
		}, Decision{Act: Evict, Reason: "Broken", Pod: Pod{Name: "db-1"}, Step: Evicting}},
		{"not ready, but used by a proxy", func(o *Observation) {
			outdate(o, 1)
			o.Pods[1].Ready = false
			member(o, 0, 1, offline)
		}, Decision{Act: Nothing, Reason: "MemberOffline"}},
		{"not ready, but with a session", func(o *Observation) {
			outdate(o, 1)
			o.Pods[1].Ready = false
			everywhere(o, 1, offline)
			member(o, 0, 1, func(m *proxies.Member) { m.Sessions = 1 })
		}, Decision{Act: Nothing, Reason: "MemberOffline"}},
		{"not ready while another one is away", func(o *Observation) {
			outdate(o, 1)
			o.Pods[1].Ready = false
			everywhere(o, 1, offline)
			everywhere(o, 2, offline)
		}, Decision{Act: Nothing, Reason: "PodNotOnline"}},
		{"two that cannot run", func(o *Observation) {
			fails(o, 1)
			fails(o, 2)
		}, Decision{Act: Evict, Reason: "Broken", Pod: Pod{Name: "db-2"}}},
		{"one that cannot run, while its neighbour is not there", func(o *Observation) {
			fails(o, 1)
			o.Pods = o.Pods[:2]
		}, Decision{Act: Evict, Reason: "Broken", Pod: Pod{Name: "db-1"}}},
		{"all three, and no writer", func(o *Observation) {
			for ordinal := range 3 {
				fails(o, ordinal)
			}
			for index := range o.Proxies {
				o.Proxies[index].Answer.Writer = ""
			}
		}, Decision{Act: Evict, Reason: "Broken", Pod: Pod{Name: "db-2"}}},
		{"one that no node takes", func(o *Observation) {
			fails(o, 1)
			o.Pods[1].Failure, o.Pods[1].Unschedulable = "", noon.Add(-time.Second)
			everywhere(o, 2, offline)
		}, Decision{Act: Evict, Reason: "Broken", Pod: Pod{Name: "db-1"}}},
	})
}
