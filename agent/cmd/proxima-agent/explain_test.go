package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"proxima.io/agent/internal/policy"
)

const isolated = `
kind: Pod
metadata: {name: iso, annotations: {proxima.io/cpus: isolated}}
spec: {containers: [{name: b, resources: {limits: {cpu: 2, memory: 1Gi}}}]}
`

func manifestFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pods.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Whatever decides is shown: here socket 1, for its isolated CPUs alone.
func TestExplainShowsEveryRule(t *testing.T) {
	var out strings.Builder
	if err := dispatch([]string{"explain", "--shape", "sockets=2,cores=8,threads=2,isolated=12-15", "iso", manifestFile(t, isolated)}, &out); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(out.String(), "\n\n")
	cells := regexp.MustCompile(` {2,}`)
	var rows []map[string]string
	lines := strings.Split(strings.TrimSpace(table), "\n")
	header := cells.Split(lines[0], -1)
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range cells.Split(line, -1) {
			row[header[i]] = cell
		}
		rows = append(rows, row)
	}
	if rows[0]["POOL"] != "socket1" || rows[0]["ISOLATED"] != "true" || rows[1]["POOL"] != "root" || rows[2]["POOL"] != "socket0" || rows[2]["ISOLATED"] != "false" {
		t.Errorf("%s", out.String())
	}
	fields := 0
	for _, f := range reflect.VisibleFields(reflect.TypeFor[policy.Candidate]()) {
		if f.IsExported() && f.Name != "Why" { // which stands beside Fits
			fields++
		}
	}
	if len(header) != fields {
		t.Errorf("%d columns %q for the %d fields of a candidate", len(header), header, fields)
	}
}
