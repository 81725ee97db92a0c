#!/bin/sh
# Runs all checks that do not run the code. A missing tool is an error: scripts/prepare.sh installs the tools.
set -eu
cd "$(dirname "$0")/.."
. scripts/phases.sh

phase "tools, installed once" sh scripts/prepare.sh
phase "cargo-deny, built once" sh scripts/deny.sh build

tools=.venv/bin
for tool in ruff codespell shellcheck; do
    [ -x "$tools/$tool" ] || { echo "lint: $tools/$tool is missing; scripts/prepare.sh installs it" >&2 && exit 1; }
done

# Rust: formatting, clippy, documentation without broken links, and the fuzz targets, which no other command
# here builds.
rust() {
    cargo fmt --all --check
    for crate in wire proxy; do
        cargo fmt --manifest-path $crate/fuzz/Cargo.toml --check
    done
    cargo clippy --quiet --locked --workspace --all-targets -- --deny warnings
    RUSTDOCFLAGS='--deny warnings' cargo doc --quiet --locked --workspace --no-deps --document-private-items
    for crate in wire proxy; do
        # Any path here keeps libFuzzer, which is C++, from being compiled. Nothing is linked.
        CUSTOM_LIBFUZZER_PATH=/nowhere/libfuzzer.a \
            cargo check --quiet --locked --manifest-path $crate/fuzz/Cargo.toml --target-dir target
    done
}

python() {
    $tools/ruff check --quiet .
    $tools/ruff format --quiet --check .
}

shell() {
    git ls-files -z '*.sh' .ci/run | xargs -0 $tools/shellcheck --severity=warning --external-sources
}

# The console's scripts are checked by the types in their comments. What that needs comes from npm.
console() {
    if ! command -v npm >/dev/null; then
        echo "lint: skipped, as npm is missing: types of the console"
    elif ! made=$(sh scripts/console.sh); then
        echo "lint: skipped, as npm could not fetch what they need: types of the console"
    else
        "$made/node_modules/.bin/tsc" --project tests/console
    fi
}

phase "rustfmt, clippy, rustdoc, fuzz targets" rust
phase "ruff" python
phase "shellcheck" shell
phase "types of the console" console
phase "spelling" $tools/codespell
phase "dependencies" sh scripts/deny.sh
