#!/bin/sh
# Explores the larger scopes of the fleet's model, which takes optimised code. The options are those with which
# proxy/tests/instructions.rs builds, so that the library is there already.
set -eu
cd "$(dirname "$0")/.."
setting() { echo "--config=profile.fast.$1"; }
exec cargo test --locked --package proxima --test fleet_model --profile fast "$(setting incremental=false)" \
    "$(setting package.proxima.codegen-units=1)" "$(setting package.proxima-wire.codegen-units=1)" -- "$@"
