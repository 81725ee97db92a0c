package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/versions"
)

// FieldManager owns the one field that this operator writes in others' objects.
const FieldManager = "proxima-smart-update"

// check asks which version is wanted, and sets its image. It is made at rest, so that no version changes
// under a roll.
func (r *Reconciler) check(
	ctx context.Context, object *v1alpha1.SmartUpdate, seen *seen, status *v1alpha1.SmartUpdateStatus,
) error {
	options := object.Spec.UpgradeOptions
	if options == nil || status.Roll != nil || seen.set == nil || seen.Older != "" {
		return nil
	}
	holder, path, image, err := r.imageNow(ctx, object, seen.set)
	if err != nil {
		return err
	}
	request := versions.Request{
		Options: *options, Created: object.CreationTimestamp, Running: running(seen), Image: image,
		Backup: len(seen.Backups) > 0 || seen.BackupsUnknown != "", Replicas: seen.Set.Replicas,
	}
	if status.Versions != nil {
		request.Status = *status.Versions
	}
	result := r.Versions.Next(ctx, request, time.Now())
	if result.Image != "" && result.Image != image {
		if err := r.apply(ctx, holder, path, result.Image); err != nil {
			return err
		}
	}
	result.Status.Running = request.Status.Running
	status.Versions = &result.Status
	if condition := result.Condition; condition != nil {
		condition.Type, condition.ObservedGeneration = v1alpha1.UpdateAvailable, object.Generation
		r.tellCheck(object, condition)
		meta.SetStatusCondition(&status.Conditions, *condition)
	}
	showCheck(object, status)
	return nil
}

// tellCheck tells what a check has come to, unless that is known.
func (r *Reconciler) tellCheck(object *v1alpha1.SmartUpdate, now *metav1.Condition) {
	was := meta.FindStatusCondition(object.Status.Conditions, now.Type)
	if was != nil && was.Reason == now.Reason && was.Message == now.Message {
		return
	}
	kind := core.EventTypeNormal
	if now.Status == metav1.ConditionUnknown {
		kind = core.EventTypeWarning
	}
	r.Events.Eventf(object, nil, kind, now.Reason, "Check", "%s", now.Message)
}

// running are the versions that servers tell the proxies, one for each member.
func running(seen *seen) []string {
	var told []string
	for _, pod := range seen.Pods {
		for _, proxy := range seen.Proxies {
			if proxy.Answer == nil {
				continue
			}
			if member := proxy.Answer.Member(pod.UID); member != nil && member.Version != "" {
				told = append(told, member.Version)
				break
			}
		}
	}
	return told
}

// imageNow finds the field that decides the image, and what stands there.
func (r *Reconciler) imageNow(
	ctx context.Context, object *v1alpha1.SmartUpdate, set *apps.StatefulSet,
) (holder *unstructured.Unstructured, path []string, image string, err error) {
	holder = &unstructured.Unstructured{}
	holder.SetNamespace(object.Namespace)
	field := object.Spec.Image.In
	if field == nil {
		container := object.Spec.Image.Container
		holder.SetGroupVersionKind(apps.SchemeGroupVersion.WithKind("StatefulSet"))
		holder.SetName(set.Name)
		holder.SetUID(set.UID)
		for _, one := range set.Spec.Template.Spec.Containers {
			if one.Name == container {
				return holder, []string{container}, one.Image, nil
			}
		}
		return nil, nil, "", fmt.Errorf("StatefulSet %s has no container %s", set.Name, container)
	}
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(schema.FromAPIVersionAndKind(field.APIVersion, field.Kind))
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	name := client.ObjectKey{Namespace: object.Namespace, Name: field.Name}
	if err := r.Live.Get(ctx, name, there); err != nil {
		return nil, nil, "", err
	}
	holder.SetGroupVersionKind(there.GroupVersionKind())
	holder.SetName(there.GetName())
	holder.SetUID(there.GetUID())
	path = strings.Split(strings.TrimPrefix(field.Path, "/"), "/")
	image, _, err = unstructured.NestedString(there.Object, path...)
	return holder, path, image, err
}

// apply sets the image and nothing else. The uid keeps an object that is gone from being made.
func (r *Reconciler) apply(
	ctx context.Context, holder *unstructured.Unstructured, path []string, image string,
) error {
	var err error
	if holder.GetKind() == "StatefulSet" {
		containers := []any{map[string]any{"name": path[0], "image": image}}
		err = unstructured.SetNestedSlice(holder.Object, containers, "spec", "template", "spec", "containers")
	} else {
		err = unstructured.SetNestedField(holder.Object, image, path...)
	}
	if err != nil {
		return err
	}
	return r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(holder),
		client.FieldOwner(FieldManager), client.ForceOwnership)
}
