// Package strict reads the manifests as a Kubernetes API server does, and refuses fields that it does not
// know. It is a module of its own, so that the agent, which runs privileged, does not depend on Kubernetes.
package strict

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func decode(t *testing.T, file string) []runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	buffer := make([]byte, 1<<20)
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(buffer[:n], nil, nil)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		objects = append(objects, object)
	}
}

func TestManifestsAreWhatKubernetesKnows(t *testing.T) {
	for _, file := range []string{"../nri.yaml", "../cri.yaml"} {
		daemons := 0
		for _, object := range decode(t, file) {
			if d, ok := object.(*appsv1.DaemonSet); ok {
				daemons++
				checkDaemonSet(t, file, d)
			}
		}
		if daemons != 1 {
			t.Errorf("%s: %d DaemonSets", file, daemons)
		}
	}
}

// checkDaemonSet holds what the API server holds beyond the types, and that no privilege creeps in.
func checkDaemonSet(t *testing.T, file string, d *appsv1.DaemonSet) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
		t.Errorf("%s: the selector does not match the template: %v", file, err)
	}
	spec := &d.Spec.Template.Spec
	volumes := map[string]bool{}
	for _, v := range spec.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range spec.Containers {
		ports := map[string]bool{}
		for _, p := range c.Ports {
			ports[p.Name] = true
		}
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
			if probe != nil && !ports[probe.HTTPGet.Port.StrVal] {
				t.Errorf("%s: a probe of port %s, which %s does not have", file, probe.HTTPGet.Port.StrVal, c.Name)
			}
		}
		for name, path := range map[string]string{"NODE_NAME": "spec.nodeName", "NODE_GROUP": "metadata.labels['proxima.io/group']"} {
			if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
				return e.Name == name && e.ValueFrom != nil && e.ValueFrom.FieldRef != nil && e.ValueFrom.FieldRef.FieldPath == path
			}) {
				t.Errorf("%s: %s does not have %s of %s: the layers of its node cannot be used", file, c.Name, name, path)
			}
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s: volume %s is not there", file, m.Name)
			}
			delete(volumes, m.Name)
		}
		s := c.SecurityContext
		if s == nil || s.Privileged != nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
			s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || len(s.Capabilities.Add) > 0 || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("%s: %s has privileges: %+v", file, c.Name, s)
		}
	}
	if len(volumes) > 0 {
		t.Errorf("%s: nobody mounts %v", file, volumes)
	}
	if spec.PriorityClassName != "system-node-critical" {
		t.Errorf("%s: priority class %q: it would be evicted before the pods that it pins", file, spec.PriorityClassName)
	}
	for _, c := range spec.Containers {
		if o := c.SecurityContext.SELinuxOptions; o == nil || o.Type != "spc_t" {
			t.Errorf("%s: where SELinux is on, %s cannot reach what it needs: %+v", file, c.Name, o)
		}
		for _, m := range c.VolumeMounts {
			// What is mounted on the node later, or again after the runtime's restart, has to be seen.
			if late := m.Name == "nri" || m.Name == "kubelet" || m.Name == "sys" || m.Name == "run" && m.ReadOnly; late &&
				(m.MountPropagation == nil || *m.MountPropagation != corev1.MountPropagationHostToContainer) {
				t.Errorf("%s: %s does not see what is mounted later below %s", file, c.Name, m.MountPath)
			}
		}
	}
	if spec.HostNetwork || spec.HostPID || spec.HostIPC || *spec.AutomountServiceAccountToken {
		t.Errorf("%s: more of the node or the cluster than is needed: %+v", file, spec)
	}
}

// The example's pods, as the user gets them from measure.sh.
func TestTheExamplesPods(t *testing.T) {
	file, err := filepath.Abs("../../../examples/numa-pair/pair.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	one := filepath.Join(t.TempDir(), "pair.yaml")
	if err := os.WriteFile(one, bytes.ReplaceAll(text, []byte("$n"), []byte("1")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, object := range decode(t, one) {
		if _, ok := object.(*corev1.Pod); !ok {
			t.Errorf("%T", object)
		}
	}
}
