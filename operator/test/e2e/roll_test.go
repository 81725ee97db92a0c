package e2e

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/proxies"
)

func nothing(*v1alpha1.SmartUpdateSpec) {}

func TestARollReplacesReadersFirstAndTheWriterLast(t *testing.T) {
	c := begin(t)
	c.smartUpdate(nothing)
	c.start()
	c.untilReason("UpToDate")
	c.lock.Lock()
	c.seenFirst = true
	c.lock.Unlock()
	c.image("mariadb:11.8.3")
	c.until("it is rolled", func() bool { return c.rolled("mariadb:11.8.3") })

	if order := c.gone(); !slices.Equal(order, []string{"db-2", "db-1", "db-0"}) {
		t.Errorf("pods went in the order %v", order)
	}
	want := []string{
		`{"drain":["db-2"]}`, "end", `{"drain":["db-1"]}`, "end",
		`{"hold":true}`, `{"hold":true,"writer":"db-1"}`, `{"writer":"db-1"}`, `{"drain":["db-0"],"writer":"db-1"}`, `{"writer":"db-1"}`,
		`{"hold":true,"writer":"db-1"}`, `{"hold":true,"writer":"db-0"}`, `{"writer":"db-0"}`, "end",
	}
	c.fleet.lock.Lock()
	history := slices.Clone(c.fleet.history)
	c.fleet.lock.Unlock()
	if !slices.Equal(history, want) {
		t.Errorf("proxies were told\n%s\nnot\n%s", strings.Join(history, "\n"), strings.Join(want, "\n"))
	}
	status := c.seen().Status
	if status.Writer != "db-0" || len(status.Members) != 3 || status.Members[2].Online != "3/3" ||
		status.Versions.Running != "11.8.3-MariaDB" {
		t.Errorf("%+v", status)
	}
	c.until("events tell each step", func() bool {
		reasons := c.reasonsOfEvents()
		for _, reason := range []string{"RollBegan", "Drained", "Evicted", "Online", "WriterMoved", "RollEnded"} {
			if !slices.Contains(reasons, reason) {
				return false
			}
		}
		return true
	})
	c.showsMetrics(
		`rolls_total{name="db",namespace="NS",outcome="completed"} 1`,
		`hold_seconds_count{name="db",namespace="NS"} 2`,
		`members_online{name="db",namespace="NS"} 3`,
		`step_seconds_count{name="db",namespace="NS",step="AwaitingPod"} 3`,
	)
	if hold := status.LastRoll.LongestHoldMS; hold > 1000 {
		t.Errorf("writes waited %d ms", hold)
	}
	t.Logf("longest hold: %d ms", status.LastRoll.LongestHoldMS)
}

