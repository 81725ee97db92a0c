package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"proxima.io/operator/internal/versions"
)

// examples are the committed files.
const examples = "../../../examples"

func example(t *testing.T, name string) *httptest.Server {
	t.Helper()
	file, err := Open(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	service := httptest.NewServer(file.Handler())
	t.Cleanup(service.Close)
	return service
}

func TestThreeRoutesAnswerAsPerconasService(t *testing.T) {
	service := example(t, "pxc.json")
	for _, row := range []struct {
		path   string
		status int
		want   string
	}{
		{"pxc-operator/1.18.0/recommended?databaseVersion=8.0.41-32.1", 200, `{"versions":[{"matrix":{` +
			`"backup":{"8.0.35":{"imagePath":"percona/percona-xtrabackup:8.0.35-33.1","imageHash":"","imageHashArm64":"",` +
			`"status":"recommended","critical":false}},"pxc":{"8.0.42-33.1":{` +
			`"imagePath":"percona/percona-xtradb-cluster:8.0.42-33.1","imageHash":"","imageHashArm64":"",` +
			`"status":"recommended","critical":false}}},"operator":"1.18.0","product":"pxc-operator"}]}`},
		{"pxc-operator/1.18.0/disabled", 200, `{"versions":[]}`},
		{"pxc-operator/1.18.0/never", 200, `{"versions":[]}`},
		{"pxc-operator/1.18.0/8.0.99-1.1", 404, `{"code":5,"details":[],` +
			`"message":"pxc-operator 1.18.0: pxc: there is no version 8.0.99-1.1"}`},
		{"pxc-operator/1.18.0/newest", 400,
			`{"code":3,"details":[],"message":"apply \"newest\" is not known: write `},
		{"pxc-operator/1.18.0/recommended?databaseVersion=eight", 400,
			`{"code":3,"details":[],"message":"databaseVersion: `},
		{"pxc-operator/1.99.0/recommended", 404,
			`{"code":5,"details":[],"message":"nothing is known of pxc-operator 1.99.0"}`},
		{"pxc-operator/1.99.0", 404,
			`{"code":5,"details":[],"message":"nothing is known of pxc-operator 1.99.0"}`},
		{"pg-operator", 404, `{"code":5,"details":[],"message":"nothing is known of pg-operator"}`},
	} {
		status, body := get(t, service.URL+"/versions/v1/"+row.path)
		var answer any
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Errorf("%s: %s is no JSON", row.path, body)
			continue
		}
		sorted, _ := json.Marshal(answer)
		var wanted any
		if json.Unmarshal([]byte(row.want), &wanted) == nil {
			again, _ := json.Marshal(wanted)
			row.want = string(again)
		}
		if status != row.status || !strings.HasPrefix(string(sorted), row.want) {
			t.Errorf("%s: %d %s\nnot %d %s", row.path, status, sorted, row.status, row.want)
		}
	}
	for path, want := range map[string]int{"pxc-operator": 6, "pxc-operator/1.18.0": 6} {
		status, body := get(t, service.URL+"/versions/v1/"+path)
		if got := strings.Count(body, "percona-xtradb-cluster:"); status != http.StatusOK || got != want {
			t.Errorf("%s: %d with %d versions, not %d", path, status, got, want)
		}
	}
	if status, _ := get(t, service.URL+"/healthz"); status != http.StatusOK {
		t.Errorf("a probe is answered %d", status)
	}
	response, err := http.Post(service.URL+"/versions/v1/pxc-operator", "application/json",
		strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a POST is answered %d", response.StatusCode)
	}
}

func TestClientGetsOneVersionOfEachExample(t *testing.T) {
	for _, row := range []struct{ file, product, operator, component, apply, running, want string }{
		{"mariadb.yaml", "mariadb", "1.0.0", "mariadb", "recommended", "10.11.19", "10.11.19"},
		{"mariadb.yaml", "mariadb", "1.0.0", "mariadb", "recommended", "10.11.9", "10.11.19"},
		{"mariadb.yaml", "mariadb", "1.0.0", "mariadb", "recommended", "11.8.3", "11.8.9"},
		{"mariadb.yaml", "mariadb", "1.0.0", "mariadb", "11.8-recommended", "", "11.8.9"},
		{"mariadb.yaml", "mariadb", "1.0.0", "mariadb", "11.8.3", "", "11.8.3"},
		{"pxc.json", "pxc-operator", "1.18.0", "pxc", "latest", "8.0.36-28.1", "8.0.42-33.1"},
		{"pxc.json", "pxc-operator", "1.18.0", "backup", "recommended", "8.0.36-28.1", "8.0.35"},
	} {
		service := example(t, row.file)
		entry, refused := versions.NewClient(10*time.Second).Ask(context.Background(), versions.Question{
			Endpoint: service.URL, Product: row.product, OperatorVersion: row.operator,
			Component: row.component,
			Word:      row.apply, DatabaseVersion: row.running,
		})
		if refused != nil || entry.Version.String() != row.want {
			t.Errorf("%+v: %s (%v)", row, entry.Version, refused)
		}
	}
}
