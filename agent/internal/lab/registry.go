package lab

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// SlowRegistry serves one image, its layer byte by byte over the given time, and returns the image's name.
func SlowRegistry(t testing.TB, takes time.Duration) string {
	t.Helper()
	prepare(t)
	layer, err := archive(filepath.Join(cache, "libs")) // which no runtime here has already
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(layer); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	blobs := map[string][]byte{}
	store := func(content []byte) map[string]any {
		sum := sha256.Sum256(content)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		blobs[digest] = content
		return map[string]any{"digest": digest, "size": len(content)}
	}
	document := func(v map[string]any) []byte {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	sum := sha256.Sum256(layer)
	config := store(document(map[string]any{"architecture": "amd64", "os": "linux",
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}}}))
	config["mediaType"] = "application/vnd.oci.image.config.v1+json"
	only := store(packed.Bytes())
	only["mediaType"] = "application/vnd.oci.image.layer.v1.tar+gzip"
	const manifestType = "application/vnd.oci.image.manifest.v1+json"
	manifest := document(map[string]any{"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []any{only}})
	digest := store(manifest)["digest"].(string)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		content := blobs[name]
		switch {
		case strings.Contains(r.URL.Path, "/manifests/"):
			w.Header().Set("Content-Type", manifestType)
			w.Header().Set("Docker-Content-Digest", digest)
			content = manifest
		case content == nil:
			w.WriteHeader(http.StatusOK) // /v2/
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		if r.Method == http.MethodHead {
			return
		}
		if name != only["digest"] {
			_, _ = w.Write(content) // fails only where the runtime has gone
			return
		}
		drip(w, content, takes)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/slow:1"
}

// drip writes the content over the given time, something every second.
func drip(w http.ResponseWriter, content []byte, takes time.Duration) {
	steps := max(1, int(takes/time.Second))
	for i := range steps {
		from, to := len(content)*i/steps, len(content)*(i+1)/steps
		if _, err := w.Write(content[from:to]); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		time.Sleep(time.Second)
	}
}
