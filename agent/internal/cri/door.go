// Package cri is the door to runtimes without NRI: a gRPC server that kubelet takes for the runtime. It
// forwards every method of the CRI as it comes, known or not, v1 or v1alpha2, and looks into six of them
// only.
//
// Messages are forwarded as bytes. What we add to one is appended to it: of a field that occurs twice,
// protobuf takes the last, and merges messages. So no field that we do not know can be lost, and both
// versions of the CRI, which have the same wire form, need the same code.
//
// # Layout
//
//	door.go     the server
//	forward.go  one call, there and back
//	look.go     the methods that we look into
//	ballast.go  memory after large messages
//	runtime.go  our own calls: what is running, and re-pinning
//	status.go   what is set for each that is running
//	addresses.go  the addresses of pods
package cri

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"proxima.io/agent/internal/engine"
	"proxima.io/agent/internal/raw"
	"proxima.io/agent/internal/topology"
)

// maxMessage is what kubelet and runtimes allow each other.
const maxMessage = 16 << 20

// Door is the server.
type Door struct {
	engine  *engine.Engine
	machine *topology.Topology
	log     *slog.Logger
	runtime *grpc.ClientConn
	ballast ballast
	// listing is held while the runtime is asked what is running, so that nobody comes or goes unseen
	// meanwhile.
	listing  sync.RWMutex
	statuses statuses
}

// New makes a door to the runtime behind a Unix socket. The runtime need not be up.
func New(e *engine.Engine, machine *topology.Topology, log *slog.Logger, runtime string) (*Door, error) {
	conn, err := grpc.NewClient("unix://"+runtime,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithIdleTimeout(0), // the end of the connection is how we notice that the runtime has gone
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw.Codec{}), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, err
	}
	return &Door{engine: e, machine: machine, log: log, runtime: conn, ballast: newBallast()}, nil
}

// Serve listens on the socket until the context ends. Running pods do not notice when we are away: kubelet
// tries again.
func (d *Door) Serve(ctx context.Context, socket string) error {
	defer d.runtime.Close()
	listener, err := listen(socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.ForceServerCodec(raw.Codec{}), grpc.UnknownServiceHandler(d.forward),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	go d.follow(ctx)
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

func listen(socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return nil, err
	}
	if conn, err := net.DialTimeout("unix", socket, time.Second); err == nil {
		conn.Close()
		return nil, fmt.Errorf("%s: somebody listens there already", socket)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", socket)
}
