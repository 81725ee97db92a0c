package cri

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"proxima.io/agent/internal/config"
	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/raw"
	"proxima.io/agent/internal/topology"
)

// handler answers one call of the runtime behind the door.
type handler func(method string, stream grpc.ServerStream) error

// runtimeAt serves raw gRPC on a socket: what the real lanes cannot see, what reaches a runtime, is seen
// here.
func runtimeAt(t testing.TB, socket string, h handler) *grpc.Server {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodec(raw.Codec{}), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			return h(method, stream)
		}))
	go func() { _ = server.Serve(l) }() // ends with Stop
	t.Cleanup(server.Stop)
	return server
}

// setup starts a runtime and a door before it, and returns connections to both.
func setup(t testing.TB, h handler) (e *engine.Engine, direct, through *grpc.ClientConn, server *grpc.Server) {
	t.Helper()
	dir, err := os.MkdirTemp("", "door") // the path of a Unix socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	shape, err := topology.ParseShape("sockets=2,cores=24,threads=2,memory=192")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := topology.Read(shape.Recording())
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	if e, err = engine.New(engine.Settings{Machine: machine, Options: config.Default(), Log: log}); err != nil {
		t.Fatal(err)
	}
	server = runtimeAt(t, dir+"/r.sock", h)
	door, err := New(e, machine, log, dir+"/r.sock")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- door.Serve(ctx, dir+"/d.sock") }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return e, dial(t, dir+"/r.sock"), dial(t, dir+"/d.sock"), server
}

