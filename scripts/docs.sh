#!/bin/sh
# Writes the generated reference pages anew. On an error the old ones stay.
set -eu
cd "$(dirname "$0")/.."

sh scripts/build.sh --release
new=$(mktemp -d)
trap 'rm -r "$new"' EXIT
target/release/proxima config options >"$new/options.md"
target/release/proxima config routes >"$new/routes.md"
target/release/proxima config schema >"$new/proxima.schema.json"
cp "$new"/* docs/
