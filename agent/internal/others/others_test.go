package others

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func root(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestKubeletsStaticPolicy(t *testing.T) {
	found := Find(root(t, map[string]string{"var/lib/kubelet/" + kubeletState: `{"policyName":"static","defaultCpuSet":"0-3,8","entries":{}}`}), Kubelet, "")
	if len(found) != 1 || found[0].Leaves == nil || found[0].Leaves.String() != "0-3,8" {
		t.Errorf("%+v", found)
	}
	for _, harmless := range []string{`{"policyName":"none","defaultCpuSet":""}`, `{"policyName":"sta`, ""} {
		if found := Find(root(t, map[string]string{"var/lib/kubelet/" + kubeletState: harmless}), Kubelet, ""); len(found) != 0 {
			t.Errorf("%q: %+v", harmless, found)
		}
	}
}

// The memory manager pins memory and no CPUs; where kubelet's directory is elsewhere, both are found there.
func TestKubeletsMemoryManager(t *testing.T) {
	dir := root(t, map[string]string{"srv/kubelet/" + kubeletMemory: `{"policyName":"Static","machineState":{},"entries":{}}`})
	found := Find(dir, "/srv/kubelet", "")
	if len(found) != 1 || !found[0].MemoryOnly || !strings.Contains(found[0].Why, "take-rest") {
		t.Errorf("%+v", found)
	}
	if found := Find(dir, Kubelet, ""); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	none := root(t, map[string]string{"var/lib/kubelet/" + kubeletMemory: `{"policyName":"None"}`})
	if found := Find(none, Kubelet, ""); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

func TestPluginsBesideUs(t *testing.T) {
	found := Find(root(t, map[string]string{"opt/nri/plugins/90-topology-aware": "", "opt/nri/plugins/10-logger": ""}), Kubelet, "")
	if len(found) != 1 || found[0].Name != "NRI plugin 90-topology-aware" {
		t.Errorf("%+v", found)
	}
}

// The charts of nri-plugins run the policy in a pod, of which the node has nothing but its state. Our own
// pod's mount makes the directory.
func TestAPolicyPluginInAPod(t *testing.T) {
	found := Find(root(t, map[string]string{"var/lib/nri-resource-policy/cache": "{}"}), Kubelet, "")
	if len(found) != 1 || found[0].Name != "nri-plugins' resource policy" {
		t.Errorf("%+v", found)
	}
	if found := Find(root(t, map[string]string{"var/lib/nri-resource-policy/.keep": ""}), Kubelet, ""); len(found) != 0 {
		t.Errorf("an empty directory pins nobody: %+v", found)
	}
}

func TestCRIRMsSocketUnlessItIsOurs(t *testing.T) {
	dir := root(t, map[string]string{"run/cri-resmgr/x": ""})
	path := filepath.Join(dir, "run/cri-resmgr/cri-resmgr.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if found := Find(dir, Kubelet, ""); len(found) != 1 || found[0].Name != "CRI-RM" {
		t.Errorf("%+v", found)
	}
	if found := Find(dir, Kubelet, path); len(found) != 0 {
		t.Errorf("our own socket was taken for CRI-RM's: %+v", found)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	listener.Close()
	if found := Find(dir, Kubelet, ""); len(found) != 0 {
		t.Errorf("nobody listens on the socket that it left behind: %+v", found)
	}
}

// What each is told to be done about: only kubelet's manager leaves something to take.
func TestRemedies(t *testing.T) {
	dir := root(t, map[string]string{
		"var/lib/kubelet/" + kubeletState: `{"policyName":"static","defaultCpuSet":"0"}`, nriPolicy: "", pluginDir + "/10-balloons": "", "run/cri-resmgr/x": "",
	})
	listener, err := net.Listen("unix", filepath.Join(dir, "run/cri-resmgr/cri-resmgr.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	found := Find(dir, Kubelet, "")
	if len(found) != 4 {
		t.Fatalf("%+v", found)
	}
	for _, f := range found {
		if rest := strings.Contains(f.Why, "take-rest"); rest != (f.Leaves != nil) || !strings.Contains(f.Why, "; ") {
			t.Errorf("%s: %q", f.Name, f.Why)
		}
	}
}
