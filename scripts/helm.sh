#!/bin/sh
# Builds helm, with which tests render the chart, into .cache/helm. It is built once for each version: some
# two minutes on two processors.
set -eu
cd "$(dirname "$0")/../tests/lab/helm"
root=../../..

version=$(sed -n 's/.*helm.sh\/helm\/v4 \(v[0-9.]*\).*/\1/p' go.mod | head -1)
built=$root/.cache/helm
stamp=$(cat go.mod go.sum | sha256sum | cut -c1-16)
[ "$(cat "$built.stamp" 2>/dev/null)" != "$stamp" ] || exit 0
command -v go >/dev/null || {
    echo "helm: skipped, as go is missing: tests of the chart"
    exit 0
}

echo "helm: building $version, once"
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -p=2"
# What cannot be fetched is no fault of ours; what then does not compile is.
go list -deps helm.sh/helm/v4/cmd/helm >/dev/null || {
    echo "helm: skipped, as its modules cannot be fetched: tests of the chart"
    exit 0
}
mkdir -p "$root/.cache"
flags="-s -w -X helm.sh/helm/v4/internal/version.version=$version"
go build -trimpath -ldflags "$flags" -o "$built" helm.sh/helm/v4/cmd/helm
echo "$stamp" >"$built.stamp"
