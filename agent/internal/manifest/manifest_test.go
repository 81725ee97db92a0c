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
	if pods[2].Name != "web-2" || c.Namespace != "shop" || c.QOS != "Burstable" || c.Request != 500 || len(pods[2].Findings) != 1 {
		t.Errorf("%+v", pods[2])
	}
	best, err := Read([]byte("kind: Pod\nspec: {containers: [{name: a}]}"), 1)
	if err != nil || best[0].Containers[0].QOS != "BestEffort" {
		t.Errorf("%+v %v", best, err)
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
		strings.Replace(deployment, "replicas: 3", "replicas: 99999999", 1)} {
		if pods, err := Read([]byte(bad), 1); err == nil {
			t.Errorf("%q gave %d pods", bad, len(pods))
		}
	}
}
