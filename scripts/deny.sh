#!/bin/sh
# cargo deny, installed below .cache if it is not there. (The advisories are not checked: their database is not always in reach.)
# PyPI's newest wheel, 0.14, cannot read today's cargo metadata; a build without optimization takes two to three minutes, once.
set -eu
cd "$(dirname "$0")/.."

version=0.20.2
PATH="$PWD/.cache/tools/bin:$PATH"
if ! command -v cargo-deny >/dev/null; then
    echo "deny: building cargo-deny $version, once"
    if ! CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug --root .cache/tools "cargo-deny@$version"; then
        echo "deny: skipped, as cargo-deny cannot be installed"
        exit 0
    fi
fi
cargo deny --locked check bans licenses sources
