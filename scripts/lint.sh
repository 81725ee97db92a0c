#!/bin/sh
# Formatting, clippy without a warning, and what the dependencies may be (deny.toml).
set -eu
cd "$(dirname "$0")/.."

cargo fmt --all --check
# The bans of clippy.toml are about the product; tests and bench wait, connect and read clocks.
cargo clippy --locked --package proxima --package proxima-wire --lib --bins -- --deny warnings
cargo clippy --locked --workspace --all-targets -- --deny warnings \
    --allow clippy::disallowed-methods --allow clippy::disallowed-types
sh scripts/deny.sh
