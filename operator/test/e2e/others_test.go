package e2e

import (
	"bufio"
	"os/exec"
	"slices"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/controller"
)

// foreign makes an object of another operator.
func (c *cluster) foreign(version, kind, name string, spec map[string]any) *unstructured.Unstructured {
	c.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind))
	object.SetNamespace(c.namespace)
	object.SetName(name)
	c.make(object)
	return object
}

func TestARollWaitsForBackupsOfOtherOperators(t *testing.T) {
	c := begin(t)
	c.makeRoles("operator-of-"+c.namespace, "backups.yaml")
	of := func(name string) map[string]any { return map[string]any{"pxcCluster": name} }
	percona := c.foreign("pxc.percona.com/v1", "PerconaXtraDBClusterBackup", "weekly", of("cluster1"))
	stranger := c.foreign("pxc.percona.com/v1", "PerconaXtraDBClusterBackup", "other", of("cluster2"))
	state := func(object *unstructured.Unstructured, state string) {
		object.Object["status"] = map[string]any{"state": state}
		if err := c.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	state(stranger, "Running")
	state(percona, "Starting")
	dump := c.foreign("k8s.mariadb.com/v1alpha1", "PhysicalBackup", "hourly",
		map[string]any{"mariaDbRef": map[string]any{"name": "shop"}})
	job := &batch.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace, Name: "hourly-1",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(dump, dump.GroupVersionKind())},
		},
		Spec: batch.JobSpec{Template: core.PodTemplateSpec{Spec: core.PodSpec{
			RestartPolicy: core.RestartPolicyNever, Containers: []core.Container{{Name: "dump", Image: "dump"}},
		}}},
	}
	c.make(job)

	c.smartUpdate(func(spec *v1alpha1.SmartUpdateSpec) {
		spec.Backups = []v1alpha1.Backup{{Percona: "cluster1"}, {MariaDB: "shop"}}
	})
	c.image("mariadb:11.8.3")
	c.start()
	says := func(name string) func() bool {
		return func() bool {
			return c.reason() == "BackupRuns" && strings.Contains(c.message(), "backup "+name+" runs since")
		}
	}
	c.until("Percona's backup is waited for", says("weekly"))
	job.Status.Active = 1
	if err := c.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	state(percona, "Suspended")
	c.until("MariaDB's backup is waited for", says("hourly-1"))
	job.Status.Active = 0
	if err := c.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	c.until("it is rolled", func() bool { return c.rolled("mariadb:11.8.3") })
}

func TestBackupsThatCannotBeListedStopARoll(t *testing.T) {
	c := begin(t)
	c.smartUpdate(func(spec *v1alpha1.SmartUpdateSpec) {
		spec.Backups = []v1alpha1.Backup{{Percona: "cluster1"}}
	})
	c.image("mariadb:11.8.3")
	c.start()
	c.untilReason("BackupsUnknown")
	if message := c.message(); !strings.Contains(message, "forbidden") {
		t.Error(message)
	}
}

func TestARecommendedVersionIsSetInTheOneFieldOfAnotherOperatorsObject(t *testing.T) {
	c := begin(t)
	c.makeRoles("operator-of-"+c.namespace, "images.yaml")
	mariadb := c.foreign("k8s.mariadb.com/v1alpha1", "MariaDB", "shop",
		map[string]any{"image": "docker-registry1.mariadb.com/library/mariadb:11.8.3", "replicas": int64(3)})

	const file = "../../examples/mariadb.yaml"
	serves := exec.Command(program, "versions", "--file", file, "--listen", "127.0.0.1:0")
	out, err := serves.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serves.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		serves.Process.Kill()
		serves.Wait()
	}()
	line, _ := bufio.NewReader(out).ReadString('\n')
	_, address, _ := strings.Cut(strings.TrimSpace(line), "address=")

	c.smartUpdate(func(spec *v1alpha1.SmartUpdateSpec) {
		spec.Image = &v1alpha1.Image{Container: "server", In: &v1alpha1.ImageField{
			APIVersion: "k8s.mariadb.com/v1alpha1", Kind: "MariaDB", Name: "shop", Path: "/spec/image",
		}}
		spec.UpgradeOptions = &v1alpha1.UpgradeOptions{
			Apply: "disabled", Schedule: "* * * * *", VersionServiceEndpoint: "http://" + address,
			Product: "mariadb", OperatorVersion: "1.0.0", Component: "mariadb",
		}
	})
	c.start()
	c.until("nothing is asked", func() bool {
		versions := c.seen().Status.Versions
		return versions != nil && versions.Apply == "disabled" && versions.LastCheck == nil
	})
	patch := client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"upgradeOptions":{"apply":"11.8-recommended"}}}`))
	if err := c.Patch(t.Context(), c.object, patch); err != nil {
		t.Fatal(err)
	}
	c.until("the image is set", func() bool {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(mariadb), mariadb); err != nil {
			t.Fatal(err)
		}
		image, _, _ := unstructured.NestedString(mariadb.Object, "spec", "image")
		return !strings.HasSuffix(image, ":11.8.3")
	})
	index := slices.IndexFunc(mariadb.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == controller.FieldManager
	})
	const onlyImage = `{"f:spec":{"f:image":{}}}`
	if index < 0 || string(mariadb.GetManagedFields()[index].FieldsV1.GetRawBytes()) != onlyImage {
		t.Errorf("%+v", mariadb.GetManagedFields())
	}
	if replicas, _, _ := unstructured.NestedInt64(mariadb.Object, "spec", "replicas"); replicas != 3 {
		t.Errorf("%v", mariadb.Object)
	}
	if versions := c.seen().Status.Versions; versions == nil || versions.Running != "11.8.3-MariaDB" {
		t.Errorf("%+v", versions)
	}
}
