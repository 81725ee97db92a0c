package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"proxima.io/agent/deploy"
	"proxima.io/agent/internal/config"
)

var installVerb = verb{"install", "put the program and the CRI proxy's systemd unit on a node", runInstall}

const installed = `installed below %s. Start it on the node:
  systemctl daemon-reload && systemctl enable --now proxima-agent
then point kubelet at unix:///run/proxima-agent/cri.sock and restart kubelet.
`

func runInstall(args []string, out io.Writer) error {
	set := flags("install", "[--root DIR] [--config DIR] [--stay]",
		"Writes /usr/local/bin/proxima-agent, /etc/systemd/system/proxima-agent.service and, from a directory of layers,\n/etc/proxima-agent/config. It starts nothing.")
	root := set.String("root", "/", "the node's root `directory`")
	layers := set.String("config", "", "`directory` of layers, such as a mounted ConfigMap")
	stay := set.Bool("stay", false, "stay and follow --config, as a pod has to")
	if err := parseFlags(set, args, out); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if err := errors.Join(
		replace(filepath.Join(*root, "usr/local/bin/proxima-agent"), content, 0o755),
		replace(filepath.Join(*root, "etc/systemd/system/proxima-agent.service"), deploy.Unit, 0o644),
		copyLayers(*layers, *root),
	); err != nil {
		return err
	}
	fmt.Fprintf(out, installed, *root)
	if !*stay {
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *layers == "" {
		<-ctx.Done()
		return nil
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	config.Watch(ctx, log, func() {
		if err := copyLayers(*layers, *root); err != nil {
			log.Error("the configuration could not be copied", "error", err)
		}
	}, *layers)
	return nil
}

// copyLayers makes the node's layers those of the directory. Who this node is goes with them: the service has
// no downward API.
func copyLayers(from, root string) error {
	if from == "" {
		return nil
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	to := filepath.Join(root, "etc/proxima-agent/config")
	wanted := map[string]bool{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // Kubernetes' own
			continue
		}
		content, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		wanted[e.Name()] = true
		if err := replace(filepath.Join(to, e.Name()), content, 0o644); err != nil {
			return err
		}
	}
	old, err := os.ReadDir(to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range old {
		if !wanted[e.Name()] {
			if err := os.Remove(filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
	}
	node := fmt.Sprintf("NODE_NAME=%s\nNODE_GROUP=%s\n", os.Getenv("NODE_NAME"), os.Getenv("NODE_GROUP"))
	return replace(filepath.Join(root, "etc/proxima-agent/node.env"), []byte(node), 0o644)
}

// replace writes a file in one step: a running program is not written into, and nobody reads half a file.
func replace(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), ".new-"+filepath.Base(path))
	if err := os.WriteFile(temporary, content, mode); err != nil {
		return err
	}
	return errors.Join(os.Chmod(temporary, mode), os.Rename(temporary, path))
}
