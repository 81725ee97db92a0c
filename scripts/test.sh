#!/bin/sh
# Runs every test. The runners' own summaries come last.
set -eu
cd "$(dirname "$0")/.."

# Servers live in sbin for everyone but root.
PATH="$PATH:/usr/sbin:/sbin"

if [ ! -d agent ]; then
    :
elif command -v go >/dev/null; then
    make -C agent test
else
    echo "test: skipped, as go is missing: the node agent"
fi
cargo build --release --locked -p proxima -p proxima-bench
cargo test --locked --workspace
if [ -x .venv/bin/python ]; then
    .venv/bin/python -m pytest tests "$@"
else
    echo "test: skipped, as .venv is missing (scripts/prepare.sh says why): the end-to-end tests"
fi
