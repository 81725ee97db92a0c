package main

import (
	"errors"
	"flag"
	"strings"
	"testing"
)

func TestCommandLines(t *testing.T) {
	pod := manifestFile(t, isolated)
	for line, want := range map[string]string{
		"draw":                             "unknown verb",
		"topology node.txt":                "takes flags only, not \"node.txt\"",
		"run now":                          "takes flags only",
		"status --jsn":                     "proxima-agent status --help",
		"simulate --shape cores=4":         "no manifests",
		"simulate " + pod + " --json":      "flags go first",
		"explain":                          "no pod named",
		"explain --shape cores=4 x " + pod: "no pod is called x",
		"simulate --config /none " + pod:   "/none",
		"status --socket /none/a.sock":     "no agent answers on /none/a.sock: dial",
	} {
		var out strings.Builder
		if err := dispatch(strings.Fields(line), &out); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: %v, and it prints %q; want %q", line, err, out.String(), want)
		}
	}
	for _, v := range verbs() {
		var out strings.Builder
		if err := dispatch([]string{v.name, "--help"}, &out); !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(out.String(), "proxima-agent "+v.name) {
			t.Errorf("%s --help: %v\n%s", v.name, err, out.String())
		}
	}
}