func dial(t testing.TB, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(
		grpc.ForceCodec(raw.Codec{}), grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// echo sends back what comes, with header, trailer, and what it saw of the call.
func echo(method string, stream grpc.ServerStream) error {
	if strings.Contains(method, "/List") {
		return stream.SendMsg(&raw.Frame{}) // the door's own question: nothing runs
	}
	f := &raw.Frame{}
	if err := stream.RecvMsg(f); err != nil {
		return err
	}
	seen, _ := metadata.FromIncomingContext(stream.Context())
	deadline, ok := stream.Context().Deadline()
	left := "none"
	if ok {
		left = time.Until(deadline).Truncate(time.Minute).String()
	}
	header := metadata.Pairs("method", method, "left", left, "user-bin", strings.Join(seen["user-bin"], ","))
	if err := stream.SetHeader(header); err != nil {
		return err
	}
	stream.SetTrailer(metadata.Pairs("last", "word"))
	return stream.SendMsg(f)
}

var methods = []string{
	"/runtime.v1.RuntimeService/Version", "/runtime.v1alpha2.RuntimeService/Version", "/runtime.v1.ImageService/PullImage",
	"/runtime.v1.RuntimeService/CreateContainer", "/runtime.v1alpha2.RuntimeService/StopContainer",
	"/runtime.v9.RuntimeService/NeverHeardOf", "/some.Other/Service",
}

func TestEveryCallPassesUnchanged(t *testing.T) {
	_, _, through, _ := setup(t, echo)
	for _, method := range methods {
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Minute)
		ctx = metadata.AppendToOutgoingContext(ctx, "user-bin", "\x00\xff")
		var header, trailer metadata.MD
		reply := &raw.Frame{}
		err := through.Invoke(ctx, method, &raw.Frame{Bytes: []byte("\x0a\x03abc")}, reply, grpc.Header(&header), grpc.Trailer(&trailer))
		cancel()
		if err != nil || !bytes.HasPrefix(reply.Bytes, []byte("\x0a\x03abc")) {
			t.Errorf("%s: %q %v", method, reply.Bytes, err)
			continue
		}
		if strings.Contains(method, "Create") == (len(reply.Bytes) == 5) {
			t.Errorf("%s: what is added to a message: %q", method, reply.Bytes[5:])
		}
		if !slices.Equal(header["method"], []string{method}) || !slices.Equal(header["left"], []string{"1h29m0s"}) ||
			!slices.Equal(header["user-bin"], []string{"\x00\xff"}) || !slices.Equal(trailer["last"], []string{"word"}) {
			t.Errorf("%s: header %v, trailer %v", method, header, trailer)
		}
	}
}

func TestErrorsPassWithTheirDetails(t *testing.T) {
	_, _, through, _ := setup(t, func(string, grpc.ServerStream) error {
		s, err := status.New(codes.ResourceExhausted, "no space left").WithDetails(durationpb.New(time.Second))
		return errors.Join(err, s.Err())
	})
	for _, method := range methods {
		s := status.Convert(through.Invoke(context.Background(), method, &raw.Frame{}, &raw.Frame{}))
		if s.Code() != codes.ResourceExhausted || !strings.Contains(s.Message(), "no space left") || len(s.Details()) != 1 {
			t.Errorf("%s: %v %v", method, s, s.Details())
		}
	}
}

// The largest messages that kubelet and runtimes exchange go both ways, and leave no memory behind.
func TestLargeMessagesLeaveNothingBehind(t *testing.T) {
	_, _, through, _ := setup(t, echo)
	payload := raw.Message(nil).With(strings.Repeat("x", maxMessage-1000), 15)
	for _, method := range methods {
		reply := &raw.Frame{}
		if err := through.Invoke(context.Background(), method, &raw.Frame{Bytes: payload}, reply); err != nil || !bytes.HasPrefix(reply.Bytes, payload) {
			t.Fatalf("%s: %d bytes, %v", method, len(reply.Bytes), err)
		}
	}
	payload = nil
	var memory runtime.MemStats
	for range 300 { // without a collection of our own
		runtime.ReadMemStats(&memory)
		if memory.HeapSys-memory.HeapReleased < 2*maxMessage {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("%d MiB are kept", (memory.HeapSys-memory.HeapReleased)>>20)
}

// A stream's messages come when they are sent, not when it ends, and its end is passed both ways.
func TestStreamsPass(t *testing.T) {
	gone := make(chan struct{})
	_, _, through, _ := setup(t, func(method string, stream grpc.ServerStream) error {
		if strings.Contains(method, "/List") {
			return stream.SendMsg(&raw.Frame{})
		}
		for i := byte(0); ; i++ {
			if err := stream.RecvMsg(&raw.Frame{}); err != nil && !errors.Is(err, io.EOF) {
				close(gone)
				return err
			}
			if err := stream.SendMsg(&raw.Frame{Bytes: []byte{i}}); err != nil {
				return err
			}
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := through.NewStream(ctx, anyStream, "/runtime.v1.RuntimeService/GetContainerEvents")
	if err != nil {
		t.Fatal(err)
	}
	for i := range byte(3) {
		f := &raw.Frame{}
		if err := errors.Join(stream.SendMsg(&raw.Frame{}), stream.RecvMsg(f)); err != nil || f.Bytes[0] != i {
			t.Fatalf("message %d: %v %v", i, f.Bytes, err)
		}
	}
	cancel()
	select {
	case <-gone:
	case <-time.After(30 * time.Second):
		t.Fatal("the runtime did not hear that the caller has gone")
	}
}

// A runtime that hangs up in the middle of a creation leaves nobody on the books, and is found again.
func TestARuntimeThatHangsUp(t *testing.T) {
	hung := make(chan struct{})
	var once sync.Once
	e, _, through, server := setup(t, func(method string, stream grpc.ServerStream) error {
		if strings.Contains(method, "/List") {
			return stream.SendMsg(&raw.Frame{})
		}
		once.Do(func() { close(hung) })
		<-stream.Context().Done()
		return nil
	})
	failed := make(chan error, 1)
	go func() {
		failed <- through.Invoke(context.Background(), "/runtime.v1.RuntimeService/CreateContainer", &raw.Frame{}, &raw.Frame{})
	}()
	<-hung
	if n := len(e.Status().Seats); n != 1 {
		t.Errorf("%d on the books while it is being created", n)
	}
	socket := strings.TrimPrefix(through.Target(), "unix://")
	server.Stop()
	if err := <-failed; status.Code(err) != codes.Unavailable {
		t.Errorf("kubelet heard %v, want Unavailable, which it tries again", err)
	}
	until(t, "somebody is left on the books", func() bool { return len(e.Status().Seats) == 0 })
	until(t, "nobody noticed that the runtime has gone", func() bool { return !e.Status().Connected })
	runtimeAt(t, strings.TrimSuffix(socket, "d.sock")+"r.sock", echo)
	until(t, "the runtime was not found again", func() bool { return e.Status().Connected })
}

func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for range 300 {
		if holds() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal(what)
}

// BenchmarkCall is one call with and without the door, with the 99th percentile beside the mean.
func BenchmarkCall(b *testing.B) {
	_, direct, through, _ := setup(b, echo)
	for name, conn := range map[string]*grpc.ClientConn{"direct": direct, "door": through} {
		for _, method := range []string{"Version", "CreateContainer"} {
			b.Run(method+"/"+name, func(b *testing.B) {
				var times []time.Duration
				for b.Loop() {
					begin := time.Now()
					if err := conn.Invoke(context.Background(), "/runtime.v1.RuntimeService/"+method, &raw.Frame{}, &raw.Frame{}); err != nil {
						b.Fatal(err)
					}
					times = append(times, time.Since(begin))
				}
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
			})
		}
	}
}
