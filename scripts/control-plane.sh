#!/bin/sh
# Builds the programs of a Kubernetes cluster as one, with which tests drive a real API server and real nodes,
# into .cache/control-plane. It is built once for each version. Beside other builds, with etcd and the API
# server in Go's cache, it took 643 seconds and 771 CPU seconds on two processors.
set -eu
cd "$(dirname "$0")/../tests/lab/control-plane"
root=../../..

version=v$(sed -n 's/.*k8s.io\/kubernetes v//p' go.mod | head -1)
built=$root/.cache/control-plane
stamp=$(cat go.mod go.sum main.go | sha256sum | cut -c1-16)
[ "$(cat "$built.stamp" 2>/dev/null)" != "$stamp" ] || exit 0
command -v go >/dev/null || {
    echo "control plane: skipped, as go is missing: tests at a real API server of Kubernetes and in a cluster"
    exit 0
}

echo "control plane: building Kubernetes $version, once"
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -p=2"
# What cannot be fetched is no fault of ours; what then does not compile is.
go list -deps . >/dev/null || {
    echo "control plane: skipped, as its modules cannot be fetched: tests in a cluster of Kubernetes"
    exit 0
}
mkdir -p "$root/.cache"
name=k8s.io/component-base/version
minor=${version#v1.}
flags="-s -w -X $name.gitVersion=$version -X $name.gitMajor=1 -X $name.gitMinor=${minor%%.*}"
flags="$flags -X $name.gitTreeState=clean -X $name.gitCommit=none -X $name.buildDate=2026-01-01T00:00:00Z"
go build -trimpath -ldflags "$flags" -o "$built" .
echo "$stamp" >"$built.stamp"
