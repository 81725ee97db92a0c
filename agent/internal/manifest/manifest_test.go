package manifest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"proxima.io/agent/internal/policy"
)

func TestTheExampleMakesPairs(t *testing.T) {
	text, err := os.ReadFile("../../../examples/numa-pair/pair.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pods, err := Read(text, 5)
	if err != nil || len(pods) != 10 {
		t.Fatalf("%d pods, %v", len(pods), err)
	}
	redis, memtier := pods[2].Containers[0], pods[3].Containers[0]
	if redis.QOS != policy.Guaranteed || redis.Request != 8000 || redis.Memory != 16<<30 || redis.PodLabels["app"] != "redis-2" {
		t.Errorf("%+v", redis)
	}
	a := memtier.Affinities[0]
	if !a.Applies(&memtier.Subject, &redis.Subject) || a.Applies(&memtier.Subject, &pods[4].Containers[0].Subject) {
		t.Error("a client's affinity is about its own server only")
	}
}

const deployment = `
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}, annotations: {proxima.io/naer: app=db}}
    spec:
      containers:
      - name: web
        resources: {requests: {cpu: 500m}, limits: {memory: 1Gi}}
`

func TestTemplatesAndQualityOfService(t *testing.T) {
	pods, err := Read([]byte(deployment), 1)
	if err != nil || len(pods) != 3 {
		t.Fatalf("%d pods, %v", len(pods), err)
	}
	c := pods[2].Containers[0]
	if pods[2].Name != "web-2" || c.Namespace != "shop" || c.QOS != "Burstable" || c.Request != 500 || c.NoMemoryLimit || len(pods[2].Findings) != 1 {
		t.Errorf("%+v", pods[2])
	}
	best, err := Read([]byte("kind: Pod\nspec: {containers: [{name: a}]}"), 1)
	if err != nil || best[0].Containers[0].QOS != "BestEffort" || !best[0].Containers[0].NoMemoryLimit {
		t.Errorf("%+v %v", best, err)
	}
}

const list = `
kind: List
items:
- kind: Pod
  metadata: {name: p}
  spec: {containers: [{name: a}]}
- kind: DeploymentList
  items:
  - {kind: Deployment, metadata: {name: d}, spec: {replicas: 2, template: {spec: {containers: [{name: a}]}}}}
---
kind: CronJob
metadata: {name: j, namespace: nightly}
spec: {jobTemplate: {spec: {template: {metadata: {labels: {app: j}}, spec: {containers: [{name: a}]}}}}}
`

func TestListsAndCronJobs(t *testing.T) {
	pods, err := Read([]byte(list), 1)
	if err != nil || len(pods) != 4 {
		t.Fatalf("%+v %v, want 4 pods", pods, err)
	}
	for i, want := range []string{"default/p/a", "default/d-0/a", "default/d-1/a", "nightly/j-0/a"} {
		if got := pods[i].Containers[0].ID; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Containers that only prepare are gone when the pod's own start; sidecars stay. All of them count for the
// class.
func TestInitContainers(t *testing.T) {
	pods, err := Read([]byte(`
kind: Pod
metadata: {name: redis, annotations: {proxima.io/cpus.wait: unpinned, proxima.io/cpus.log: bad}}
spec:
  initContainers:
  - {name: wait}
  - {name: log, restartPolicy: Always}
  containers:
  - {name: redis, resources: {limits: {cpu: 8, memory: 1Gi}}}
`), 1)
	if err != nil || len(pods) != 1 || len(pods[0].Containers) != 2 {
		t.Fatalf("%+v %v", pods, err)
	}
	log, redis := pods[0].Containers[0], pods[0].Containers[1]
	if log.Name != "log" || redis.Name != "redis" || log.QOS != "Burstable" || redis.QOS != "Burstable" {
		t.Errorf("%+v, %+v: want the sidecar, then redis, both Burstable", log, redis)
	}
	if len(pods[0].Findings) != 1 || pods[0].Findings[0].Key != "proxima.io/cpus.log" {
		t.Errorf("%v", pods[0].Findings)
	}
}

// Names are given as an API server and controllers give them: each pod has one of its own in its namespace.
func TestEveryPodHasANameOfItsOwn(t *testing.T) {
	const c = "{containers: [{name: a}]}"
	of := func(kind, name string, replicas int) string {
		return fmt.Sprintf("kind: %s\nmetadata: {name: %s}\nspec: {replicas: %d, template: {spec: %s}}", kind, name, replicas, c)
	}
	pod := func(meta string) string { return "kind: Pod\nmetadata: {" + meta + "}\nspec: " + c }
	job := func(numbers string) string {
		return "kind: Job\nmetadata: {generateName: j-}\nspec: {" + numbers + ", template: {spec: " + c + "}}"
	}
	for what, each := range map[string]struct {
		copies    int
		documents []string
		want      []string
	}{
		"a name to be generated":         {1, []string{pod("generateName: b-"), pod("generateName: b-"), pod("name: b-2"), pod("generateName: b-")}, []string{"default/b-0", "default/b-1", "default/b-2", "default/b-3"}},
		"in two namespaces":              {1, []string{pod("generateName: b-, namespace: x"), pod("generateName: b-")}, []string{"x/b-0", "default/b-0"}},
		"no name at all":                 {1, []string{pod(""), pod("labels: {a: b}")}, []string{"default/pod-0", "default/pod-1"}},
		"generated before it is written": {1, []string{pod("generateName: b-"), pod("name: b-1"), pod("generateName: b-")}, []string{"default/b-0", "default/b-1", "default/b-2"}},
		"in a list":                      {1, []string{"kind: List\nitems:\n- {kind: Pod, metadata: {generateName: b-}, spec: " + c + "}\n- {kind: Pod, metadata: {generateName: b-}, spec: " + c + "}"}, []string{"default/b-0", "default/b-1"}},
		"two kinds":                      {1, []string{of("Deployment", "r", 2), of("StatefulSet", "r", 2)}, []string{"default/r-0.deployment", "default/r-1.deployment", "default/r-0", "default/r-1"}},
		"a pod called as a replica is":   {1, []string{of("StatefulSet", "r", 2), pod("name: r-1")}, []string{"default/r-0", "default/r-1.statefulset", "default/r-1"}},
		"three kinds":                    {1, []string{of("ReplicaSet", "r", 1), of("Deployment", "r", 1), of("DaemonSet", "r", 1)}, []string{"default/r-0", "default/r-0.deployment", "default/r-0.daemonset"}},
		"one object in each copy":        {2, []string{pod("name: one"), pod("name: p-$n")}, []string{"default/one", "default/p-1", "default/p-2"}},
		"generated in each copy":         {2, []string{pod("generateName: b-"), pod("name: p-$n")}, []string{"default/b-0", "default/p-1", "default/b-1", "default/p-2"}},
		"jobs, with pods side by side":   {1, []string{job("parallelism: 2"), job("parallelism: 3, completions: 1")}, []string{"default/j-0-0", "default/j-0-1", "default/j-1-0"}},
		"a job that is to run no pod":    {1, []string{job("parallelism: 0"), pod("name: p")}, []string{"default/p"}},
	} {
		pods, err := Read([]byte(strings.Join(each.documents, "\n---\n")), each.copies)
		var got []string
		for _, p := range pods {
			got = append(got, p.Namespace+"/"+p.Name)
			if id := p.Containers[0].ID; id != p.Namespace+"/"+p.Name+"/a" {
				t.Errorf("%s: %s is in %s/%s", what, id, p.Namespace, p.Name)
			}
		}
		if err != nil || !slices.Equal(got, each.want) {
			t.Errorf("%s: %v %v, want %v", what, got, err, each.want)
		}
	}
}

// What no cluster can hold is refused, as one of two would be shown otherwise.
func TestTwoThatCannotBeToldApartAreRefused(t *testing.T) {
	for manifest, want := range map[string]string{
		"kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a}]}\n---\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: b}]}": "Pod p is there twice in the namespace default",
		"kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a}, {name: a}]}":                                                            "Pod p: two containers are called a",
		"kind: Pod\nmetadata: {name: p}\nspec: {initContainers: [{name: a, restartPolicy: Always}], containers: [{name: a}]}":                   "Pod p: two containers are called a",
	} {
		if pods, err := Read([]byte(manifest), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d pods, %v; want %q", len(pods), err, want)
		}
	}
}

// A runtime tells of one container after the other; a manifest has them all.
func TestAnnotationsOfContainersThatAreNotThere(t *testing.T) {
	pods, err := Read([]byte(`
kind: Pod
metadata: {name: p, annotations: {proxima.io/cpus.redsi: shared, proxima.io/naer: app=db}}
spec: {containers: [{name: redis}, {name: exporter}]}
`), 1)
	if err != nil || len(pods) != 1 || len(pods[0].Findings) != 2 {
		t.Fatalf("%+v %v; want one finding for each of the two keys", pods, err)
	}
}

func TestBadManifests(t *testing.T) {
	for _, bad := range []string{"a: [", "kind: Pod\nspec: {containers: [{name: a, resources: {limits: {cpu: lots}}}]}",
		strings.Replace(deployment, "replicas: 3", "replicas: 99999999", 1), strings.Replace(list, "replicas: 2", "replicas: 9999", 1),
		"kind: Pod\nspec: {initContainers: [{name: a, resources: {limits: {cpu: lots}}}], containers: [{name: b}]}"} {
		if pods, err := Read([]byte(bad), 1); err == nil {
			t.Errorf("%q gave %d pods", bad, len(pods))
		}
	}
}
