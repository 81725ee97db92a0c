package nri

import (
	"context"
	"errors"
	"time"

	"github.com/containerd/nri/pkg/stub"

	"proxima.io/agent/internal/policy"
)

// LastIndex makes a plugin run after all others, so that it sees what they have set: runtimes call plugins in
// order of index.
const LastIndex = "99"

const name = "proxima-agent"

const reconnectAfter = time.Second

// Serve connects to the runtime's socket and stays connected until the context ends: a runtime that restarts,
// or that dropped us for being slow once, finds us again and tells us what is running.
func (d *Door) Serve(ctx context.Context, socket string) error {
	said := "" // the last failure: the same one every second is said once
	for {
		err := d.serveOnce(ctx, socket)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			said = ""
			continue
		}
		if err.Error() != said {
			said = err.Error()
			d.log.Warn("not connected to the runtime; trying again every second", "socket", socket, "error", err,
				"remedy", "if it lasts: is the runtime up, and NRI enabled in its configuration?")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconnectAfter):
		}
	}
}

func (d *Door) serveOnce(ctx context.Context, socket string) error {
	closed := make(chan struct{}, 1)
	s, err := stub.New(d, stub.WithPluginIdx(d.index), stub.WithPluginName(name), stub.WithSocketPath(socket),
		stub.WithLogger(stubLog{d.log}), stub.WithOnClose(func() {
			select {
			case closed <- struct{}{}:
			default:
			}
		}))
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	defer s.Stop()
	d.log.Info("connected to the runtime", "socket", socket, "version", s.RuntimeNRIVersion())
	defer d.engine.Attach(nil)
	select {
	case <-ctx.Done():
	case <-closed:
		return errClosed
	case <-d.again:
	}
	return nil
}

var errClosed = errors.New("the runtime has closed the connection")

// updater changes containers outside of a request, by connecting again: the runtime then asks for everything,
// and what must change rides on the answer. NRI has a call for it too, but a runtime whose NRI is from before
// July 2026 can lock up for good in it, when a container starts or stops at the same moment (containerd issue
// 13733).
type updater chan struct{}

func (u updater) Update(_ context.Context, changes []policy.Change) ([]string, error) {
	select {
	case u <- struct{}{}:
	default: // asked for already
	}
	ids := make([]string, len(changes))
	for i, c := range changes {
		ids[i] = c.ID
	}
	return ids, nil
}
