package cri

import (
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"proxima.io/agent/internal/raw"
)

// anyStream fits every method: a unary call is a stream with one message each way.
var anyStream = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// forward takes one call to the runtime and its answer back. The deadline, cancellation and metadata of the
// call are those of the stream's context.
func (d *Door) forward(_ any, from grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(from)
	if !ok {
		return status.Error(codes.Internal, "a call without a method")
	}
	ctx := from.Context()
	if incoming, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, incoming)
	}
	if look := d.looker(method); look != nil {
		return look.call(ctx, from)
	}
	to, err := d.runtime.NewStream(ctx, anyStream, method)
	if err != nil {
		return err
	}
	requests := make(chan error, 1)
	go func() { requests <- d.copyRequests(from, to) }()
	err = d.copyResponses(from, to)
	from.SetTrailer(to.Trailer())
	if err != nil {
		return err
	}
	select {
	case err := <-requests:
		return err
	default:
		return nil // the runtime has answered without waiting for more
	}
}

func (d *Door) copyRequests(from grpc.ServerStream, to grpc.ClientStream) error {
	for {
		f := &raw.Frame{}
		if err := from.RecvMsg(f); err != nil {
			if errors.Is(err, io.EOF) {
				return to.CloseSend()
			}
			return err
		}
		if err := to.SendMsg(f); err != nil {
			return nil //nolint:nilerr // the reason comes with the response
		}
		d.ballast.saw(len(f.Bytes))
	}
}

func (d *Door) copyResponses(from grpc.ServerStream, to grpc.ClientStream) error {
	for first := true; ; first = false {
		f := &raw.Frame{}
		err := to.RecvMsg(f)
		if first {
			if header, headerErr := to.Header(); headerErr == nil {
				if sendErr := from.SetHeader(header); sendErr != nil {
					return sendErr
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = from.SendMsg(f)
		d.ballast.saw(len(f.Bytes))
		if err != nil {
			return err
		}
	}
}
