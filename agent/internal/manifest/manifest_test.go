package manifest

import (
	"os"
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
