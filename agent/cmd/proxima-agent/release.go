package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/status"
)

var releaseVerb = verb{"release", "give all containers all CPUs and memory back, before the agent is removed", runRelease}

func runRelease(args []string, out io.Writer) error {
	set := flags("release", "[--socket PATH] [--timeout DURATION]",
		"Tells the agent of this node to pin nobody any more, and waits until the runtime has been told for every container.\nThe agent pins again when it is started again.")
	socket := set.String("socket", defaultSocket, "the agent's Unix `socket`")
	timeout := set.Duration("timeout", time.Minute, "how long to wait")
	if err := parseFlags(set, args, out); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	containers, err := status.Release(ctx, *socket)
	if err != nil {
		return err
	}
	for {
		var s engine.Status
		if err := status.Get(ctx, *socket, "/status", &s); err != nil {
			return err
		}
		if s.Pending == 0 && s.Connected {
			fmt.Fprintf(out, "released: the runtime has been told to give all CPUs and memory nodes back to %d containers\n", containers)
			return nil
		}
		select {
		case <-ctx.Done():
			if !s.Connected {
				return errors.New("the runtime is not connected, so nobody could be told; the agent tries further, see status")
			}
			return fmt.Errorf("the runtime has yet to take it for %d containers; the agent tries further, see status", s.Pending)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
