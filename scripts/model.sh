#!/bin/sh
# Explores the larger scopes of the fleet's model, which takes optimised code. The library is that of the
# program (scripts/build.sh --profile quick).
set -eu
cd "$(dirname "$0")/.."
exec cargo test --locked --package proxima-guard --test fleet_model --profile quick -- "$@"
