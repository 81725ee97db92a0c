package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/policy"
)

// labels name the object.
var labels = []string{"namespace", "name"}

// What operators watch. Each is labelled by the object.
var (
	rolls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "proxima_operator_rolls_total", Help: "Rolls by outcome: completed, stalled.",
	}, append(labels, "outcome"))
	steps = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "proxima_operator_step_seconds", Help: "How long a step of a roll took.",
		Buckets: prometheus.ExponentialBuckets(0.1, 3, 10),
	}, append(labels, "step"))
	holds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "proxima_operator_hold_seconds", Help: "How long writes waited while the writer moved.",
		Buckets: prometheus.ExponentialBuckets(0.005, 2, 11),
	}, labels)
	membersOnline = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "proxima_operator_members_online", Help: "Members that are online in every ready proxy.",
	}, labels)
	failedOrders = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "proxima_operator_failed_orders_total", Help: "Orders that a proxy did not take.",
	}, append(labels, "proxy"))
	lastCheck = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "proxima_operator_last_check_timestamp_seconds", Help: "When a version was last asked for.",
	}, labels)
	updateAvailable = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "proxima_operator_update_available", Help: "1: there is a newer version than the one that runs.",
	}, labels)
)

func init() {
	metrics.Registry.MustRegister(rolls, steps, holds, membersOnline, failedOrders, lastCheck, updateAvailable)
}

// tell tells events, and counts what they say.
func (r *Reconciler) tell(object *v1alpha1.SmartUpdate, seen *seen, told []policy.Event) {
	namespace, name := object.Namespace, object.Name
	if len(seen.Proxies) > 0 {
		membersOnline.WithLabelValues(namespace, name).Set(float64(policy.OnlineEverywhere(seen.Observation)))
	}
	for _, event := range told {
		kind := core.EventTypeNormal
		if event.Warning {
			kind = core.EventTypeWarning
		}
		r.Events.Eventf(object, nil, kind, event.Reason, "Roll", "%s", event.Message)
		switch event.Reason {
		case "WriterMoved":
			holds.WithLabelValues(namespace, name).Observe(event.Held.Seconds())
		case "RollEnded":
			rolls.WithLabelValues(namespace, name, "completed").Inc()
		case "Stalled":
			rolls.WithLabelValues(namespace, name, "stalled").Inc()
		}
	}
}

// showStep counts a step that has ended.
func showStep(object *v1alpha1.SmartUpdate, after *v1alpha1.Step, now time.Time) {
	was := object.Status.Step
	if was == nil || was.Name == policy.Resting || was.Name == after.Name && was.Pod == after.Pod {
		return
	}
	steps.WithLabelValues(object.Namespace, object.Name, was.Name).Observe(now.Sub(was.Since.Time).Seconds())
}

func showCheck(object *v1alpha1.SmartUpdate, status *v1alpha1.SmartUpdateStatus) {
	if status.Versions.LastCheck != nil {
		lastCheck.WithLabelValues(object.Namespace, object.Name).Set(float64(status.Versions.LastCheck.Unix()))
	}
	available := 0.0
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.UpdateAvailable) {
		available = 1
	}
	updateAvailable.WithLabelValues(object.Namespace, object.Name).Set(available)
}

func forgetMetrics(name types.NamespacedName) {
	match := prometheus.Labels{"namespace": name.Namespace, "name": name.Name}
	for _, vector := range []interface{ DeletePartialMatch(prometheus.Labels) int }{
		rolls, steps, holds, membersOnline, failedOrders, lastCheck, updateAvailable,
	} {
		vector.DeletePartialMatch(match)
	}
}
