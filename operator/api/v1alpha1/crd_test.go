package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"proxima.io/operator/internal/lab"
)

var server *lab.Server

func TestMain(m *testing.M) { lab.Main(m, &server) }

func strict(t *testing.T) client.Client {
	t.Helper()
	lab.Need(t, server)
	connected, err := client.New(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client.WithFieldValidation(connected, "Strict")
}

func good(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("testdata/good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace("default")
		objects = append(objects, object)
	}
	return objects
}

func TestTheAPIServerTakesAGoodObject(t *testing.T) {
	connected := strict(t)
	for _, object := range good(t) {
		t.Run(object.GetName(), func(t *testing.T) {
			if err := connected.Create(t.Context(), object); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheAPIServerRefusesABadObjectInWords(t *testing.T) {
	connected := strict(t)
	text, err := os.ReadFile("testdata/bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Says string
		Spec json.RawMessage
	}
	if err := yaml.UnmarshalStrict(text, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < 60 {
		t.Errorf("only %d rows", len(rows))
	}
	for index, row := range rows {
		t.Run(fmt.Sprintf("%d %s", index, row.Says), func(t *testing.T) {
			object := good(t)[1]
			object.SetName(fmt.Sprintf("bad-%d", index))
			whole, _ := json.Marshal(object.Object["spec"])
			changed, err := jsonpatch.MergePatch(whole, row.Spec)
			if err != nil {
				t.Fatal(err)
			}
			var spec map[string]any
			if err := json.Unmarshal(changed, &spec); err != nil {
				t.Fatal(err)
			}
			object.Object["spec"] = spec
			err = connected.Create(t.Context(), object)
			if err == nil || !strings.Contains(err.Error(), row.Says) {
				t.Errorf("%s\nshould be refused with %q: %v", row.Spec, row.Says, err)
			}
		})
	}
}

func TestTheSetOfAnObjectStays(t *testing.T) {
	connected := strict(t)
	object := good(t)[0]
	object.SetName("stays")
	if err := connected.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(object.Object, "other", "spec", "statefulSet"); err != nil {
		t.Fatal(err)
	}
	err := connected.Update(t.Context(), object)
	if err == nil || !strings.Contains(err.Error(), "statefulSet cannot be changed") {
		t.Error(err)
	}
}

func TestWhatIsLeftOutHasTheDefaultsOfTheReference(t *testing.T) {
	connected := strict(t)
	object := good(t)[0]
	object.SetName("defaults")
	if err := connected.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(object.Object["spec"].(map[string]any)["limits"])
	if want := `{"drain":"60s","move":"5s","moves":10,"pod":"2h","unschedulable":"120s"}`; string(got) != want {
		t.Errorf("limits: %s, not %s", got, want)
	}
}

// What is generated of the types is committed, so that nothing but Go's own compiler is needed to build.
func TestGeneratedFilesAreThoseOfTheTypes(t *testing.T) {
	folder := t.TempDir()
	generate := exec.Command("go", "tool", "controller-gen", "object", "crd", "paths=.",
		"output:object:dir="+folder, "output:crd:dir="+folder)
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, committed := range map[string]string{
		"zz_generated.deepcopy.go":     ".",
		"proxima.io_smartupdates.yaml": "../../config/crd",
	} {
		want, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(filepath.Join(committed, name)); string(got) != string(want) {
			t.Errorf("%s differs from what is generated: run `make -C operator generate`", name)
		}
	}
}
