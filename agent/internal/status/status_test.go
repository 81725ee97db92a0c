package status

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/policy"
	"proxima.io/agent/internal/topology"
)

// obliging is a runtime that takes everything.
type obliging struct{}

func (obliging) Update(context.Context, []policy.Change) ([]string, error) { return nil, nil }

// serve starts a server on the source's machine with one container: eight CPUs of its own, 16 GiB.
func serve(t *testing.T, address string) (*engine.Engine, string) {
	t.Helper()
	return serveWith(t, address, engine.Settings{})
}

func serveWith(t *testing.T, address string, settings engine.Settings) (*engine.Engine, string) {
	t.Helper()
	shape, err := topology.ParseShape("sockets=2,cores=24,threads=2,memory=192")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := topology.Read(shape.Recording())
	if err != nil {
		t.Fatal(err)
	}
	settings.Machine, settings.Options, settings.Log = machine, config.Default(), slog.New(slog.DiscardHandler)
	e, err := engine.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	a := engine.Arrival{Annotations: map[string]string{"proxima.io/naer": "app=x"}}
	a.ID, a.Name, a.PodID, a.PodUID, a.PodName, a.Namespace, a.QOS = "c1", "redis", "p1", "u1", "redis-0", "cache", policy.Guaranteed
	a.Request, a.Limit, a.Memory = 8000, 8000, 16<<30
	e.Create(a)
	l, err := Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- (&Server{Engine: e, Node: "worker-1"}).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return e, l.Addr().String()
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := http.Client{}
	if socket, path, ok := strings.Cut(strings.TrimPrefix(url, "http://"), ".sock"); ok {
		url = "http://agent" + path
		client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket+".sock")
		}}
	}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

var sample = regexp.MustCompile(`^proxima_agent_[a-z_]+(\{[a-z]+="[^"]+"\})? [0-9.e+]+$`)

func TestMetricsAreWhatPrometheusReads(t *testing.T) {
	_, address := serve(t, "127.0.0.1:0")
	code, text := get(t, "http://"+address+"/metrics")
	if code != http.StatusOK {
		t.Fatal(code)
	}
	typed := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, found := strings.CutPrefix(line, "# TYPE "); found {
			name, kind, _ := strings.Cut(name, " ")
			if typed[name] || (kind != "gauge" && kind != "counter") || strings.HasSuffix(name, "_total") != (kind == "counter") {
				t.Errorf("%q", line)
			}
			typed[name] = true
			continue
		}
		if strings.HasPrefix(line, "# HELP ") {
			continue
		}
		name, _, _ := strings.Cut(strings.ReplaceAll(line, "{", " "), " ")
		if !sample.MatchString(line) || !typed[name] {
			t.Errorf("not a sample of a metric with a type: %q", line)
		}
	}
	for _, want := range []string{
		"proxima_agent_connected 0", "proxima_agent_containers 1", "proxima_agent_decisions_total 1", "proxima_agent_faults_total 0",
		`proxima_agent_annotations_total{problem="unknown"} 1`, `proxima_agent_pool_free_exclusive_cpus{pool="socket0"} 39`,
		`proxima_agent_pool_free_shared_cpus{pool="socket1"} 48`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("without %q:\n%s", want, text)
		}
	}
}

func TestReadyFollowsTheRuntime(t *testing.T) {
	e, address := serve(t, "127.0.0.1:0")
	for path, want := range map[string]int{"/live": 200, "/ready": 503} {
		if code, text := get(t, "http://"+address+path); code != want || !json.Valid([]byte(text)) {
			t.Errorf("%s without a runtime: %d %s", path, code, text)
		}
	}
	e.Attach(obliging{})
	if code, text := get(t, "http://"+address+"/ready"); code != 200 {
		t.Errorf("with a runtime: %d %s", code, text)
	}
	e.Attach(nil)
	if code, text := get(t, "http://"+address+"/ready"); code != 503 || !strings.Contains(text, "not connected") {
		t.Errorf("the runtime has gone: %d %s", code, text)
	}
}

