package config

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a change is left to settle: an editor and a ConfigMap's swap both make several events.
const settle = 200 * time.Millisecond

// Watch calls changed whenever something happens to one of the paths, until the context ends. It sleeps in the kernel in
// between. It watches directories, not files: editors and Kubernetes replace files by renaming.
func Watch(ctx context.Context, changed func(), paths ...string) error {
	for i := range paths {
		paths[i] = filepath.Clean(paths[i])
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	for _, path := range paths {
		if err := watcher.Add(filepath.Dir(path)); err != nil {
			return err
		}
		_ = watcher.Add(path) // a directory of layers; for a file its directory is enough
	}
	pending := time.NewTimer(settle)
	pending.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-watcher.Events:
			if !ok {
				return nil
			}
			if slices.ContainsFunc(paths, func(path string) bool { return concerns(event.Name, path) }) {
				pending.Reset(settle)
			}
		case _, ok := <-watcher.Errors: // more events than the kernel keeps: something has changed
			if !ok {
				return nil
			}
			pending.Reset(settle)
		case <-pending.C:
			changed()
		}
	}
}

// concerns tells whether what happened to one file is about a path: it is the path, in it, or the link beside it that
// Kubernetes swaps (..data).
func concerns(changed, path string) bool {
	changed = filepath.Clean(changed)
	dir, name := filepath.Split(changed)
	dir = filepath.Clean(dir)
	return changed == path || dir == path || (dir == filepath.Dir(path) && strings.HasPrefix(name, ".."))
}
