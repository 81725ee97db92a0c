package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/nri"
	"proxima.io/agent/internal/status"
)

// An agent without a runtime: who changes its configuration hears what is wrong with it.
func TestABadConfigurationIsSeenInStatus(t *testing.T) {
	dir := t.TempDir()
	s := &service{root: "/", config: filepath.Join(dir, "etc/agent.yaml"), state: filepath.Join(dir, "state"),
		socket: filepath.Join(dir, "socket"), dryRun: true, log: slog.New(slog.DiscardHandler)}
	s.door.nri, s.door.index = filepath.Join(dir, "nri"), nri.LastIndex
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	notes := func(refused int, want string) {
		t.Helper()
		lab.Eventually(t, fmt.Sprintf("%d refused, note %q", refused, want), func() error {
			var got engine.Status
			if err := status.Get(ctx, s.socket, "/status", &got); err != nil {
				return err
			}
			if all := strings.Join(got.Notes, "\n"); got.Counters.Refused != refused || !strings.Contains(all, want) {
				return fmt.Errorf("%d refused, notes %q", got.Counters.Refused, all)
			}
			return nil
		})
	}
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(s.config, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	notes(0, "agent.yaml is not there")
	if err := os.Mkdir(filepath.Dir(s.config), 0o755); err != nil {
		t.Fatal(err)
	}
	configure("default: {colocatePod: true}")
	notes(1, `agent.yaml:1: unknown option "colocatePod"`)
	configure("default: {reservedResources: {cpu: 9999}}")
	notes(2, "agent.yaml:1: reservedResources take all available CPUs")
	configure("node.other: {}")
	notes(2, "none of the layers default")
}
