package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/policy"
	"proxima.io/operator/internal/proxies"
)

// evictLimit bounds one call for an eviction.
const evictLimit = 5 * time.Second

// order gives the wish to the proxies, or ends the order there. It returns whether all have taken it, and
// what some say against it.
func (r *Reconciler) order(
	ctx context.Context, object *v1alpha1.SmartUpdate, seen *seen, decision policy.Decision,
) (taken bool, refusal *policy.Refusal) {
	var to []proxies.Endpoint
	for _, endpoint := range seen.endpoints {
		if slices.Contains(decision.To, endpoint.Pod) {
			to = append(to, endpoint)
		}
	}
	var replies []proxies.Reply
	if decision.Act == policy.End {
		replies = r.Proxies.End(ctx, seen.target, to)
	} else {
		replies = r.Proxies.Give(ctx, seen.target, to, decision.Wish, policy.OrderLife)
	}
	taken = true
	var refusals []string
	for _, reply := range replies {
		if reply.Err == nil {
			continue
		}
		taken = false
		failedOrders.WithLabelValues(object.Namespace, object.Name, reply.Endpoint.Pod).Inc()
		log.FromContext(ctx).Info("an order has failed", "proxy", reply.Endpoint.Pod, "reason", reply.Err.Error())
		if reply.Err.Status != 0 {
			refusals = append(refusals, fmt.Sprintf("proxy %s: %s", reply.Endpoint.Pod, reply.Err))
		}
	}
	if len(refusals) == 0 {
		return taken, nil
	}
	return false, &policy.Refusal{Text: strings.Join(refusals, "; ")}
}

// evict evicts this very pod. Budgets hold. One that is gone already is no error.
func (r *Reconciler) evict(
	ctx context.Context, object *v1alpha1.SmartUpdate, decision policy.Decision,
) *policy.Refusal {
	ctx, cancel := context.WithTimeout(ctx, evictLimit)
	defer cancel()
	uid := types.UID(decision.Pod.UID)
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: decision.Pod.Name}}
	err := r.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: object.Namespace, Name: decision.Pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	})
	switch {
	case err == nil || errors.IsNotFound(err) || errors.IsConflict(err):
		return nil
	case errors.IsTooManyRequests(err):
		return &policy.Refusal{Text: err.Error(), ByBudget: true}
	}
	return &policy.Refusal{Text: err.Error()}
}
