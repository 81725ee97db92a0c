#!/bin/sh
# Fetches the packages from npm that check the console, once, and prints where they are.
set -eu
cd "$(dirname "$0")/.."

made=.cache/console
if ! cmp -s tests/console/package-lock.json "$made/package-lock.json" || [ ! -d "$made/node_modules" ]; then
    mkdir -p "$made"
    cp tests/console/* "$made"
    npm ci --prefix "$made" --no-audit --no-fund >&2
fi
echo "$made"
