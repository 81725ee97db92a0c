#!/bin/sh
# Builds helm, with which tests render the chart, into .cache/helm. It is built once for each version: some
# two minutes on two processors. `helm.sh 3` builds the helm before it into .cache/helm3, for `make soak`.
set -eu
cd "$(dirname "$0")/../tests/lab/helm${1:-}"
. ../../../scripts/built-once.sh

module=helm.sh/helm/v${1:-4}
version=$(sed -n "s|.*$module \(v[0-9.]*\).*|\1|p" go.mod | head -1)
flags="-X $module/internal/version.version=$version"
build_once "helm${1:-}" "$version" "$module/cmd/helm" "$flags" "tests of the chart"
