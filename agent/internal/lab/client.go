package lab

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"proxima.io/agent/internal/raw"
)

// Client speaks the CRI in raw messages.
type Client struct {
	t      testing.TB
	conn   *grpc.ClientConn
	prefix string
}

// NewClient makes a client for a socket and a version of the CRI.
func NewClient(t testing.TB, socket, version string) *Client {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw.Codec{})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &Client{t, conn, "/runtime." + version + "."}
}

// Try calls a method of RuntimeService.
func (c *Client) Try(method string, request raw.Message) (raw.Message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), waits(time.Minute))
	defer cancel()
	return c.Invoke(ctx, "RuntimeService/"+method, request)
}

// Call is Try, and ends the test on an error.
func (c *Client) Call(method string, request raw.Message) raw.Message {
	c.t.Helper()
	reply, err := c.Try(method, request)
	if err != nil {
		c.t.Fatal(fmt.Errorf("%s: %w", method, err))
	}
	return reply
}

// Invoke calls a method of any service.
func (c *Client) Invoke(ctx context.Context, method string, request raw.Message) (raw.Message, error) {
	reply := &raw.Frame{}
	err := c.conn.Invoke(ctx, c.prefix+method, &raw.Frame{Bytes: request}, reply)
	return reply.Bytes, err
}

// Pull pulls an image.
func (c *Client) Pull(ctx context.Context, name string) error {
	_, err := c.Invoke(ctx, "ImageService/PullImage", sub(nil, 1, raw.Message(nil).With(name, 1)))
	return err
}

// Events follows GetContainerEvents until the context ends.
func (c *Client) Events(ctx context.Context) (<-chan raw.Message, error) {
	stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, c.prefix+"RuntimeService/GetContainerEvents")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(stream.SendMsg(&raw.Frame{}), stream.CloseSend()); err != nil {
		return nil, err
	}
	events := make(chan raw.Message, 100)
	go func() {
		defer close(events)
		for {
			f := &raw.Frame{}
			if err := stream.RecvMsg(f); err != nil {
				return
			}
			events <- f.Bytes
		}
	}()
	return events, nil
}
