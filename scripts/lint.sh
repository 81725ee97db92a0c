#!/bin/sh
# Formatting, clippy without a warning, and what the dependencies may be (deny.toml).
set -eu
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo clippy --locked --workspace --all-targets -- --deny warnings
sh scripts/deny.sh
