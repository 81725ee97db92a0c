package versions_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proxima.io/operator/api/v1alpha1"
	"proxima.io/operator/internal/versions"
	"proxima.io/operator/internal/versions/server"
)

const offered = `
versions:
  - product: pxc-operator
    operator: 1.18.0
    matrix:
      pxc:
        8.4.5-5.1: {imagePath: "percona/percona-xtradb-cluster:8.4.5-5.1", status: recommended}
        8.0.43-34.1: {imagePath: "percona/percona-xtradb-cluster:8.0.43-34.1", status: available}
        8.0.42-33.1: {imagePath: "percona/percona-xtradb-cluster:8.0.42-33.1", status: recommended}
        8.0.41-32.1: {imagePath: "percona/percona-xtradb-cluster:8.0.41-32.1", status: recommended}
        8.0.39-30.1: {imagePath: "percona/percona-xtradb-cluster:8.0.39-30.1", status: disabled}
`

// service is a version service at a port of its own, and counts what it is asked.
type service struct {
	*httptest.Server
	asked atomic.Int32
	last  atomic.Value
}

func serve(t *testing.T) *service {
	t.Helper()
	path := filepath.Join(t.TempDir(), "versions.yaml")
	if err := os.WriteFile(path, []byte(offered), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := server.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{}
	handler := file.Handler()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		s.last.Store(r.URL.String())
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func at(text string) time.Time {
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return moment
}

func stamp(text string) *metav1.Time {
	moment := metav1.NewTime(at(text))
	return &moment
}

// request is that of three members of 8.0.41, checked a day ago at 4:00.
func request(endpoint string) versions.Request {
	return versions.Request{
		Options: v1alpha1.UpgradeOptions{
			Apply: "recommended", Schedule: "0 4 * * *", TimeZone: "Etc/UTC", Window: "2h",
			VersionServiceEndpoint: endpoint,
			Product:                "pxc-operator", OperatorVersion: "1.18.0", Component: "pxc",
		},
		Status: v1alpha1.Versions{Apply: "recommended", LastCheck: stamp("2026-11-29T04:00:01Z"),
			Running: "8.0.41-32.1"},
		Running:  []string{"8.0.41-32.1", "8.0.41-32.1", "8.0.41-32.1"},
		Created:  *stamp("2026-11-01T12:00:00Z"),
		Image:    "percona/percona-xtradb-cluster:8.0.41-32.1",
		Replicas: 3,
	}
}

// settled takes turns until one of them is not waiting for an answer.
func settled(t *testing.T, client *versions.Client, r versions.Request, now time.Time) versions.Result {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		result := client.Next(context.Background(), r, now)
		if result.Condition != nil || fmt.Sprint(result.Status) != fmt.Sprint(r.Status) {
			return result
		}
	}
	t.Fatal("no turn came to anything within 30 s")
	return versions.Result{}
}

func TestWhatATurnComesTo(t *testing.T) {
	service := serve(t)
	const noImage = ""
	const image42 = "percona/percona-xtradb-cluster:8.0.42-33.1"
	for _, row := range []struct {
		situation string
		change    func(*versions.Request)
		now       string
		condition string // status, reason and a part of the message
		image     string
		asked     string // the end of what was asked; empty: nothing
		checked   bool
	}{
		{"at its time", func(*versions.Request) {}, "2026-11-30T04:00:00Z",
			"True ImageSet image " + image42, image42,
			"/recommended?databaseVersion=8.0.41-32.1&platform=kubernetes", true},
		{"late, in the window", func(*versions.Request) {}, "2026-11-30T05:30:00Z", "True ImageSet",
			image42, "/recommended?", true},
		{"before its time", func(*versions.Request) {}, "2026-11-30T03:59:59Z", "", noImage, "", false},
		{"behind the window", func(*versions.Request) {}, "2026-11-30T06:00:01Z", "", noImage, "", false},
		{"checked already", func(r *versions.Request) { r.Status.LastCheck = stamp("2026-11-30T04:00:00Z") },
			"2026-11-30T04:00:10Z", "", noImage, "", false},
		{"created just now, members run", func(r *versions.Request) {
			r.Status, r.Created = v1alpha1.Versions{}, *stamp("2026-11-30T04:30:00Z")
		}, "2026-11-30T04:30:01Z", "", noImage, "", false},
		{"latest", func(r *versions.Request) { r.Options.Apply, r.Status.Apply = "latest", "latest" },
			"2026-11-30T04:00:00Z",
			"True ImageSet", "percona/percona-xtradb-cluster:8.0.43-34.1", "/latest?", true},
		{"apply has changed", func(r *versions.Request) { r.Options.Apply = "latest" },
			"2026-11-30T12:00:00Z",
			"True ImageSet", "percona/percona-xtradb-cluster:8.0.43-34.1", "/latest?", true},
		{"one version", func(r *versions.Request) { r.Options.Apply = "8.0.43-34.1" }, "2026-11-30T12:00:00Z",
			"True ImageSet", "percona/percona-xtradb-cluster:8.0.43-34.1", "/8.0.43-34.1?", true},
		{"one version that runs", func(r *versions.Request) {
			r.Options.Apply, r.Status.Apply = "8.0.41-32.1", "8.0.41-32.1"
		}, "2026-11-30T04:00:00Z", "False NothingNewer 8.0.41-32.1 runs", noImage, "", true},
		{"an older version", func(r *versions.Request) { r.Options.Apply = "8.0.39-30.1" },
			"2026-11-30T12:00:00Z",
			"False VersionBackwards 8.0.39-30.1 is older than 8.0.41-32.1", noImage, "", true},
		{"another series", func(r *versions.Request) { r.Options.Apply = "8.4-recommended" },
			"2026-11-30T12:00:00Z",
			"False VersionOtherSeries 8.4 is no update of 8.0.41-32.1", noImage, "", true},
		{"a version that is not there", func(r *versions.Request) { r.Options.Apply = "8.0.44-1.1" },
			"2026-11-30T12:00:00Z",
			"Unknown VersionNotOffered 404: pxc-operator 1.18.0: pxc: there is no version 8.0.44-1.1",
			noImage, "/8.0.44-1.1?", true},
		{"an operator that is not there",
			func(r *versions.Request) { r.Options.OperatorVersion = "1.99.0" }, "2026-11-30T04:00:00Z",
			"Unknown VersionNotOffered nothing is known of pxc-operator 1.99.0", noImage,
			"/1.99.0/recommended?", true},
		{"another component", func(r *versions.Request) { r.Options.Component = "haproxy" },
			"2026-11-30T04:00:00Z",
			"Unknown VersionAnswerMalformed offers 0 versions of haproxy", noImage, "/recommended?", true},
		{"nobody there", func(r *versions.Request) { r.Options.VersionServiceEndpoint = "http://127.0.0.1:1" }, "2026-11-30T04:00:00Z",
			"Unknown VersionServiceUnreachable refused", noImage, "", true},
		{"disabled", func(r *versions.Request) { r.Options.Apply = "disabled" }, "2026-11-30T04:00:00Z",
			"False Disabled apply is disabled", noImage, "", false},
		{"a zone that is none", func(r *versions.Request) { r.Options.TimeZone = "Mars/Olympus" },
			"2026-11-30T04:00:00Z",
			`Unknown UpgradeOptionsInvalid time zone "Mars/Olympus" is not known`, noImage, "", false},
		{"report", func(r *versions.Request) { r.Options.Report = true }, "2026-11-30T04:00:00Z",
			"True Reported 8.0.42-33.1 is available", noImage, "/recommended?", true},
		{"a backup runs", func(r *versions.Request) { r.Backup = true }, "2026-11-30T04:00:00Z",
			"Unknown BackupRunning left to the next time", noImage, "", true},
		{"set already, not rolled yet", func(r *versions.Request) { r.Image = image42 },
			"2026-11-30T04:00:00Z",
			"True ImageSet", noImage, "/recommended?", true},
		{"no proxy answers", func(r *versions.Request) { r.Running = nil }, "2026-11-30T04:00:00Z",
			"Unknown RunningVersionUnknown no proxy says", noImage, "", false},
		{"no proxy answers, and the first check is still to come", func(r *versions.Request) {
			r.Running, r.Status.LastCheck = nil, nil
		}, "2026-11-30T04:00:00Z", "Unknown RunningVersionUnknown no proxy says", noImage, "", false},
		{"the same, at another time", func(r *versions.Request) {
			r.Running, r.Status.LastCheck = nil, nil
		}, "2026-11-30T12:00:00Z", "", noImage, "", false},
		{"members of two series", func(r *versions.Request) { r.Running[1] = "8.4.5-5.1" },
			"2026-11-30T04:00:00Z",
			"Unknown RunningVersionUnknown members run 8.0.41-32.1 and 8.4.5-5.1", noImage, "", false},
		{"the newest member counts", func(r *versions.Request) { r.Running[1] = "8.0.43-34.1" },
			"2026-11-30T04:00:00Z",
			"False NothingNewer", noImage, "/recommended?databaseVersion=8.0.43-34.1", true},
		{"a member away that may have run a newer one", func(r *versions.Request) {
			r.Running, r.Status.Wanted = r.Running[:2], "8.0.43-34.1"
		}, "2026-11-30T04:00:00Z", "False VersionBackwards 8.0.42-33.1 is older than 8.0.43-34.1", noImage,
			"/recommended?", true},
		{"a broken update, and a version that mends it", func(r *versions.Request) {
			r.Options.Apply, r.Running, r.Status.Wanted = "8.0.43-34.1", r.Running[:2], "8.0.42-33.1"
		}, "2026-11-30T04:00:00Z", "True ImageSet", "percona/percona-xtradb-cluster:8.0.43-34.1",
			"/8.0.43-34.1?", true},

		{"no member has run", func(r *versions.Request) { r.Running, r.Status = nil, v1alpha1.Versions{} },
			"2026-11-30T12:00:00Z",
			"True ImageSet", image42, "/8.0-recommended?platform=kubernetes", true},
		{"no member has run, one version", func(r *versions.Request) {
			r.Running, r.Status, r.Options.Apply = nil, v1alpha1.Versions{}, "8.0.43-34.1"
		}, "2026-11-30T12:00:00Z", "True ImageSet", "percona/percona-xtradb-cluster:8.0.43-34.1",
			"/8.0.43-34.1?platform=kubernetes", true},
		{"no member has run, a tag of another series", func(r *versions.Request) {
			r.Running, r.Status, r.Options.Apply = nil, v1alpha1.Versions{}, "8.4-recommended"
		}, "2026-11-30T12:00:00Z", "False VersionOtherSeries", noImage, "", true},
		{"no member has run, no tag", func(r *versions.Request) {
			r.Running, r.Status, r.Image = nil, v1alpha1.Versions{}, "registry:5000/pxc"
		}, "2026-11-30T12:00:00Z", "Unknown RunningVersionUnknown write a series, as 8.0-recommended",
			noImage, "", true},
		{"no member has run, no tag, a series", func(r *versions.Request) {
			r.Running, r.Status, r.Image, r.Options.Apply = nil, v1alpha1.Versions{}, "registry:5000/pxc",
				"8.0-latest"
		}, "2026-11-30T12:00:00Z", "True ImageSet", "percona/percona-xtradb-cluster:8.0.43-34.1",
			"/8.0-latest?platform=kubernetes", true},

		{"what was found runs", func(r *versions.Request) {
			r.Status.LastCheck, r.Status.Available = stamp("2026-11-30T04:00:00Z"), "8.0.41-32.1"
		}, "2026-11-30T12:00:00Z", "False NothingNewer 8.0.41-32.1 runs", noImage, "", false},
		{"what was found runs, and one member says nothing", func(r *versions.Request) {
			r.Status.LastCheck, r.Status.Available = stamp("2026-11-30T04:00:00Z"), "8.0.41-32.1"
			r.Running = r.Running[:2]
		}, "2026-11-30T12:00:00Z", "", noImage, "", false},
		{"what was found does not run everywhere", func(r *versions.Request) {
			r.Status.LastCheck, r.Status.Available = stamp("2026-11-30T04:00:00Z"), "8.0.41-32.1"
			r.Running[2] = "8.0.40-31.1"
		}, "2026-11-30T12:00:00Z", "", noImage, "", false},
	} {
		t.Run(row.situation, func(t *testing.T) {
			r := request(service.URL)
			row.change(&r)
			before := service.asked.Load()
			result := settled(t, versions.NewClient(2*time.Second), r, at(row.now))
			got := ""
			if c := result.Condition; c != nil {
				got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
				if c.Type != v1alpha1.UpdateAvailable {
					t.Errorf("a condition of type %s", c.Type)
				}
			}
			words := strings.SplitN(row.condition+"  ", " ", 3)
			if !strings.HasPrefix(got, strings.TrimSpace(words[0]+" "+words[1])) || !strings.Contains(got,
				strings.TrimSpace(words[2])) ||
				(row.condition == "") != (got == "") {
				t.Errorf("condition %q, not %q", got, row.condition)
			}
			if result.Image != row.image {
				t.Errorf("image %q, not %q", result.Image, row.image)
			}
			if asked := service.asked.Load() - before; (asked > 0) != (row.asked != "") || asked > 1 {
				t.Errorf("asked %d times", asked)
			} else if last, _ := service.last.Load().(string); asked > 0 && !strings.Contains(last,
				row.asked) {
				t.Errorf("asked %s, not %s", last, row.asked)
			}
			checked := result.Status.LastCheck != nil && result.Status.LastCheck.Time.Equal(at(row.now))
			if checked != row.checked {
				t.Errorf("last check %s, next %s", result.Status.LastCheck, result.Status.NextCheck)
			}
		})
	}
}

// A year of turns in which every object's state is kept and the operator is away in between: one check a day,
// at its time or when the operator is back in the window, and each version once.
func TestChecksOfAYearAreMadeOnceEach(t *testing.T) {
	service := serve(t)
	r := request(service.URL)
	r.Options.TimeZone, r.Options.Window = "America/New_York", "1h"
	r.Status = v1alpha1.Versions{}
	r.Created = *stamp("2026-01-01T00:00:00Z")
	checks, images := 0, 0
	end := at("2027-01-01T00:00:00Z")
	for now := at("2026-01-01T00:00:00Z"); now.Before(end); now = now.Add(20 * time.Minute) {
		if now.Day() == 13 {
			continue
		}
		// Each turn is that of an operator that has just begun.
		result := settledOrQuiet(t, r, now)
		if last := result.Status.LastCheck; last != nil && !last.Equal(r.Status.LastCheck) {
			checks++
		}
		if result.Image != "" {
			images++
			r.Image = result.Image
			r.Running = []string{"8.0.42-33.1", "8.0.42-33.1", "8.0.42-33.1"}
		}
		r.Status = result.Status
	}
	if want := 365 - 12; checks != want || images != 1 || int(service.asked.Load()) != want {
		t.Errorf("%d checks (not %d), %d images, asked %d times", checks, want, images, service.asked.Load())
	}
}

// settledOrQuiet is a turn that comes to something, if the service is asked, and else the first.
func settledOrQuiet(t *testing.T, r versions.Request, now time.Time) versions.Result {
	t.Helper()
	client := versions.NewClient(2 * time.Second)
	result := client.Next(context.Background(), r, now)
	same := result.Condition == nil && fmt.Sprint(result.Status) == fmt.Sprint(r.Status)
	if same && result.Status.NextCheck != nil && !result.Status.NextCheck.After(now) {
		return settled(t, client, r, now)
	}
	return result
}

func TestHundredObjectsWithOneQuestionAskOnce(t *testing.T) {
	service := serve(t)
	client := versions.NewClient(2 * time.Second)
	for range 100 {
		if result := settled(t, client, request(service.URL),
			at("2026-11-30T04:00:00Z")); result.Image == "" {
			t.Fatalf("%+v", result)
		}
	}
	if asked := service.asked.Load(); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	settled(t, client, request(service.URL), at("2026-11-30T05:00:00Z"))
	if asked := service.asked.Load(); asked != 2 {
		t.Errorf("an answer of an hour ago was used: asked %d times", asked)
	}
}

func TestTurnDoesNotWaitForAService(t *testing.T) {
	end := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer silent.Close()
	defer close(end)
	client := versions.NewClient(2 * time.Second)
	r := request(silent.URL)
	ctx, cancel := context.WithCancel(context.Background())
	began := time.Now()
	result := client.Next(ctx, r, at("2026-11-30T04:00:00Z"))
	cancel()
	if took := time.Since(began); took > time.Second || result.Condition != nil {
		t.Errorf("a turn took %s: %+v", took, result)
	}
	if result := settled(t, client, r,
		at("2026-11-30T04:00:00Z")); result.Condition.Reason != versions.Unreachable ||
		!strings.Contains(result.Condition.Message, "Timeout") {
		t.Errorf("%+v", result.Condition)
	}
}
