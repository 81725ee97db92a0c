#!/bin/sh
# Runs every test. Arguments are pytest's. The runners' own summaries come last, and how long each phase took.
#
# The agent's lanes, which mostly wait, run beside the compiler and the tests of the crates. The end-to-end
# tests, which suffer more from other load, run after both, several at a time.
set -eu
cd "$(dirname "$0")/.."
. scripts/phases.sh

phase "tools, installed once" sh scripts/prepare.sh
phase "control plane of Kubernetes, built once" sh scripts/control-plane.sh
phase "helm, built once" sh scripts/helm.sh

# Servers are in sbin, which only root has in its PATH.
PATH="$PATH:/usr/sbin:/sbin"
mkdir -p target

agent=
begin_agent() {
    # The agent's tests have a process group of their own, so that no process outlives this script.
    setsid make -C agent test >target/agent.log 2>&1 &
    agent=$!
    trap 'kill -s TERM -- "-$agent" 2>/dev/null || true; end_of_phases' EXIT
    trap 'exit 130' INT TERM
}

end_agent() {
    status=0
    wait "$agent" || status=$?
    trap end_of_phases EXIT
    cat target/agent.log
    return $status
}

# More tests run at a time than there are processors, as most of them wait most of the time.
jobs=$(($(nproc) * 3))
[ "$jobs" -le 12 ] || jobs=12
jobs=${TEST_JOBS:-$jobs}

# Prints the output of `cargo test`, then its slowest programs. A shell's pipe would lose the exit code.
test_crates() {
    {
        RUST_TEST_THREADS="$jobs" cargo test --locked --workspace --no-fail-fast 2>&1 ||
            echo "cargo test ended with $?" >target/cargo-test.failed
    } | tee target/cargo-test.log
    echo "slowest test programs:"
    awk '/^ *(Running|Doc-tests) / { name = $2 " " $3 " " $4 } /; finished in / { print $NF, name }' target/cargo-test.log |
        sort -rn | head -10
    [ ! -e target/cargo-test.failed ] || python3 scripts/second_look.py target/cargo-test.log
}

# The judge of stale reads need not be fast. `cargo test` has built this one.
export PROXIMA_BENCH="${PROXIMA_BENCH:-${CARGO_TARGET_DIR:-$PWD/target}/debug/proxima-bench}"
asked=$#
pytest() {
    status=0
    .venv/bin/python -m pytest tests --durations=40 --cache-clear "$@" || status=$?
    # Exit code 1 means that tests failed. harness/second_look.py says which ones run again.
    if [ "$status" = 1 ]; then
        status=0
        .venv/bin/python -m pytest tests --last-failed --second-look "$@" -n 0 || status=$?
    fi
    # Exit code 5 means that no test matches the arguments, which is an error only without arguments.
    [ "$status" = 5 ] && [ "$asked" -gt 0 ] || return "$status"
}

# What is built from a fresh clone stays below 25 GB. More is there where other builds were made before.
tell_disk() {
    du -sk target .venv .cache agent /var/cache/proxima-agent-lab 2>/dev/null | awk '
        { total += $1; parts = parts sprintf("%s %s %.1f", NR > 1 ? "," : "", $2, $1 / 1e6 * 1.024) }
        END { printf "disk: %.1f GB of 25 (%s)\n", total / 1e6 * 1.024, substr(parts, 2) }'
}

if [ ! -d agent ]; then
    :
elif command -v go >/dev/null; then
    begin_agent
else
    echo "test: skipped, as go is missing: the node agent and the operator"
fi
rm -f target/cargo-test.failed
phase "build of the program" sh scripts/build.sh --profile quick
phase "tests of the crates" test_crates
phase "fleet's model, larger scopes" sh scripts/model.sh
! command -v go >/dev/null || phase "operator, with a real API server" make -C operator test build
[ -z "$agent" ] || phase "node agent, waited for (it began at the start)" end_agent
if [ ! -x .venv/bin/python ]; then
    echo "test: skipped, as .venv is missing (scripts/prepare.sh says why): the end-to-end tests"
    tell_disk
    exit 0
fi
phase "end-to-end tests, $jobs at a time" pytest -m "not alone and not heavy" -n "$jobs" --dist worksteal "$@"
phase "end-to-end tests, $(nproc) at a time" pytest -m "heavy and not alone" -n "$(nproc)" --dist worksteal "$@"
phase "end-to-end tests, one by one" pytest -m alone "$@"
tell_disk