// showsMetrics asks for the operator's own metrics. NS stands for the namespace.
func (c *cluster) showsMetrics(lines ...string) {
	c.t.Helper()
	reply, err := http.Get("http://" + c.metrics + "/metrics")
	if err != nil {
		c.t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, line := range lines {
		line = "\nproxima_operator_" + strings.ReplaceAll(line, "NS", c.namespace) + "\n"
		if !strings.Contains(string(text), line) {
			c.t.Errorf("metrics lack %q", line)
		}
	}
}

func TestAtRestThereIsOneRequestInTenSecondsAndNoWrite(t *testing.T) {
	c := begin(t)
	c.smartUpdate(nothing)
	c.start()
	c.untilReason("UpToDate")
	before := c.seen().ResourceVersion
	count := func() (requests int) {
		c.fleet.lock.Lock()
		defer c.fleet.lock.Unlock()
		for _, p := range c.fleet.proxies {
			requests = max(requests, p.requests)
		}
		return requests
	}
	began, first := time.Now(), count()
	c.until("two turns are over", func() bool { return count() >= first+2 })
	if took := time.Since(began); took < 10*time.Second {
		t.Errorf("two turns at rest within %s", took)
	}
	if c.seen().ResourceVersion != before {
		t.Error("the object was written at rest")
	}
}

func TestAProxyThatComesInARollGetsTheOrders(t *testing.T) {
	c := begin(t)
	for _, p := range c.fleet.proxies {
		p.pinned = true
	}
	c.smartUpdate(nothing)
	c.start()
	c.untilReason("UpToDate")
	c.image("mariadb:11.8.3")
	c.untilReason("Draining")
	late := c.addProxy(3)
	c.until("it drains, too", func() bool {
		c.fleet.lock.Lock()
		defer c.fleet.lock.Unlock()
		return late.order != nil && slices.Contains(late.order.wish.Drain, "db-2")
	})
	c.fleet.lock.Lock()
	for _, p := range c.fleet.proxies {
		p.pinned = false
	}
	c.fleet.lock.Unlock()
	c.until("it is rolled", func() bool { return c.rolled("mariadb:11.8.3") })
}

func TestABrokenUpdateIsMendedByTheNextOne(t *testing.T) {
	c := begin(t)
	c.smartUpdate(nothing)
	c.start()
	c.untilReason("UpToDate")
	c.lock.Lock()
	c.failing = c.image("mariadb:no-such")
	c.lock.Unlock()
	c.untilReason("PodFails")
	for _, condition := range c.seen().Status.Conditions {
		says := strings.Contains(condition.Message, "ImagePullBackOff: no such image")
		if condition.Type == v1alpha1.Stalled && (condition.Status != metav1.ConditionTrue || !says) {
			t.Errorf("%+v", condition)
		}
	}
	if gone := c.gone(); len(gone) != 1 {
		t.Errorf("more than one pod went: %v", gone)
	}
	c.image("mariadb:11.8.3")
	c.until("it is rolled", func() bool { return c.rolled("mariadb:11.8.3") })
}

func TestASessionThatPinsTheWriterIsNamedAndWritesGoOn(t *testing.T) {
	c := begin(t)
	c.smartUpdate(func(spec *v1alpha1.SmartUpdateSpec) { spec.Limits.Move = "300ms" })
	c.fleet.proxies[1].busy = true
	c.start()
	c.untilReason("UpToDate")
	c.image("mariadb:11.8.3")
	c.untilReason("SessionsPinned")
	roll := c.seen().Status.Roll
	if roll == nil || roll.Moves == nil || !strings.Contains(roll.Moves.Message, "proxima-1") {
		t.Errorf("%+v", roll)
	}
	c.fleet.lock.Lock()
	for _, p := range c.fleet.proxies {
		if p.order != nil && p.order.wish.Hold {
			t.Errorf("%s still holds writes", p.name)
		}
	}
	c.fleet.proxies[1].busy = false
	c.fleet.lock.Unlock()
	c.until("it is rolled", func() bool { return c.rolled("mariadb:11.8.3") })
}

func TestARollWaitsForABackup(t *testing.T) {
	c := begin(t)
	backup := map[string]string{"app": "backup"}
	job := &batch.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "nightly", Labels: backup},
		Spec: batch.JobSpec{Template: core.PodTemplateSpec{Spec: core.PodSpec{
			RestartPolicy: core.RestartPolicyNever, Containers: []core.Container{{Name: "dump", Image: "dump"}},
		}}},
	}
	c.make(job)
	running := func(active int32) {
		if job.Status.Active = active; job.Status.StartTime == nil {
			now := metav1.Now()
			job.Status.StartTime = &now
		}
		if err := c.Status().Update(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	running(1)
	c.smartUpdate(func(spec *v1alpha1.SmartUpdateSpec) {
		labels := map[string]v1alpha1.LabelValue{"app": "backup"}
		spec.Backups = []v1alpha1.Backup{{Jobs: &v1alpha1.JobSelector{MatchLabels: labels}}}
	})
	c.start()
	c.untilReason("UpToDate")
	c.image("mariadb:11.8.3")
	c.untilReason("BackupRuns")
	if gone := c.gone(); len(gone) > 0 {
		t.Errorf("%v went during a backup", gone)
	}
	running(0)
	c.until("it is rolled", func() bool { return c.rolled("mariadb:11.8.3") })
}

func TestADisruptionBudgetHolds(t *testing.T) {
	c := begin(t)
	most := intstr.FromInt32(1)
	budget := &policy.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "db"},
		Spec: policy.PodDisruptionBudgetSpec{
			MaxUnavailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
		},
	}
	c.make(budget)
	allow := func(disruptions int32) {
		budget.Status = policy.PodDisruptionBudgetStatus{
			ObservedGeneration: budget.Generation, DisruptionsAllowed: disruptions, CurrentHealthy: 3,
			DesiredHealthy: 2, ExpectedPods: 3,
		}
		if err := c.Status().Update(t.Context(), budget); err != nil {
			t.Fatal(err)
		}
	}
	allow(0)
	c.smartUpdate(nothing)
	c.start()
	c.untilReason("UpToDate")
	c.image("mariadb:11.8.3")
	c.untilReason("Refused")
	if gone := c.gone(); len(gone) > 0 {
		t.Errorf("%v went against the budget", gone)
	}
	allow(3)
	c.until("it is rolled", func() bool { return c.rolled("mariadb:11.8.3") })
}

