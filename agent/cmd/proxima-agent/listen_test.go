package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"proxima.io/agent/internal/lab"
	"proxima.io/agent/internal/nri"
	"proxima.io/agent/internal/raw"
)

// Kubelet's way to the runtime leads through the agent: it stays open where the port for metrics is taken,
// and the socket for status too, and both are served as soon as they are free.
func TestTheCRIDoorForwardsWhateverHappensToItsSideListeners(t *testing.T) {
	dir, err := os.MkdirTemp("", "door") // the path of a Unix socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	behind, err := net.Listen("unix", dir+"/r.sock")
	if err != nil {
		t.Fatal(err)
	}
	runtime := grpc.NewServer(grpc.ForceServerCodec(raw.Codec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		f := &raw.Frame{}
		if err := stream.RecvMsg(f); err != nil {
			return err
		}
		return stream.SendMsg(f)
	}))
	go func() { _ = runtime.Serve(behind) }() // ends with Stop
	defer runtime.Stop()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	taken, err := net.Listen("unix", dir+"/a.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	log := &lines{}
	s := &service{root: "/", kubelet: "/none", state: filepath.Join(dir, "state"), socket: dir + "/a.sock", http: port.Addr().String(),
		log: slog.New(slog.NewTextHandler(log, nil))}
	s.door.index, s.door.listen, s.door.runtime = nri.LastIndex, dir+"/d.sock", dir+"/r.sock"
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	lab.Eventually(t, "a call goes through the door", func() error {
		select {
		case err := <-ended:
			t.Fatalf("the agent ended: %v", err)
		default:
		}
		conn, err := net.DialTimeout("unix", dir+"/d.sock", time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	reply := lab.NewClient(t, dir+"/d.sock", "v1").Call("Version", raw.Message(nil).With("0.1.0", 1))
	if reply.Text(1) != "0.1.0" {
		t.Errorf("%q", reply)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"address already in use", "another agent listens there", "remedy"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
