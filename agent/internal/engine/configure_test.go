package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"proxima.io/agent/internal/config"
)

func TestARefusedConfigurationShowsUntilAGoodOne(t *testing.T) {
	e, _ := start(t, "cores=4", Settings{})
	refusals := 0
	refused := func(what string) {
		t.Helper()
		refusals++
		s := e.Status()
		if s.Counters.Refused != refusals || !slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, what) }) {
			t.Errorf("%d refused, notes %q; want %d, and %q", s.Counters.Refused, s.Notes, refusals, what)
		}
	}
	e.Refuse(errors.New("default:2: unknown option"))
	refused("default:2: unknown option")
	impossible := config.Default()
	impossible.Reserved.Milli = 1_000_000
	if e.Configure(impossible, nil) == nil {
		t.Fatal("all CPUs are reserved, and it is not refused")
	}
	refused("take all available CPUs")
	if err := e.Configure(config.Default(), nil); err != nil {
		t.Fatal(err)
	}
	if s := e.Status(); s.Counters.Refused != refusals || len(s.Notes) != 0 {
		t.Errorf("a good one is there: %+v", s.Notes)
	}
}
