package controller

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/policy"
	"proxima.io/operator/internal/proxies"
)

// seen is an observation, with what acts need beside it.
type seen struct {
	policy.Observation
	set       *apps.StatefulSet
	target    proxies.Target
	endpoints []proxies.Endpoint
}

// observe looks at everything that the decision depends on.
func (r *Reconciler) observe(
	ctx context.Context, from client.Reader, object *v1alpha1.SmartUpdate, kept *kept,
) (*seen, error) {
	s := &seen{
		Observation: policy.Observation{
			Now: r.now(), Started: r.started, Generation: object.Generation,
			Spec: object.Spec, Status: object.Status, Refused: kept.refused,
		},
		target: proxies.Target{
			Host:  fmt.Sprintf("%s.%s.svc", object.Spec.Proxies.Service, object.Namespace),
			Pool:  object.Spec.Proxies.Pool,
			Order: object.Order(),
		},
	}
	if err := s.lookForOlder(ctx, from, object); err != nil {
		return nil, err
	}
	if err := s.lookAtSet(ctx, from, object); err != nil {
		return nil, err
	}
	if s.Older != "" || s.Set == nil {
		return s, nil
	}
	if err := s.askProxies(ctx, from, object, r.Proxies); err != nil {
		return nil, err
	}
	if policy.Holding(s.Observation) {
		// No guard is asked any more, and clients wait.
		return s, nil
	}
	backups, err := r.backups(ctx, from, object)
	if err != nil {
		s.BackupsUnknown = err.Error()
	}
	s.Backups = backups
	return s, nil
}

func (s *seen) lookForOlder(ctx context.Context, from client.Reader, object *v1alpha1.SmartUpdate) error {
	list := &v1alpha1.SmartUpdateList{}
	if err := from.List(ctx, list, client.InNamespace(object.Namespace)); err != nil {
		return err
	}
	for index := range list.Items {
		other := &list.Items[index]
		if other.Spec.StatefulSet == object.Spec.StatefulSet && isOlder(other, object) {
			s.Older = other.Name
		}
	}
	return nil
}

// isOlder: the other one was made before, or in the same second and comes first by its name.
func isOlder(other, object *v1alpha1.SmartUpdate) bool {
	if other.CreationTimestamp.Equal(&object.CreationTimestamp) {
		return other.Name < object.Name
	}
	return other.CreationTimestamp.Before(&object.CreationTimestamp)
}

func (s *seen) lookAtSet(ctx context.Context, from client.Reader, object *v1alpha1.SmartUpdate) error {
	set := &apps.StatefulSet{}
	name := client.ObjectKey{Namespace: object.Namespace, Name: object.Spec.StatefulSet}
	if err := from.Get(ctx, name, set); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.set = set
	s.Set = &policy.Set{
		UID: string(set.UID), Replicas: 1, Deleted: set.DeletionTimestamp != nil,
		OnDelete:       set.Spec.UpdateStrategy.Type == apps.OnDeleteStatefulSetStrategyType,
		UpdateRevision: set.Status.UpdateRevision,
		Observed:       set.Status.ObservedGeneration >= set.Generation && set.Status.UpdateRevision != "",
	}
	if set.Spec.Replicas != nil {
		s.Set.Replicas = int(*set.Spec.Replicas)
	}
	if set.Spec.Ordinals != nil {
		s.Set.FirstOrdinal = int(set.Spec.Ordinals.Start)
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return err
	}
	pods := &core.PodList{}
	selected := client.MatchingLabelsSelector{Selector: selector}
	err = from.List(ctx, pods, client.InNamespace(set.Namespace), selected)
	if err != nil {
		return err
	}
	for index := range pods.Items {
		pod := &pods.Items[index]
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.UID == set.UID {
			if ordinal, ok := ordinalOf(pod.Name, set.Name); ok {
				s.Pods = append(s.Pods, describe(pod, ordinal))
			}
		}
	}
	return nil
}

func ordinalOf(pod, set string) (int, bool) {
	number, found := strings.CutPrefix(pod, set+"-")
	ordinal, err := strconv.Atoi(number)
	return ordinal, found && err == nil
}

// askProxies asks all of them at once. While a roll is under way they have our order.
func (s *seen) askProxies(
	ctx context.Context, from client.Reader, object *v1alpha1.SmartUpdate, asked *proxies.Client,
) error {
	list := &discovery.EndpointSliceList{}
	err := from.List(ctx, list, client.InNamespace(object.Namespace),
		client.MatchingLabels{discovery.LabelServiceName: object.Spec.Proxies.Service})
	if err != nil {
		return err
	}
	s.endpoints = proxies.Endpoints(list.Items)
	for _, reply := range asked.Ask(ctx, s.target, s.endpoints, object.Status.Roll != nil) {
		s.Proxies = append(s.Proxies, policy.Proxy{
			Pod: reply.Endpoint.Pod, Ready: reply.Endpoint.Ready, Answer: reply.Answer, Err: reply.Err,
		})
	}
	return nil
}
