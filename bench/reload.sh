#!/bin/bash
# Measures how late replies are while 1,000 members change. The loop is open at a fixed rate: a reply counts
# from when its request was due. Each back end has two runs, without and with changes. With changes, 500 of
# the 1,000 members (one memcached on 1,000 ports) are exchanged four times a second. Under twemproxy's file,
# which is followed as well, one of 1,000 servers changes once a second. Usage: reload.sh [SECONDS of each run,
# 10] [requests a second, 5000]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-10}
rate=${2:-5000}
first=30001
port=29999
PATH="$PATH:/usr/sbin:/sbin"
place=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null; rm -r "$place"' EXIT

[[ -x target/release/proxima ]] || sh scripts/build.sh --release
[[ -x target/release/proxima-bench ]] || cargo build --release --locked -p proxima-bench
ulimit -n "$(ulimit -Hn)"
addresses=$(seq -f '127.0.0.1:%.0f' $first $((first + 999)))
user=()
((EUID != 0)) || user=(-u nobody)
memcached "${user[@]}" -c 8192 -U 0 -m 64 -l "$(paste -sd, <<<"$addresses")" 2>"$place/memcached.log" &
pids+=($!)

# names SUFFIX prints the servers. Each of the second half has a new name, so that half of the members are
# replaced.
names() {
    head -n 500 <<<"$addresses"
    tail -n 500 <<<"$addresses" | awk -v suffix="$1" '{ print $1, 1, $1 "-" suffix }'
}

change() {
    local number=0
    while sleep 0.25; do
        number=$((number + 1))
        names $number >"$place/servers.new"
        mv "$place/servers.new" "$place/servers"
    done
}

# nutcracker NUMBER prints twemproxy's file; the last server has a name with this number.
nutcracker() {
    printf 'cache:\n  listen: 127.0.0.1:%s\n  hash: fnv1a_64\n  distribution: ketama\n  servers:\n' $port
    head -n 999 <<<"$addresses" | sed 's/.*/  - &:1/'
    echo "  - $(tail -n 1 <<<"$addresses"):1 last-$1"
}

change_nutcracker() {
    local number=0
    while sleep 1; do
        number=$((number + 1))
        nutcracker $number >"$place/nutcracker.new"
        mv "$place/nutcracker.new" "$place/nutcracker.yml"
    done
}

measure() {
    target/release/proxima-bench load --address 127.0.0.1:$port --rate "$rate" --duration "${seconds}s" --connections 50 \
        --quiet --json "$place/load.json" >"$place/load.log" 2>&1 || { cat "$place/load.log" >&2; exit 1; }
    python3 - "$place/load.json" "$1" <<'PYTHON'
import json, sys
latency = json.load(open(sys.argv[1]))["latency_us"]["all"]
columns = "  ".join(f"{name} {latency[name] / 1000:6.2f} ms" for name in ("p50", "p99", "p999", "max"))
print(f"{sys.argv[2]:<66}{columns}", flush=True)
PYTHON
}

# compare HOW CHANGE WORDS… starts the proxy with these words, and measures it without and with changes.
compare() {
    local how=$1 change=$2 proxy changes
    shift 2
    target/release/proxima "$@" >"$place/proxima.log" 2>&1 &
    proxy=$!
    pids+=("$proxy")
    sleep 1
    measure "$how, nothing changes"
    $change &
    changes=$!
    pids+=("$changes")
    measure "$how, $("said_$change")"
    kill $changes
    echo "    $(grep -c 'configuration in effect' "$place/proxima.log") configurations took effect"
    kill $proxy
    wait $proxy 2>/dev/null || true
}

said_change() { echo "500 of 1,000 members change 4 times a second"; }
said_change_nutcracker() { echo "one of 1,000 servers changes each second"; }

for io in io_uring epoll; do
    names 0 >"$place/servers"
    printf 'workers: 1\nlisteners:\n  - {address: 127.0.0.1:%s, route: cache}\nadmin: 127.0.0.1:%s\npools:\n  cache: {file: servers}\n' \
        $port $((port - 1)) >"$place/proxima.yaml"
    compare $io change run --config "$place/proxima.yaml" --io $io
    nutcracker 0 >"$place/nutcracker.yml"
    compare "nutcracker on $io" change_nutcracker \
        nutcracker -c "$place/nutcracker.yml" --io $io --workers 1 -a 127.0.0.1 -s $((port - 1))
done
