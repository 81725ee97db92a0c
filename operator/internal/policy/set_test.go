package policy

import "testing"

func TestOnlyASetThatIsLeftToTheOperatorIsRolled(t *testing.T) {
	check(t, []row{
		{"all is up to date", func(*Observation) {}, Decision{Act: Nothing, Reason: "UpToDate", Step: Resting}},
		{"an older object acts", func(o *Observation) {
			outdate(o, 2)
			o.Older = "first"
		}, Decision{Act: Nothing, Reason: "AnotherActs", Stalled: true}},
		{"no set", func(o *Observation) { o.Set = nil },
			Decision{Act: Nothing, Reason: "NoStatefulSet", Stalled: true}},
		{"the set is deleted", func(o *Observation) {
			outdate(o, 2)
			o.Set.Deleted = true
		}, Decision{Act: Nothing, Reason: "StatefulSetEnds"}},
		{"rolling update", func(o *Observation) {
			outdate(o, 2)
			o.Set.OnDelete = false
		}, Decision{Act: Nothing, Reason: "NotOnDelete", Stalled: true}},
		{"not observed", func(o *Observation) {
			outdate(o, 2)
			o.Set.Observed = false
		}, Decision{Act: Nothing, Reason: "NotObserved"}},
		{"no replicas", func(o *Observation) { o.Set.Replicas = 0 }, Decision{Act: Nothing, Reason: "NoReplicas"}},
	})
}
