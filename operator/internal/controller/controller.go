// Package controller does what the policy decides: a turn observes, decides, acts once and returns.
package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/policy"
	"proxima.io/operator/internal/proxies"
	"proxima.io/operator/internal/versions"
)

// Checker decides which version is wanted.
type Checker interface {
	Next(ctx context.Context, request versions.Request, now time.Time) versions.Result
}

// Reconciler takes turns for SmartUpdates. It remembers nothing that it could not do without.
type Reconciler struct {
	// Client reads from a cache, and Live from the API server.
	Client   client.Client
	Live     client.Reader
	Proxies  *proxies.Client
	Versions Checker
	Events   events.EventRecorder

	// started is by the monotonic clock, so that a step of the wall clock moves no deadline.
	started time.Time
	mutex   sync.Mutex
	kept    map[types.NamespacedName]*kept
}

// kept is what a turn leaves to the next one.
type kept struct {
	// written is the object as this process wrote it last. The cache may still have one before it.
	written *v1alpha1.SmartUpdate
	refused *policy.Refusal
}

// afterFailure keeps a proxy that answers and takes no order from being asked without a pause.
const afterFailure = 100 * time.Millisecond

// New returns a reconciler that begins now.
func New(
	cached client.Client, live client.Reader, asked *proxies.Client, checker Checker,
	recorder events.EventRecorder,
) *Reconciler {
	return &Reconciler{
		Client: cached, Live: live, Proxies: asked, Versions: checker, Events: recorder,
		started: time.Now(), kept: map[types.NamespacedName]*kept{},
	}
}

// Reconcile is one turn for one object.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &v1alpha1.SmartUpdate{}
	if err := r.Client.Get(ctx, request.NamespacedName, object); err != nil || object.DeletionTimestamp != nil {
		r.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	kept := r.keep(request.NamespacedName)
	object = kept.newest(object)

	seen, err := r.observe(ctx, r.Client, object, kept)
	if err != nil {
		return ctrl.Result{}, err
	}
	decision := policy.Decide(seen.Observation)
	if decision.Act == policy.Evict {
		// A cache may be behind. What cannot be taken back is decided by what the API server says now.
		if seen, err = r.observe(ctx, r.Live, object, kept); err != nil {
			return ctrl.Result{}, err
		}
		decision = policy.Decide(seen.Observation)
	}
	return r.take(ctx, object, kept, seen, decision), nil
}

// take does the act. Orders do not wait for the API server: clients wait for them. An eviction comes after
// the status, so that of two leaders the one that is behind finds a conflict, and evicts nothing.
func (r *Reconciler) take(
	ctx context.Context, object *v1alpha1.SmartUpdate, kept *kept, seen *seen, decision policy.Decision,
) ctrl.Result {
	status := policy.Status(seen.Observation, decision)
	told := policy.Events(seen.Observation, decision, status)
	again := ctrl.Result{RequeueAfter: decision.Again}

	if decision.Act == policy.Give || decision.Act == policy.End {
		var taken bool
		if taken, kept.refused = r.order(ctx, object, seen, decision); !taken {
			again.RequeueAfter = max(again.RequeueAfter, afterFailure)
		}
	}
	if policy.Holding(seen.Observation) && decision.Failed == nil {
		// Clients wait, so that the status waits until they are released.
		return again
	}
	if decision.Act == policy.Nothing && !object.Spec.Paused {
		if err := r.check(ctx, object, seen, &status); err != nil {
			log.FromContext(ctx).Info("the image was not set", "reason", err.Error())
		}
	}
	if err := r.write(ctx, object, kept, status); err != nil {
		log.FromContext(ctx).Info("the status was not written", "reason", err.Error())
		return ctrl.Result{RequeueAfter: max(decision.Again, time.Second)}
	}
	if decision.Act == policy.Evict {
		if kept.refused = r.evict(ctx, object, decision); kept.refused != nil {
			return ctrl.Result{RequeueAfter: time.Second}
		}
	}
	showStep(object, status.Step, seen.Now)
	r.tell(object, seen, told)
	return again
}

// write writes the status if it differs.
func (r *Reconciler) write(
	ctx context.Context, object *v1alpha1.SmartUpdate, kept *kept, status v1alpha1.SmartUpdateStatus,
) error {
	if equality.Semantic.DeepEqual(object.Status, status) {
		return nil
	}
	changed := object.DeepCopy()
	changed.Status = status
	if err := r.Client.Status().Update(ctx, changed); err != nil {
		// Another one has written, or this one did not get to know that it had.
		kept.written = nil
		return err
	}
	kept.written = changed
	return nil
}

func (r *Reconciler) now() time.Time {
	return r.started.Add(time.Since(r.started))
}

func (r *Reconciler) keep(name types.NamespacedName) *kept {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.kept[name] == nil {
		r.kept[name] = &kept{}
	}
	return r.kept[name]
}

func (r *Reconciler) forget(name types.NamespacedName) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.kept, name)
	forgetMetrics(name)
}

// newest returns what was written, if the cache is behind it.
func (k *kept) newest(cached *v1alpha1.SmartUpdate) *v1alpha1.SmartUpdate {
	if k.written == nil || k.written.UID != cached.UID {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, k.written.ResourceVersion)
	if err != nil || order >= 0 {
		k.written = nil
		return cached
	}
	return k.written
}