func TestZonesAndLocations(t *testing.T) {
	_, address := serve(t, filepath.Join(t.TempDir(), "a.sock"))
	_, text := get(t, "http://"+address+"/zones")
	var object NodeResourceTopology
	if err := json.Unmarshal([]byte(text), &object); err != nil || object.Metadata["name"] != "worker-1" || len(object.Zones) != 3 {
		t.Fatalf("%v %s", err, text)
	}
	zone := object.Zones[1]
	cpu, memory := zone.Resources[0], zone.Resources[1]
	if zone.Name != "socket0" || zone.Parent != "root" || cpu != (Resource{"cpu", "48", "48", "40000m"}) ||
		memory != (Resource{"memory", "206158430208", "206158430208", "188978561024"}) {
		t.Errorf("%+v", zone)
	}
	reserved := Zones("n", engine.Status{Pools: []engine.PoolStatus{{CPUs: "0-3", ForPods: 3, Milli: 2500}}})
	if cpu := reserved.Zones[0].Resources[0]; cpu != (Resource{"cpu", "4", "3", "2500m"}) {
		t.Errorf("with one CPU reserved: %+v", cpu)
	}
	_, text = get(t, "http://"+address+"/containers")
	var list []Location
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != 1 || list[0].PodUID != "u1" || len(list[0].Nodes) != 1 || list[0].Nodes[0] != 0 {
		t.Errorf("%v %s", err, text)
	}
}

func TestExplainKnowsItsPods(t *testing.T) {
	_, address := serve(t, filepath.Join(t.TempDir(), "a.sock"))
	var decisions []policy.Decision
	_, text := get(t, "http://"+address+"/explain?pod=redis-0&namespace=cache")
	if err := json.Unmarshal([]byte(text), &decisions); err != nil || len(decisions) != 1 || len(decisions[0].Candidates) != 3 {
		t.Errorf("%v %s", err, text)
	}
	for _, query := range []string{"pod=redis-1", "pod=redis-0&namespace=other", ""} {
		if code, text := get(t, "http://"+address+"/explain?"+query); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", query, code, text)
		}
	}
}

// A port is anybody's: what names pods is on the socket, which is root's.
func TestDetailsAreOnTheSocketOnly(t *testing.T) {
	_, port := serve(t, "127.0.0.1:0")
	_, socket := serve(t, filepath.Join(t.TempDir(), "a.sock"))
	for path, there := range map[string]int{
		"/status": 404, "/containers": 404, "/zones": 404, "/explain?pod=redis-0": 404, "/metrics": 200, "/live": 200, "/ready": 503,
	} {
		code, text := get(t, "http://"+port+path)
		if code != there || (path != "/metrics" && strings.Contains(text, "redis")) {
			t.Errorf("port, %s: %d %s", path, code, text)
		}
		if code, _ := get(t, "http://"+socket+path); code == 404 {
			t.Errorf("socket, %s: %d", path, code)
		}
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

// Only who reaches the socket may release.
func TestReleaseIsForTheSocketOnly(t *testing.T) {
	e, address := serve(t, "127.0.0.1:0")
	response, err := http.Post("http://"+address+"/release", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode < 400 || e.Status().Released {
		t.Errorf("released through the port: %d", response.StatusCode)
	}
	e, socket := serve(t, filepath.Join(t.TempDir(), "a.sock"))
	if n, err := Release(context.Background(), socket); err != nil || n != 1 || !e.Status().Released {
		t.Errorf("not released through the socket: %d containers, %v", n, err)
	}
}

func TestARefusedReleaseSaysWhy(t *testing.T) {
	_, socket := serveWith(t, filepath.Join(t.TempDir(), "a.sock"), engine.Settings{DryRun: true})
	if _, err := Release(context.Background(), socket); err == nil || !strings.Contains(err.Error(), "dry run") {
		t.Errorf("%v", err)
	}
}

func TestTwoAgentsDoNotShareASocket(t *testing.T) {
	_, socket := serve(t, filepath.Join(t.TempDir(), "a.sock"))
	if l, err := Listen(socket); err == nil {
		l.Close()
		t.Error("a second agent took the socket of the first")
	}
}
