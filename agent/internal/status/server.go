// Package status shows what the agent does, over HTTP. On a Unix socket, which is root's, that is everything:
//
//	/status      everything, as JSON              /containers  which NUMA nodes each sits on
//	/explain     ?pod=NAME[&namespace=NAME]       /zones       the NodeResourceTopology object
//	/release     (POST) pin nobody any more
//
// On a TCP address, where one is configured, it is what names no pod:
//
//	/metrics   for Prometheus      /live   the process runs      /ready   the runtime is connected
package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"proxima.io/agent/internal/engine"
)

// Server answers for one engine.
type Server struct {
	Engine *engine.Engine
	Node   string // the node's name, for NodeResourceTopology
}

// details adds the routes for who is root on this node.
func (s *Server) details(mux *http.ServeMux) {
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.Engine.Status()) })
	mux.HandleFunc("GET /containers", func(w http.ResponseWriter, _ *http.Request) { reply(w, Containers(s.Engine.Status())) })
	mux.HandleFunc("GET /zones", func(w http.ResponseWriter, _ *http.Request) { reply(w, Zones(s.Node, s.Engine.Status())) })
	mux.HandleFunc("GET /explain", func(w http.ResponseWriter, r *http.Request) {
		decisions := s.Engine.Explain(r.FormValue("namespace"), r.FormValue("pod"))
		if len(decisions) == 0 {
			http.Error(w, "no such pod on this node", http.StatusNotFound)
			return
		}
		reply(w, decisions)
	})
	mux.HandleFunc("POST /release", func(w http.ResponseWriter, _ *http.Request) {
		containers, err := s.Engine.Release()
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		reply(w, released{containers})
	})
}

// probes returns the routes for everybody.
func (s *Server) probes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		WriteMetrics(w, s.Engine.Status())
	})
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]bool{"live": true}) })
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if !s.Engine.Status().Connected {
			w.WriteHeader(http.StatusServiceUnavailable)
			reply(w, map[string]any{"ready": false, "because": "the runtime is not connected"})
			return
		}
		reply(w, map[string]bool{"ready": true})
	})
	return mux
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	// Fails only when the client has gone.
	_ = encoder.Encode(v)
}

// Listen opens a Unix socket where the address is a path, else a TCP port. A socket that a killed agent left
// is replaced.
func Listen(address string) (net.Listener, error) {
	if !filepath.IsAbs(address) {
		return net.Listen("tcp", address)
	}
	if err := os.MkdirAll(filepath.Dir(address), 0o755); err != nil {
		return nil, err
	}
	if conn, err := net.DialTimeout("unix", address, time.Second); err == nil {
		conn.Close()
		return nil, fmt.Errorf("%s: another agent listens there", address)
	}
	if err := os.Remove(address); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", address)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(address, 0o600)
}

// Serve answers until the context ends. Who reaches the Unix socket is root on this node; a port is
// anybody's.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	handler := s.probes()
	if l.Addr().Network() == "unix" {
		s.details(handler)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// Get asks an agent's Unix socket.
func Get(ctx context.Context, socket, path string, into any) error {
	return ask(ctx, http.MethodGet, socket, path, into)
}

// released is the answer to a release.
type released struct {
	Containers int `json:"containers"` // that are being given everything back
}

// Release tells the agent behind a Unix socket to pin nobody any more, and returns how many containers that
// concerns.
func Release(ctx context.Context, socket string) (int, error) {
	var answer released
	err := ask(ctx, http.MethodPost, socket, "/release", &answer)
	return answer.Containers, err
}

func ask(ctx context.Context, method, socket, path string, into any) error {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if failed := (*url.Error)(nil); errors.As(err, &failed) { // it names what we have made up
		return fmt.Errorf("no agent answers on %s: %w", socket, failed.Err)
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // what can be read of it
		return fmt.Errorf("%s: %s: %s", path, response.Status, bytes.TrimSpace(why))
	}
	return json.NewDecoder(response.Body).Decode(into)
}
