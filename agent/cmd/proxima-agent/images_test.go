package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"proxima.io/agent/internal/lab"
)

func agentVersion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// The manifests run the version that the images have.
func TestManifestsNameTheVersion(t *testing.T) {
	for _, file := range []string{"nri.yaml", "cri.yaml"} {
		text, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if want := "image: proxima-agent:" + agentVersion(t); !strings.Contains(string(text), want) || strings.Contains(string(text), ":latest") {
			t.Errorf("%s does not say %q", file, want)
		}
	}
}

// files reads an archive.
func files(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Clean(header.Name)] = content
	}
}

// The image for both architectures is what an OCI archive has to be, and the program in arm64's runs.
func TestRealImages(t *testing.T) {
	emulator := lab.ARM64(t)
	out := filepath.Join(t.TempDir(), "oci.tar")
	if text, err := exec.Command("sh", "../../deploy/images.sh", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	archive, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	found := files(t, archive)
	type descriptor struct {
		Digest   string
		Size     int
		Platform struct{ Architecture string }
	}
	read := func(name string, into any) {
		t.Helper()
		if err := json.Unmarshal(found[name], into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	blob := func(d descriptor) string {
		t.Helper()
		name := "blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:")
		if len(found[name]) != d.Size || d.Size == 0 {
			t.Fatalf("%s has %d bytes, not %d", name, len(found[name]), d.Size)
		}
		return name
	}
	var index, both struct{ Manifests []descriptor }
	read("index.json", &index)
	read(blob(index.Manifests[0]), &both)
	if len(both.Manifests) != 2 {
		t.Fatalf("%+v", both)
	}
	for _, m := range both.Manifests {
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		read(blob(m), &manifest)
		var config struct{ Architecture string }
		read(blob(manifest.Config), &config)
		if config.Architecture != m.Platform.Architecture {
			t.Errorf("%+v in %+v", config, m)
		}
		program := filepath.Join(t.TempDir(), "proxima-agent")
		if err := os.WriteFile(program, files(t, found[blob(manifest.Layers[0])])["proxima-agent"], 0o755); err != nil {
			t.Fatal(err)
		}
		run := []string{program}
		if config.Architecture == "arm64" {
			run = []string{emulator, program}
		}
		said, err := exec.Command(run[0], append(run[1:], "version")...).CombinedOutput()
		if want := "proxima-agent " + agentVersion(t) + " " + config.Architecture + "\n"; err != nil || string(said) != want {
			t.Errorf("%v: %q, want %q", err, said, want)
		}
		said, err = exec.Command(run[0], append(run[1:], "simulate", "--shape", "sockets=2,cores=24,threads=2,memory=192", pair)...).CombinedOutput()
		if err != nil || !strings.Contains(string(said), "proxima-agent            100.0 %") {
			t.Errorf("%s simulates: %v\n%s", config.Architecture, err, said)
		}
	}
}
