#!/bin/sh
# Builds the programs of a Kubernetes cluster as one, with which tests drive a real API server and real nodes,
# into .cache/control-plane. It is built once for each version. Beside other builds, with etcd and the API
# server in Go's cache, it took 643 seconds and 771 CPU seconds on two processors.
set -eu
cd "$(dirname "$0")/../tests/lab/control-plane"
. ../../../scripts/built-once.sh

version=v$(sed -n 's/.*k8s.io\/kubernetes v//p' go.mod | head -1)
name=k8s.io/component-base/version
minor=${version#v1.}
flags="-X $name.gitVersion=$version -X $name.gitMajor=1 -X $name.gitMinor=${minor%%.*}"
flags="$flags -X $name.gitTreeState=clean -X $name.gitCommit=none -X $name.buildDate=2026-01-01T00:00:00Z"
build_once control-plane "$version" . "$flags" "tests at a real API server of Kubernetes and in a cluster"
