package policy

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/proxies"
)

// row is a change of a calm world, and what is to be done then.
type row struct {
	name   string
	change func(*Observation)
	want   Decision
}

// check runs a table. Of what is wanted, fields that are empty may be anything, but for the act, the wish
// and whether it stalls.
func check(t *testing.T, rows []row) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			o := calm(3, 3)
			row.change(&o)
			got := Decide(o)
			if got.Act != row.want.Act || got.Reason != row.want.Reason || !same(got.Wish, row.want.Wish) ||
				got.Stalled != row.want.Stalled {
				t.Errorf("%s %+v %s stalled=%v (%s)\nshould be %s %+v %s stalled=%v", got.Act, got.Wish, got.Reason,
					got.Stalled, got.Message, row.want.Act, row.want.Wish, row.want.Reason, row.want.Stalled)
			}
			if row.want.Pod.Name != "" && got.Pod.Name != row.want.Pod.Name {
				t.Errorf("it is about %s, not %s", got.Pod.Name, row.want.Pod.Name)
			}
			if row.want.Step != "" && got.Step != row.want.Step {
				t.Errorf("the step is %s, not %s", got.Step, row.want.Step)
			}
			if row.want.Failed != nil && (got.Failed == nil || got.Failed.Failed != row.want.Failed.Failed) {
				t.Errorf("failed moves: %v, not %v", got.Failed, row.want.Failed)
			}
			if row.want.Failed == nil && got.Failed != nil {
				t.Errorf("a move has failed: %v", got.Failed)
			}
			if got.Message == "" || got.Again == 0 {
				t.Errorf("no message or no next look: %+v", got)
			}
		})
	}
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// calm is a set at rest: all pods are new and serve in all proxies, which write to db-0.
func calm(replicas, count int) Observation {
	o := Observation{
		Now: noon, Started: noon.Add(-time.Hour), Generation: 1,
		Spec: v1alpha1.SmartUpdateSpec{
			StatefulSet: "db", Proxies: v1alpha1.Proxies{Service: "proxima", Pool: "db"},
			Limits: v1alpha1.Limits{Drain: "60s", Move: "5s", Moves: 3, Unschedulable: "120s", Pod: "2h"},
		},
		Status: v1alpha1.SmartUpdateStatus{ObservedGeneration: 1},
		Set:    &Set{UID: "set", Replicas: replicas, OnDelete: true, Observed: true, UpdateRevision: "new"},
	}
	for ordinal := range replicas {
		o.Pods = append(o.Pods, Pod{
			Name: fmt.Sprintf("db-%d", ordinal), UID: fmt.Sprintf("uid-%d", ordinal), Ordinal: ordinal,
			Revision: "new", Ready: true,
		})
	}
	for number := range count {
		answer := &proxies.Answer{Pool: "db", Writer: "db-0"}
		for _, pod := range o.Pods {
			age := int64(100)
			member := proxies.Member{
				Name: pod.Name, Pod: pod.Name, UID: pod.UID, Role: proxies.Reader, RoleMS: 60_000, Online: true,
				Sessions: 2, Barrier: proxies.Passed, BarrierMS: &age, Version: "11.8.3-MariaDB",
			}
			if pod.Name == "db-0" {
				member.Role = proxies.Writer
			}
			answer.Members = append(answer.Members, member)
		}
		o.Proxies = append(o.Proxies, Proxy{Pod: fmt.Sprintf("proxima-%d", number), Ready: true, Answer: answer})
	}
	return o
}

// outdate makes pods old.
func outdate(o *Observation, ordinals ...int) {
	for _, ordinal := range ordinals {
		o.Pods[ordinal].Revision = "old"
	}
}

func drainOf(pod string) proxies.Wish { return proxies.Wish{Drain: []string{pod}} }

// order gives an order to all proxies.
func order(o *Observation, wish proxies.Wish) {
	for index := range o.Proxies {
		orderOne(o, index, wish)
	}
}

func orderOne(o *Observation, index int, wish proxies.Wish) {
	answer := o.Proxies[index].Answer
	answer.Order = &proxies.Order{Name: "ns-db", Wish: wish, EndsInMS: 29_000}
	if wish.Hold {
		held := int64(20)
		answer.HeldMS = &held
	}
	for _, pod := range wish.Drain {
		for number := range answer.Members {
			if answer.Members[number].Pod == pod {
				answer.Members[number].Drains = true
			}
		}
	}
}

// member changes a pod in one proxy.
func member(o *Observation, proxy, ordinal int, change func(*proxies.Member)) {
	change(&o.Proxies[proxy].Answer.Members[ordinal])
}

// everywhere changes a pod in all proxies.
func everywhere(o *Observation, ordinal int, change func(*proxies.Member)) {
	for index := range o.Proxies {
		member(o, index, ordinal, change)
	}
}

func offline(m *proxies.Member) {
	m.Online, m.Role, m.Sessions, m.Why = false, proxies.Out, 0, "connection refused"
}

func noSessions(m *proxies.Member) { m.Sessions = 0 }

// writes makes a pod the writer of all proxies.
func writes(o *Observation, ordinal int) {
	for index := range o.Proxies {
		writesAt(o, index, ordinal)
	}
}

func writesAt(o *Observation, proxy, ordinal int) {
	answer := o.Proxies[proxy].Answer
	for index := range answer.Members {
		if answer.Members[index].Role == proxies.Writer {
			answer.Members[index].Role = proxies.Reader
		}
	}
	answer.Writer = answer.Members[ordinal].Pod
	answer.Members[ordinal].Role = proxies.Writer
}

func rolls(o *Observation, choice string) {
	began := metav1.NewTime(noon.Add(-time.Minute))
	o.Status.Roll = &v1alpha1.Roll{Began: began, Revision: "new", Writer: choice}
}

func stepped(o *Observation, name, pod string, ago time.Duration) {
	o.Status.Step = &v1alpha1.Step{Name: name, Pod: pod, Since: metav1.NewTime(noon.Add(-ago))}
}

func quiet(o *Observation) {
	for index := range o.Proxies {
		o.Proxies[index].Answer.Quiet = true
	}
}