func TestAPausedObjectShowsTheNextAct(t *testing.T) {
	c := begin(t)
	c.smartUpdate(func(spec *v1alpha1.SmartUpdateSpec) { spec.Paused = true })
	c.image("mariadb:11.8.3")
	c.start()
	c.untilReason("Paused")
	if message := c.message(); !strings.Contains(message, "order all proxies to drain db-2") {
		t.Error(message)
	}
	c.fleet.lock.Lock()
	defer c.fleet.lock.Unlock()
	if len(c.fleet.history) > 0 || len(c.evicted) > 0 {
		t.Errorf("something was done: %v %v", c.fleet.history, c.evicted)
	}
}

func TestOfTwoObjectsForASetTheOlderActs(t *testing.T) {
	c := begin(t)
	c.smartUpdate(nothing)
	second := &v1alpha1.SmartUpdate{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "second"}, Spec: c.object.Spec,
	}
	c.make(second)
	c.start()
	c.untilReason("UpToDate")
	c.until("the second one says who acts", func() bool {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(second), second); err != nil {
			t.Fatal(err)
		}
		return second.Status.Step != nil && strings.Contains(second.Status.Step.Message, "SmartUpdate db is for")
	})
}

func TestWhatAPersonHasOrderedIsWaitedFor(t *testing.T) {
	c := begin(t)
	c.smartUpdate(nothing)
	c.fleet.proxies[2].byHand = []proxies.ByHand{{Order: "drain", Member: "db-1"}}
	c.image("mariadb:11.8.3")
	c.start()
	c.untilReason("OrderedByHand")
	c.fleet.lock.Lock()
	c.fleet.proxies[2].byHand = nil
	c.fleet.lock.Unlock()
	c.until("it is rolled", func() bool { return c.rolled("mariadb:11.8.3") })
}

func TestAnOperatorThatIsKilledAtEachStepEndsTheRoll(t *testing.T) {
	c := begin(t)
	c.smartUpdate(nothing)
	c.start()
	c.untilReason("UpToDate")
	kills := map[string]bool{}
	c.fleet.onOrder = func(p *proxy, order string) {
		// The first proxy that is told something new is the last one that this operator tells.
		key := order
		if len(c.fleet.history) > 9 {
			key = "back: " + order
		}
		if p == c.fleet.proxies[0] && !kills[key] {
			kills[key] = true
			_ = c.operator.Process.Kill()
		}
	}
	c.image("mariadb:11.8.3")
	seen := 0
	c.until("it is rolled", func() bool {
		c.fleet.lock.Lock()
		count := len(kills)
		c.fleet.lock.Unlock()
		if count > seen {
			seen = count
			_ = c.operator.Wait()
			c.start()
		}
		return c.rolled("mariadb:11.8.3")
	})
	gone := c.gone()
	slices.Sort(gone)
	if !slices.Equal(gone, []string{"db-0", "db-1", "db-2"}) {
		t.Errorf("pods that went: %v", gone)
	}
	if seen < 8 {
		t.Errorf("only %d kills: %v", seen, kills)
	}
	t.Logf("%d kills", seen)
}
