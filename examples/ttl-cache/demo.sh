#!/bin/bash
# A daemon whose answers are expensive, and Proxima before it: how long a read takes without the near cache and
# with it, 50 modules that ask at once, a map that changes, and one command that sets the time. READS is the
# number of reads of each size (300). It stops everything that it starts.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
proxima=${PROXIMA_BIN:-$root/target/quick/proxima}
pids=()
place=$(mktemp -d)

stop() {
    status=$?
    trap - EXIT INT TERM
    if ((${#pids[@]})); then
        kill "${pids[@]}" 2>/dev/null || true
        wait "${pids[@]}" 2>/dev/null || true
    fi
    if ((status != 0 && status < 128)); then
        echo "The demo failed; the last words of each process:" >&2
        tail -n 5 "$place"/*.log >&2 || true
    fi
    rm -rf "$place"
    exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

await() {
    for ((tries = 0; tries < 500; tries++)); do
        ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null || return 0
        sleep 0.02
    done
    echo "demo: nothing listens on port $1" >&2
    exit 1
}

[ -x "$proxima" ] || sh "$root/scripts/build.sh" --profile quick
python=$root/.venv/bin/python
[ -x "$python" ] || python=python3

"$python" "$here/origin.py" 7711 >"$place/origin.log" 2>&1 &
pids+=($!)
await 7711
"$proxima" run --config "$here/proxima.yaml" >"$place/proxima.log" 2>&1 &
pids+=($!)
await 11711
await 9711
echo "console, for a browser: http://127.0.0.1:9711/"

svg=()
[ -z "${FIGURES:-}" ] || svg=(--svg "$here/reads.svg" --json "$here/reads.json")
"$python" "$here/measure.py" "$proxima" --reads "${READS:-300}" "${svg[@]}"
echo
"$proxima" near list --admin 127.0.0.1:9711
