#!/bin/sh
# Runs every fuzz target for FUZZ_SECONDS: the codecs (wire) and the readers of configurations (proxy). A
# crash is kept in fuzz/artifacts of its crate and fails the run.
set -eu
cd "$(dirname "$0")/.."

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: needs a nightly compiler: rustup toolchain install nightly" >&2
    exit 1
fi
command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
for crate in wire proxy; do
    cd "$crate"
    for target in $(cargo +nightly fuzz list); do
        echo "fuzz: $crate, $target for ${FUZZ_SECONDS:-60} s"
        set -- -max_total_time="${FUZZ_SECONDS:-60}" -verbosity=0
        for words in fuzz/*.dict; do
            set -- "$@" "-dict=$words"
        done
        cargo +nightly fuzz run "$target" -- "$@"
    done
    cd ..
done
