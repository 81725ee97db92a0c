package controller

import (
	"context"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proxima.io/operator/api/v1alpha1"
)

// turnsAtOnce lets other objects have their turns while one waits for a proxy that does not answer.
const turnsAtOnce = 10

// Setup makes the manager take turns when something has changed that a decision depends on.
func (r *Reconciler) Setup(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		For(&v1alpha1.SmartUpdate{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&apps.StatefulSet{}, r.those(func(u *v1alpha1.SmartUpdate, set client.Object) bool {
			return u.Spec.StatefulSet == set.GetName()
		})).
		Watches(&core.Pod{}, r.those(func(u *v1alpha1.SmartUpdate, pod client.Object) bool {
			owner := metav1.GetControllerOf(pod)
			return owner != nil && owner.Kind == "StatefulSet" && owner.Name == u.Spec.StatefulSet
		})).
		Watches(&discovery.EndpointSlice{}, r.those(func(u *v1alpha1.SmartUpdate, slice client.Object) bool {
			return slice.GetLabels()[discovery.LabelServiceName] == u.Spec.Proxies.Service
		})).
		Watches(&batch.Job{}, r.those(func(u *v1alpha1.SmartUpdate, _ client.Object) bool {
			return len(u.Spec.Backups) > 0
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: turnsAtOnce}).
		Complete(r)
}

// those are the objects in the same namespace that are about what has changed.
func (r *Reconciler) those(about func(*v1alpha1.SmartUpdate, client.Object) bool) handler.EventHandler {
	find := func(ctx context.Context, changed client.Object) []reconcile.Request {
		list := &v1alpha1.SmartUpdateList{}
		if err := r.Client.List(ctx, list, client.InNamespace(changed.GetNamespace())); err != nil {
			log.FromContext(ctx).Error(err, "no turn is taken for a change", "of", changed.GetName())
			return nil
		}
		var requests []reconcile.Request
		for index := range list.Items {
			if object := &list.Items[index]; about(object, changed) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
			}
		}
		return requests
	}
	return handler.EnqueueRequestsFromMapFunc(find)
}
