// Package deploy holds the files that install the agent on a node, beside the manifests for the cluster.
package deploy

import _ "embed" // for Unit

// Unit is the systemd unit of the CRI proxy.
//
//go:embed proxima-agent.service
var Unit []byte
