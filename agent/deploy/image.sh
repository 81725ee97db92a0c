#!/bin/sh
# Packs the agent's image, one static program and nothing else, as `docker save` would: deploy/image.sh FILE.tar
# Needs Go, and neither docker nor a registry. Load it with `docker load`, `ctr -n k8s.io images import` or `skopeo copy`.
set -eu
case $1 in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The same sources give the same image.
pack() { tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$1" -cf "$2" .; }

mkdir "$work/root" "$work/image"
CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags=-s -o "$work/root/proxima-agent" ./cmd/proxima-agent
pack "$work/root" "$work/image/layer.tar"
layer=$(sha256sum "$work/image/layer.tar" | cut -d' ' -f1)
cat >"$work/image/config.json" <<CONFIG
{"architecture":"$(go env GOARCH)","os":"linux","config":{"Entrypoint":["/proxima-agent"]},
"rootfs":{"type":"layers","diff_ids":["sha256:$layer"]}}
CONFIG
cat >"$work/image/manifest.json" <<'MANIFEST'
[{"Config":"config.json","RepoTags":["proxima-agent:latest"],"Layers":["layer.tar"]}]
MANIFEST
tar -C "$work/image" -cf "$out" config.json layer.tar manifest.json
