#!/bin/sh
# Packs the agent's image, one static program and nothing else, as `docker save` would: deploy/image.sh
# FILE.tar [ARCHITECTURE]. It needs Go, and neither docker nor a registry. Load the image with `docker load`,
# `ctr -n k8s.io images import` or `skopeo copy`.
set -eu
case $1 in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
cd "$(dirname "$0")/.."
arch=${2:-$(go env GOARCH)}
version=$(cat VERSION)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/image"
sh deploy/layer.sh "$work/image" "$arch" "$version"
cat >"$work/image/manifest.json" <<MANIFEST
[{"Config":"config.json","RepoTags":["proxima-agent:$version"],"Layers":["layer.tar"]}]
MANIFEST
tar -C "$work/image" -cf "$out" config.json layer.tar manifest.json
