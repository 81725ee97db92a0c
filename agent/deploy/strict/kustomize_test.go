package strict

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const overlay = `
resources: [../base]
images: [{name: proxima-agent, newName: registry.example/proxima-agent, newTag: 9.9.9}]
patches:
- target: {kind: DaemonSet, name: proxima-agent}
  patch: |
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: proxima-agent}
    spec:
      template:
        spec:
          volumes:
          - {name: kubelet, hostPath: {path: /var/lib/k0s/kubelet}}
`

// The base, and an overlay as its comment shows one: another registry, and kubelet's directory elsewhere.
func TestTheBaseForKustomize(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"kustomization.yaml", "nri.yaml"} {
		text, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "base", name), string(text))
	}
	write(t, filepath.Join(dir, "mine/kustomization.yaml"), overlay)
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, "mine"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "all.yaml"), string(text))
	daemons := 0
	for _, object := range decode(t, filepath.Join(dir, "all.yaml")) {
		d, ok := object.(*appsv1.DaemonSet)
		if !ok {
			continue
		}
		daemons++
		checkDaemonSet(t, "overlay", d)
		if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example/proxima-agent:9.9.9" {
			t.Errorf("image %s", image)
		}
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Name == "kubelet" && v.HostPath.Path != "/var/lib/k0s/kubelet" {
				t.Errorf("kubelet is looked for in %s", v.HostPath.Path)
			}
		}
	}
	if daemons != 1 {
		t.Errorf("%d DaemonSets", daemons)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
