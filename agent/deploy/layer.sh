#!/bin/sh
# Builds the agent for an architecture, and writes the only layer and the configuration of its image into a
# directory: deploy/layer.sh DIRECTORY ARCHITECTURE VERSION. The same sources give the same bytes. image.sh
# and images.sh pack them.
set -eu
mkdir "$1/root"
CGO_ENABLED=0 GOOS=linux GOARCH=$2 go build -trimpath -ldflags="-s -X main.version=$3" -o "$1/root/proxima-agent" ./cmd/proxima-agent
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$1/root" -cf "$1/layer.tar" .
layer=$(sha256sum "$1/layer.tar" | cut -d' ' -f1)
cat >"$1/config.json" <<CONFIG
{"architecture":"$2","os":"linux","config":{"Entrypoint":["/proxima-agent"],"Labels":{"org.opencontainers.image.version":"$3"}},
"rootfs":{"type":"layers","diff_ids":["sha256:$layer"]}}
CONFIG
rm -r "$1/root"
