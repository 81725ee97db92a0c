package nodes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// most is how many may follow at a time; a node has one proxy or a few.
	most = 32
	// patience is how long a follower may take to receive a line.
	patience = 10 * time.Second
	// pace is the time between two snapshots: pods often come many at a time.
	pace = 100 * time.Millisecond
)

// Server tells its followers. A slow one is closed, and costs one line of memory until then. While nobody
// follows, nothing is done.
type Server struct {
	// Now returns what is to be told.
	Now func() Snapshot
	// Changed returns a channel that is closed when that may have changed since the call.
	Changed func() <-chan struct{}
	// Followed is called when the first begins to follow, with a context that ends when the last has gone;
	// nil is nothing to do.
	Followed func(context.Context)
	Readers  Readers
	Log      *slog.Logger

	patience time.Duration // 0: the default

	all       sync.WaitGroup
	mu        sync.Mutex
	followers int
	end       context.CancelFunc // of the publishing
	line      []byte             // the newest; nil: there is none yet
	next      chan struct{}      // closed when there is a newer one
	refused   string             // the last refusal: the same one is logged once
}

// Listen opens the socket. One that a killed agent left is replaced.
func (s *Server) Listen(path string) (*net.UnixListener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		conn.Close()
		return nil, fmt.Errorf("%s: another agent listens there", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return l, s.Readers.permit(path)
}

// Serve tells all followers until the context ends.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.all.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		conn, err := l.AcceptUnix()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // no descriptor, or the other end has gone
			s.Log.Warn("nobody new can follow", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		if err := s.admit(ctx, conn); err != nil {
			s.refuse(conn, err)
		}
	}
}

// admit makes a connection a follower.
func (s *Server) admit(ctx context.Context, conn *net.UnixConn) error {
	if err := s.Readers.refuse(conn); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followers >= most {
		return fmt.Errorf("%d follow already", most)
	}
	s.followers++
	if s.followers == 1 {
		publishing, end := context.WithCancel(ctx)
		s.line, s.next, s.end = nil, make(chan struct{}), end
		s.all.Go(func() { s.publish(publishing) })
		if s.Followed != nil {
			s.all.Go(func() { s.Followed(publishing) })
		}
	}
	s.all.Go(func() { s.tell(ctx, conn) })
	return nil
}

// refuse says why, as far as the other end takes it at once.
func (s *Server) refuse(conn *net.UnixConn, why error) {
	defer conn.Close()
	if text := why.Error(); text != s.refused {
		s.refused = text
		s.Log.Warn("a process at the nodes' socket is told nothing", "because", text)
	}
	line, err := json.Marshal(refusal{Version, why.Error()})
	if err != nil || conn.SetWriteDeadline(time.Now().Add(time.Second)) != nil {
		return
	}
	_, _ = conn.Write(append(line, '\n')) // it may have gone
}

// left is called when a follower has gone.
func (s *Server) left() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followers--
	if s.followers == 0 {
		s.end()
		s.line = nil
	}
}

// tell sends one follower the newest snapshot, and each later one, until it goes.
func (s *Server) tell(ctx context.Context, conn *net.UnixConn) {
	defer s.left()
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() }) // also in the middle of a line
	defer stop()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = conn.Read(make([]byte, 1)) // it says nothing: a byte ends it as the end of its connection does
	}()
	var sent []byte
	for {
		line, next := s.newest()
		if line != nil && !bytes.Equal(line, sent) {
			within := cmp.Or(s.patience, patience)
			if conn.SetWriteDeadline(time.Now().Add(within)) != nil {
				return
			}
			if _, err := conn.Write(line); err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					s.Log.Warn("a follower takes nothing; its connection is closed", "after", within)
				}
				return
			}
			sent = line
		}
		select {
		case <-next:
		case <-gone:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) newest() (line []byte, next <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.line, s.next
}

// publish makes the newest line whenever something has changed, until nobody follows.
func (s *Server) publish(ctx context.Context) {
	said := ""
	for {
		changed := s.Changed()
		line, err := s.Now().line()
		if err != nil && err.Error() != said {
			said = err.Error()
			s.Log.Error("a change is not told to followers", "error", err)
		}
		s.mu.Lock()
		if err == nil && ctx.Err() == nil && !bytes.Equal(line, s.line) {
			s.line = line
			close(s.next)
			s.next = make(chan struct{})
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(pace):
		case <-ctx.Done():
			return
		}
	}
}
