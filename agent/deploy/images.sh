#!/bin/sh
# Packs the agent's image for amd64 and arm64 as one OCI archive: deploy/images.sh FILE.tar. It cross-builds
# with Go, and needs neither docker nor a registry. To push the archive to a registry: skopeo copy --all
# oci-archive:FILE.tar docker://REGISTRY/proxima-agent:VERSION
set -eu
case $1 in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
cd "$(dirname "$0")/.."
version=$(cat VERSION)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/oci/blobs/sha256"

# blob FILE puts a file among the blobs, and prints its digest and size as JSON.
blob() {
	sum=$(sha256sum "$1" | cut -d' ' -f1)
	printf '"digest":"sha256:%s","size":%d' "$sum" "$(wc -c <"$1")"
	mv "$1" "$work/oci/blobs/sha256/$sum"
}

manifests=
for arch in amd64 arm64; do
	mkdir "$work/$arch"
	sh deploy/layer.sh "$work/$arch" "$arch" "$version"
	config=$(blob "$work/$arch/config.json")
	layer=$(blob "$work/$arch/layer.tar")
	cat >"$work/$arch/manifest.json" <<MANIFEST
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
"config":{"mediaType":"application/vnd.oci.image.config.v1+json",$config},
"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar",$layer}]}
MANIFEST
	manifest=$(blob "$work/$arch/manifest.json")
	manifests="$manifests${manifests:+,}{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",$manifest,\"platform\":{\"architecture\":\"$arch\",\"os\":\"linux\"}}"
done
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}' "$manifests" >"$work/both.json"
both=$(blob "$work/both.json")
cat >"$work/oci/index.json" <<INDEX
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json",$both,
"annotations":{"io.containerd.image.name":"docker.io/library/proxima-agent:$version","org.opencontainers.image.ref.name":"$version"}}]}
INDEX
echo '{"imageLayoutVersion":"1.0.0"}' >"$work/oci/oci-layout"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$work/oci" -cf "$out" blobs index.json oci-layout
