#!/bin/sh
# Run this before every commit: lint, and the tests that need no server. `make test` has all tests.
set -eu
cd "$(dirname "$0")/.."
. scripts/phases.sh

sh scripts/lint.sh
phase "unit and engine tests" cargo test --quiet --locked --workspace --lib --test engine
! command -v go >/dev/null || [ ! -d agent ] || phase "node agent, unit" make -s -C agent unit
! command -v go >/dev/null || phase "operator, unit" make -s -C operator unit
