#!/bin/sh
# Writes the generated reference pages anew. On an error the old ones stay.
set -eu
cd "$(dirname "$0")/.."

sh scripts/build.sh --profile quick
new=$(mktemp -d)
trap 'rm -r "$new"' EXIT
target/quick/proxima config options >"$new/options.md"
target/quick/proxima config routes >"$new/routes.md"
target/quick/proxima config schema >"$new/proxima.schema.json"
cp "$new"/* docs/
