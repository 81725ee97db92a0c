package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proxima.io/operator/api/v1alpha1"
)

// TestAHundredObjectsAtRestAreCheap measures what the page on smart updates says.
func TestAHundredObjectsAtRestAreCheap(t *testing.T) {
	if os.Getenv("PROXIMA_SOAK") == "" {
		t.Skip("skipped: it takes two minutes; PROXIMA_SOAK=1 runs it")
	}
	const count = 100
	c := begin(t)
	c.lock.Lock()
	c.frozen = true
	c.lock.Unlock()
	time.Sleep(100 * time.Millisecond)
	for number := range count {
		c.makeResting(fmt.Sprintf("shop-%d", number))
	}
	c.start()
	c.until("all are at rest", func() bool {
		list := &v1alpha1.SmartUpdateList{}
		if err := c.List(t.Context(), list, client.InNamespace(c.namespace)); err != nil {
			t.Fatal(err)
		}
		resting := 0
		for _, object := range list.Items {
			if object.Status.Step != nil && object.Status.Step.Name == "Resting" {
				resting++
			}
		}
		return resting == count
	})
	written := c.versions()
	c.fleet.lock.Lock()
	began := c.fleet.proxies[0].requests
	c.fleet.lock.Unlock()
	const watched = 60 * time.Second
	peak := 0
	for end := time.Now().Add(watched); time.Now().Before(end); time.Sleep(time.Second) {
		peak = max(peak, c.resident())
	}
	c.fleet.lock.Lock()
	requests := c.fleet.proxies[0].requests - began
	c.fleet.lock.Unlock()
	each := float64(requests) / count / watched.Seconds() * 10
	t.Logf("%d objects: %d KiB resident at most, %.2f requests to a proxy in 10 s for each", count, peak, each)
	if peak > 64*1024 {
		t.Errorf("%d KiB resident", peak)
	}
	if each > 1.05 {
		t.Errorf("%.2f requests in 10 s for each object", each)
	}
	if c.versions() != written {
		t.Error("objects were written at rest")
	}
}

// makeResting makes a set that is up to date, with its pods and its object.
func (c *cluster) makeResting(name string) {
	c.t.Helper()
	labels := map[string]string{"app": name}
	set := &apps.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}, Spec: *c.set.Spec.DeepCopy(),
	}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = labels
	c.make(set)
	set.Status.ObservedGeneration, set.Status.UpdateRevision, set.Status.Replicas = set.Generation, "one", 3
	if err := c.Status().Update(c.t.Context(), set); err != nil {
		c.t.Fatal(err)
	}
	for ordinal := range 3 {
		pod := &core.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: c.namespace, Name: fmt.Sprintf("%s-%d", name, ordinal),
				Labels:          map[string]string{"app": name, apps.ControllerRevisionHashLabelKey: "one"},
				OwnerReferences: owned(set),
			},
			Spec: *set.Spec.Template.Spec.DeepCopy(),
		}
		pod.Spec.NodeName = "n1"
		c.make(pod)
		c.setStatus(c.t.Context(), pod, true)
		c.fleet.lock.Lock()
		c.fleet.pods[pod.Name] = string(pod.UID)
		c.fleet.lock.Unlock()
	}
	c.make(&v1alpha1.SmartUpdate{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name},
		Spec: v1alpha1.SmartUpdateSpec{
			StatefulSet: name, Proxies: v1alpha1.Proxies{Service: "proxima", Pool: "db"},
		},
	})
}

// versions are those of all objects, as one text.
func (c *cluster) versions() string {
	list := &v1alpha1.SmartUpdateList{}
	if err := c.List(c.t.Context(), list, client.InNamespace(c.namespace)); err != nil {
		c.t.Fatal(err)
	}
	text := ""
	for _, object := range list.Items {
		text += object.Name + " " + object.ResourceVersion + "\n"
	}
	return text
}

// resident is the operator's resident memory in KiB.
func (c *cluster) resident() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.operator.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, _ := strconv.Atoi(strings.Fields(value)[0])
			return kib
		}
	}
	return 0
}
