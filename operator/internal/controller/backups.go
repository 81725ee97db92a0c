package controller

import (
	"context"
	"fmt"
	"time"

	batch "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/policy"
)

// listLimit bounds how long a turn waits for a list of other operators' objects, which no cache has.
const listLimit = 2 * time.Second

// backups returns those that run. One that only waits does not count.
func (r *Reconciler) backups(
	ctx context.Context, from client.Reader, object *v1alpha1.SmartUpdate,
) ([]policy.Backup, error) {
	var running []policy.Backup
	for _, backup := range object.Spec.Backups {
		var found []policy.Backup
		var err error
		switch {
		case backup.Percona != "":
			found, err = r.perconas(ctx, object.Namespace, backup.Percona)
		case backup.MariaDB != "":
			found, err = r.mariadbs(ctx, from, object.Namespace, backup.MariaDB)
		default:
			labels := client.MatchingLabels{}
			for key, value := range backup.Jobs.MatchLabels {
				labels[key] = string(value)
			}
			found, err = activeJobs(ctx, from, object.Namespace, labels, func(*batch.Job) bool { return true })
		}
		if err != nil {
			return running, err
		}
		running = append(running, found...)
	}
	return running, nil
}

// perconas are PerconaXtraDBClusterBackups of a cluster that are starting or running.
func (r *Reconciler) perconas(ctx context.Context, namespace, cluster string) ([]policy.Backup, error) {
	list, err := r.list(ctx, namespace, "pxc.percona.com/v1", "PerconaXtraDBClusterBackup")
	if err != nil {
		return nil, err
	}
	var running []policy.Backup
	for _, backup := range list.Items {
		of, _, _ := unstructured.NestedString(backup.Object, "spec", "pxcCluster")
		state, _, _ := unstructured.NestedString(backup.Object, "status", "state")
		if of == cluster && (state == "Starting" || state == "Running") {
			running = append(running, policy.Backup{Name: backup.GetName(), Since: backup.GetCreationTimestamp().Time})
		}
	}
	return running, nil
}

// mariadbs are active Jobs of Backups and PhysicalBackups of a MariaDB. Scheduled ones have a CronJob of
// their own name between.
func (r *Reconciler) mariadbs(
	ctx context.Context, from client.Reader, namespace, server string,
) ([]policy.Backup, error) {
	owners := map[string]bool{}
	for _, kind := range []string{"Backup", "PhysicalBackup"} {
		list, err := r.list(ctx, namespace, "k8s.mariadb.com/v1alpha1", kind)
		if err != nil {
			return nil, err
		}
		for _, backup := range list.Items {
			of, _, _ := unstructured.NestedString(backup.Object, "spec", "mariaDbRef", "name")
			if of == server {
				owners[kind+"/"+backup.GetName()], owners["CronJob/"+backup.GetName()] = true, true
			}
		}
	}
	return activeJobs(ctx, from, namespace, nil, func(job *batch.Job) bool {
		owner := metav1.GetControllerOf(job)
		return owner != nil && owners[owner.Kind+"/"+owner.Name]
	})
}

func (r *Reconciler) list(
	ctx context.Context, namespace, version, kind string,
) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind+"List"))
	if err := r.Live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("%ss of %s: %w", kind, version, err)
	}
	return list, nil
}

func activeJobs(
	ctx context.Context, from client.Reader, namespace string, labels client.MatchingLabels,
	is func(*batch.Job) bool,
) ([]policy.Backup, error) {
	list := &batch.JobList{}
	if err := from.List(ctx, list, client.InNamespace(namespace), labels); err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	var running []policy.Backup
	for index := range list.Items {
		job := &list.Items[index]
		if job.Status.Active == 0 || !is(job) {
			continue
		}
		since := job.CreationTimestamp
		if job.Status.StartTime != nil {
			since = *job.Status.StartTime
		}
		running = append(running, policy.Backup{Name: job.Name, Since: since.Time})
	}
	return running, nil
}
