package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a change is left to settle: an editor and a ConfigMap's swap both make several events.
const settle = 200 * time.Millisecond

// unwatched is how often changed is called where the kernel has nothing left to watch with.
const unwatched = time.Minute

// Watch calls changed whenever something happens to one of the paths, and once at the start, until the
// context ends. It sleeps in the kernel in between. It watches directories, not files: editors and Kubernetes
// replace files by renaming. Where other programs have used up what the kernel has for that (inotify), it
// calls changed now and then, until it can watch.
func Watch(ctx context.Context, log *slog.Logger, changed func(), paths ...string) {
	watch(ctx, log, unwatched, changed, paths...)
}

func watch(ctx context.Context, log *slog.Logger, every time.Duration, changed func(), paths ...string) {
	for i := range paths {
		paths[i] = filepath.Clean(paths[i])
	}
	for warned := false; ; warned = true {
		err := follow(ctx, changed, paths)
		if err == nil {
			return
		}
		if !warned {
			log.Warn("files cannot be watched; they are read now and then", "every", every, "error", err,
				"remedy", "raise fs.inotify.max_user_instances and fs.inotify.max_user_watches")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
			changed()
		}
	}
}

// follow watches until the context ends, or the kernel has nothing left to watch with. It calls changed once
// when it has begun: what happened before may have gone unseen.
func follow(ctx context.Context, changed func(), paths []string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := add(watcher, paths); err != nil {
		return err
	}
	pending := time.NewTimer(settle)
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
			if err := add(watcher, paths); err != nil { // before it is read: what comes then is seen
				return err
			}
			changed()
		}
	}
}

// add watches each path and its directory; of one that is not there (any more), what there is above it. That
// tells when the next one below is made, and it is called again.
func add(watcher *fsnotify.Watcher, paths []string) error {
	for _, path := range paths {
		chain := []string{path, filepath.Dir(path)} // from narrow to wide
		for at := chain[1]; at != filepath.Dir(at); {
			if _, err := os.Stat(at); err == nil {
				break
			}
			at = filepath.Dir(at)
			chain = append(chain, at)
		}
		for _, at := range slices.Backward(chain) {
			err := watcher.Add(at)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
				break
			}
			if err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
		}
	}
	return nil
}

// concerns tells whether what happened to one file is about a path: it is the path, in it, above it, or the
// link beside it that Kubernetes swaps (..data).
func concerns(changed, path string) bool {
	changed = filepath.Clean(changed)
	dir, name := filepath.Split(changed)
	dir = filepath.Clean(dir)
	return changed == path || dir == path || strings.HasPrefix(path, changed+"/") || (dir == filepath.Dir(path) && strings.HasPrefix(name, ".."))
}
