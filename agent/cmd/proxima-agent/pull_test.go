package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"proxima.io/agent/internal/lab"
)

// pullTakes is how long the pull takes: half a minute, or what the environment says (the long runs take ten).
func pullTakes(t *testing.T) time.Duration {
	t.Helper()
	text, ok := os.LookupEnv("PROXIMA_AGENT_PULL")
	if !ok {
		return 30 * time.Second
	}
	takes, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return takes
}

// A pull goes through the door as long as it takes, and nobody has to wait for it.
func TestRealSlowPullThroughTheCRIDoor(t *testing.T) {
	t.Parallel()
	takes := pullTakes(t)
	image := lab.SlowRegistry(t, takes)
	runtime := lab.Start(t, "1.6")
	listen := filepath.Join(filepath.Dir(runtime.CRI), "proxy.sock")
	newAgent(t, "--cri-listen", listen, "--cri-runtime", runtime.CRI)
	through := lab.NewClient(t, listen, "v1")
	begin, done := time.Now(), make(chan error, 1)
	go func() { done <- through.Pull(context.Background(), image) }()
	for {
		select {
		case err := <-done:
			if err != nil || time.Since(begin) < takes*9/10 {
				t.Errorf("after %s: %v", time.Since(begin), err)
			}
			return
		case <-time.After(takes / 30):
			through.Call("Version", nil)
		}
	}
}
