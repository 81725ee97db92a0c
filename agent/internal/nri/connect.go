package nri

import (
	"context"
	"time"

	"github.com/containerd/nri/pkg/stub"

	"proxima.io/agent/internal/policy"
)

// Index and name under which runtimes know the plugin. Plugins run in order of index; ours comes last, so that it sees what
// the others have set.
const (
	Index = "99"
	Name  = "proxima-agent"
)

const reconnectAfter = time.Second

// Serve connects to the runtime's socket and stays connected until the context ends: a runtime that restarts, or that
// dropped us for being slow once, finds us again and tells us what is running.
func (d *Door) Serve(ctx context.Context, socket string) error {
	for {
		err := d.serveOnce(ctx, socket)
		if ctx.Err() != nil {
			return nil
		}
		d.Log.Warn("not connected to the runtime; trying again", "socket", socket, "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconnectAfter):
		}
	}
}

func (d *Door) serveOnce(ctx context.Context, socket string) error {
	closed := make(chan struct{}, 1)
	s, err := stub.New(d, stub.WithPluginIdx(Index), stub.WithPluginName(Name), stub.WithSocketPath(socket),
		stub.WithOnClose(func() {
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
	d.Log.Info("connected to the runtime", "socket", socket, "version", s.RuntimeNRIVersion())
	d.Engine.Attach(updater{s})
	defer d.Engine.Attach(nil)
	select {
	case <-ctx.Done():
	case <-closed:
	}
	s.Stop()
	return ctx.Err()
}

// updater changes containers outside of a request.
type updater struct{ stub stub.Stub }

func (u updater) Update(_ context.Context, changes []policy.Change) ([]string, error) {
	failed, err := u.stub.UpdateContainers(updates(changes))
	var ids []string
	for _, f := range failed {
		ids = append(ids, f.GetContainerId())
	}
	return ids, err
}
