#!/bin/bash
# Three nodes on one machine: 127.0.0.1, 127.0.0.2 and 127.0.0.3 each have a Proxima, and a memcached on a Unix
# socket that only that Proxima talks to. The demo writes at one node and reads at the others, counts at all of
# them at once, and stops a proxy for a while. It stops everything that it starts, and works on copies of its files.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
PATH="$PATH:/usr/sbin:/sbin"
proxima=${PROXIMA_BIN:-$root/target/quick/proxima}
pids=()
place=$(mktemp -d)

stop() {
    status=$?
    trap - EXIT INT TERM
    if ((${#pids[@]})); then
        kill -CONT "${pids[@]}" 2>/dev/null || true
        kill -INT "${pids[@]}" 2>/dev/null || true
        wait "${pids[@]}" 2>/dev/null || true
        echo "stopped ${#pids[@]} processes"
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

# With PAUSE=1 each step waits for Enter: time to look at the console.
title() {
    [[ -z ${PAUSE:-} ]] || read -r -p "(Enter goes on) " || true
    printf '\n== %s\n\n' "$*"
}
fail() { echo "demo: $*" >&2; exit 1; }

# talk NODE COMMANDS sends the commands to that node's proxy and prints the answers.
talk() {
    exec 3<>"/dev/tcp/127.0.0.$1/11311"
    printf '%bquit\r\n' "$2" >&3
    tr -d '\r' <&3
    exec 3>&-
}

# get NODE KEY prints the value, or nothing.
get() { talk "$1" "get $2\r\n" | sed -n 2p; }

# ready NODE waits until that proxy has joined and reads its own memcached.
ready() {
    for ((tries = 0; tries < 1000; tries++)); do
        if (exec 3<>"/dev/tcp/127.0.0.$1/9311") 2>/dev/null; then
            exec 3<>"/dev/tcp/127.0.0.$1/9311"
            printf 'GET /members HTTP/1.0\r\n\r\n' >&3
            members=$(cat <&3)
            exec 3>&-
            [[ $members != *'"copy":{"state":"current"'* ]] || return 0
        fi
        sleep 0.02
    done
    fail "node $1 does not join"
}

start_memcached() {
    local user=()
    ((EUID != 0)) || user=(-u nobody)
    memcached "${user[@]}" -s "$place/memcached-$1.sock" -a 777 -U 0 -m 16 >"$place/memcached-$1.log" 2>&1 &
    pids+=($!)
    for ((tries = 0; tries < 500; tries++)); do
        [[ ! -S $place/memcached-$1.sock ]] || return 0
        sleep 0.02
    done
    fail "memcached $1 does not start"
}

start_proxima() {
    sed "s/N/$1/g; s/own: unix:/own: unix:${place//\//\\/}\//" "$here/proxima.yaml" >"$place/node-$1.yaml"
    "$proxima" run --config "$place/node-$1.yaml" --workers 1 >"$place/proxima-$1.log" 2>&1 &
    pids+=($!)
    proxies[$1]=$!
}

command -v memcached >/dev/null || sh "$root/scripts/prepare.sh"
command -v memcached >/dev/null || fail "needs memcached: apt-get install memcached"
[[ -x $proxima ]] || sh "$root/scripts/build.sh" --profile quick
# memcached runs as another user.
chmod 777 "$place"
declare -A proxies

title "Three nodes find each other"
for node in 1 2 3; do start_memcached $node; done
for node in 1 2 3; do start_proxima $node; done
for node in 1 2 3; do ready $node; done
echo "consoles, for a browser: http://127.0.0.1:9311/, http://127.0.0.2:9311/, http://127.0.0.3:9311/"
"$proxima" fleet show --admin 127.0.0.1:9311

title "What one node has written, every node reads"
talk 1 'set greeting 0 0 5\r\nhello\r\n'
for node in 1 2 3; do
    echo "node $node reads $(get $node greeting)"
    [[ $(get $node greeting) == hello ]] || fail "node $node does not read what was written"
done

title "Three nodes count at once, and lose nothing"
talk 1 'set count 0 0 1\r\n0\r\n'
counters=()
for node in 1 2 3; do
    (talk $node "$(printf 'incr count 1\\r\\n%.0s' {1..100})" >/dev/null) &
    counters+=($!)
done
wait "${counters[@]}"
echo "3 times 100 is $(get 2 count)"
[[ $(get 2 count) == 300 ]] || fail "counts were lost"

title "The proxy of node 3 stands still; the others go on without it"
kill -STOP "${proxies[3]}"
talk 1 'set greeting 0 0 7\r\ngoodbye\r\n'
echo "node 2 reads $(get 2 greeting)"
[[ $(get 2 greeting) == goodbye ]] || fail "node 2 reads an old value"
kill -CONT "${proxies[3]}"
echo "node 3 goes on, and reads '$(get 3 greeting)': the new value or nothing, and never the old one"
[[ $(get 3 greeting) != hello ]] || fail "node 3 reads an old value"
ready 3
"$proxima" fleet show --admin 127.0.0.3:9311
