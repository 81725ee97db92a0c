#!/bin/sh
# Runs every fuzz target for FUZZ_SECONDS. A crash is kept in wire/fuzz/artifacts and fails the run.
set -eu
cd "$(dirname "$0")/../wire"

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: needs a nightly compiler: rustup toolchain install nightly" >&2
    exit 1
fi
command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
for target in $(cargo +nightly fuzz list); do
    echo "fuzz: $target for ${FUZZ_SECONDS:-60} s"
    cargo +nightly fuzz run "$target" -- -max_total_time="${FUZZ_SECONDS:-60}" -dict=fuzz/memcache.dict -verbosity=0
done
