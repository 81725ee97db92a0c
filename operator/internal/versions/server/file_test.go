package server

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// text is a file that offers one version of mariadb.
func text(version string) string {
	return "versions:\n  - product: mariadb\n    operator: 1.0.0\n    matrix:\n      mariadb:\n        " + version +
		": {imagePath: \"mariadb:" + version + "\", status: recommended}\n"
}

// lines is a log that a test reads while it is written.
type lines struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(data []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.Write(data)
}

func (l *lines) count(part string) int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return strings.Count(l.text.String(), part)
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// write exchanges a file at once, as a reader in between would find it empty.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestBadFileIsRefusedWhileTheOneBeforeIsServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "versions.yaml")
	write(t, path, text("11.8.3"))
	file, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		file.Follow(ctx, time.Millisecond, slog.New(slog.NewTextHandler(log, nil)))
	}()
	defer func() { cancel(); <-ended }()
	service := httptest.NewServer(file.Handler())
	defer service.Close()
	serves := func(version string) bool {
		_, body := get(t, service.URL+"/versions/v1/mariadb/1.0.0/recommended")
		return strings.Contains(body, `"mariadb:`+version+`"`)
	}
	if !serves("11.8.3") {
		t.Error("the first file is not served")
	}

	write(t, path, strings.Replace(text("11.8.4"), "status: recommended", "status: best", 1))
	until(t, "the bad file is refused", func() bool {
		return log.count(`versions.yaml: line 6: \"best\" is no status: write one of recommended`) == 1
	})
	if !serves("11.8.3") {
		t.Error("a bad file has ended what was served")
	}

	write(t, path, strings.Replace(text("11.8.4"), "mariadb:\n        11", "mysql:\n        11", 1))
	until(t, "a file without the database is refused", func() bool {
		return log.count("mariadb 1.0.0 has no versions of mariadb, which its name says") == 1
	})

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	until(t, "that the file has gone is said", func() bool { return log.count("no such file") == 1 })
	if !serves("11.8.3") {
		t.Error("a file that has gone has ended what was served")
	}

	// A ConfigMap's volume exchanges a link to a folder.
	other := t.TempDir()
	write(t, filepath.Join(other, "versions.yaml"), text("11.8.9"))
	if err := os.Symlink(filepath.Join(other, "versions.yaml"), path); err != nil {
		t.Fatal(err)
	}
	until(t, "the good file is served", func() bool { return serves("11.8.9") })
	if got := log.count("refused;"); got != 3 {
		t.Errorf("%d refusals are logged, and there were 3", got)
	}
	for _, version := range []string{"11.8.10", "11.8.11", "11.8.12"} {
		write(t, path, text(version))
		until(t, version+" is served", func() bool { return serves(version) })
	}
	changes := func() int { return log.count("other versions are served") }
	until(t, "each change is logged", func() bool { return changes() >= 4 })
	if got := changes(); got != 4 {
		t.Errorf("%d changes are logged, and there were 4", got)
	}
}

func TestFileHasToBeGoodAtTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "versions.yaml")
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
	for text, want := range map[string]string{
		"versions: {}\n": "versions.yaml: line 1: `versions` is no list",
		"versions: []\n": "versions.yaml: there is no product in it",
	} {
		write(t, path, text)
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %s", err, want)
		}
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body.String()
}
