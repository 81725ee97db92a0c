package cri

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"proxima.io/agent/internal/raw"
)

// Field numbers of PodSandboxStatusResponse.
const (
	statusPod                    = 1
	statusNetwork, statusLinux   = 5, 6
	networkIP, networkMore       = 1, 2
	namespaces, namespaceOptions = 1, 2
	optionNetwork                = 1
	networkOfNode                = 2 // its value
)

// askTimeout is how long a runtime may take over the status of one pod.
const askTimeout = 5 * time.Second

// Asker asks a runtime for the addresses of pods, behind whichever door the agent works: containerd tells
// them over NRI from 2.1 on.
type Asker struct {
	conn *grpc.ClientConn
}

// NewAsker makes an asker for the runtime behind a Unix socket. The runtime need not be up.
func NewAsker(runtime string) (*Asker, error) {
	conn, err := grpc.NewClient("unix://"+runtime, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw.Codec{}), grpc.MaxCallRecvMsgSize(maxMessage)))
	return &Asker{conn}, err
}

// Close ends its connection.
func (a *Asker) Close() error { return a.conn.Close() }

// Addresses returns a pod's addresses: none where it has the node's network.
func (a *Asker) Addresses(ctx context.Context, podID string) ([]string, error) {
	var failed error // the last one: of an old runtime the first version is unknown
	for _, prefix := range versions {
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		reply := &raw.Frame{}
		err := a.conn.Invoke(asking, prefix+"PodSandboxStatus", &raw.Frame{Bytes: raw.Message(nil).With(podID, 1)}, reply)
		cancel()
		if err == nil {
			return addressesOf(raw.Message(reply.Bytes).At(statusPod)), nil
		}
		if failed = err; status.Code(err) != codes.Unimplemented {
			break
		}
	}
	return nil, failed
}

func addressesOf(status raw.Message) []string {
	addresses := []string{}
	if status.At(statusLinux, namespaces, namespaceOptions).Number(optionNetwork) == networkOfNode {
		return addresses // some runtimes tell the node's own
	}
	network := status.At(statusNetwork)
	if ip := network.Text(networkIP); ip != "" {
		addresses = append(addresses, ip)
	}
	for _, more := range network.All(networkMore) {
		addresses = append(addresses, more.Text(networkIP))
	}
	return addresses
}
