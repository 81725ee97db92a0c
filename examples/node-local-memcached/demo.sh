#!/bin/bash
# Three nodes on one machine: 127.0.0.1, 127.0.0.2 and 127.0.0.3 each have a memcached and a Proxima. The demo
# shows that reads are local and writes reach all, then lets a fourth node join. In the end it prints how long a
# transaction takes beside other set-ups. It stops everything that it starts, and works on copies of its files.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
PATH="$PATH:/usr/sbin:/sbin"
proxima=${PROXIMA_BIN:-$root/target/quick/proxima}
proxy_port=11311
cache_port=11411
admin_port=9311
pids=()

stop() {
    status=$?
    trap - EXIT INT TERM
    if ((${#pids[@]})); then
        kill "${pids[@]}" 2>/dev/null || true
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
place=$(mktemp -d)
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# With PAUSE=1 each step waits for Enter: time to look at the console.
title() {
    [[ -z ${PAUSE:-} ]] || read -r -p "(Enter goes on) " || true
    printf '\n== %s\n\n' "$*"
}
fail() { echo "demo: $*" >&2; exit 1; }

# talk ADDRESS PORT COMMANDS sends the commands and prints the answers.
talk() {
    exec 3<>"/dev/tcp/$1/$2"
    printf '%bquit\r\n' "$3" >&3
    tr -d '\r' <&3
    exec 3>&-
}

listens() { (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; }

await() {
    for ((tries = 0; tries < 500; tries++)); do
        ! listens "$1" "$2" || return 0
        sleep 0.02
    done
    fail "nothing listens on $1:$2"
}

start_memcached() {
    local user=()
    ((EUID != 0)) || user=(-u nobody)
    memcached "${user[@]}" -l "127.0.0.$1" -p $cache_port -U 0 -m 16 >"$place/memcached-$1.log" 2>&1 &
    pids+=($!)
    await "127.0.0.$1" $cache_port
}

start_proxima() {
    "$proxima" run --config "$place/proxima.yaml" --node-address "127.0.0.$1" --workers 1 \
        --listen "127.0.0.$1:$proxy_port" --admin "127.0.0.$1:$admin_port" >"$place/proxima-$1.log" 2>&1 &
    pids+=($!)
    await "127.0.0.$1" $proxy_port
}

# gets NODE prints how many keys the memcached of that node was asked for.
gets() { talk "127.0.0.$1" $cache_port 'stats\r\n' | awk '$2 == "cmd_get" { print $3 }'; }

# held NODE KEY prints what the memcached of that node itself holds under the key.
held() { talk "127.0.0.$1" $cache_port "get $2\r\n" | sed -n 2p; }

# get NODE PATH prints what the admin port of that node answers.
get() {
    exec 3<>"/dev/tcp/127.0.0.$1/$admin_port"
    printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&3
    sed '1,/^\r*$/d' <&3
    exec 3>&-
}

# all_current NODE waits until that proxy may read every copy.
all_current() {
    for ((tries = 0; tries < 500; tries++)); do
        [[ $(get "$1" /members) == *'"copy":{"state":"'@(leaving|out|joining|opening)* ]] || return 0
        sleep 0.02
    done
    get "$1" /members >&2
    fail "a copy does not come back"
}

# read_through NODE NODES reads 100 times through that node's proxy, and prints which memcached was asked.
read_through() {
    local before=() node asked answers
    for ((node = 1; node <= $2; node++)); do before[node]=$(gets $node); done
    answers=$(talk "127.0.0.$1" $proxy_port "$(printf 'get greeting\\r\\n%.0s' {1..100})" | grep -c ^VALUE)
    echo "100 reads through the proxy of node $1: $answers hits"
    for ((node = 1; node <= $2; node++)); do
        asked=$(($(gets $node) - before[node]))
        echo "    memcached of node $node was asked $asked times"
        ((asked == (node == $1 ? 100 : 0))) || fail "reads of node $1 are not local"
    done
}

command -v memcached >/dev/null || sh "$root/scripts/prepare.sh"
command -v memcached >/dev/null || fail "needs memcached: apt-get install memcached"
command -v python3 >/dev/null || fail "needs python3"
[[ -x $proxima ]] || sh "$root/scripts/build.sh" --profile quick
for node in 1 2 3 4; do
    for port in $cache_port $proxy_port $admin_port; do
        ! listens 127.0.0.$node $port || fail "somebody listens on 127.0.0.$node:$port already"
    done
done
cp "$here/proxima.yaml" "$here/servers" "$place"

title "Three nodes, one configuration"
cat "$here/proxima.yaml"
for node in 1 2 3; do start_memcached $node; done
for node in 1 2 3; do
    start_proxima $node
    echo "node $node: memcached on 127.0.0.$node:$cache_port, Proxima on 127.0.0.$node:$proxy_port, its console at http://127.0.0.$node:$admin_port/"
done

title "A write reaches all"
echo "set greeting through the proxy of node 1: $(talk 127.0.0.1 $proxy_port 'set greeting 0 0 5\r\nhello\r\n')"
for node in 1 2 3; do
    value=$(held $node greeting)
    echo "    memcached of node $node holds: $value"
    [[ $value == hello ]] || fail "the write did not reach node $node"
done

title "A read stays on its node"
read_through 2 3
read_through 3 3

title "Why? The proxy of node 2 explains"
echo "\$ curl 'http://127.0.0.2:$admin_port/explain?key=greeting'"
get 2 '/explain?key=greeting'

title "A fourth node joins: one more line in the file of servers"
start_memcached 4
line="127.0.0.4:$cache_port"
echo "\$ echo $line >> servers"
began=${EPOCHREALTIME/[.,]/}
echo "$line" >>"$place/servers"
waits=(1 2 3)
while ((${#waits[@]})); do
    ((${EPOCHREALTIME/[.,]/} - began < 10000000)) || fail "the fourth node gets no writes"
    still=()
    for node in "${waits[@]}"; do
        talk 127.0.0.$node $proxy_port "set from$node 0 0 2\r\nhi\r\n" >/dev/null
        [[ $(held 4 from$node) == hi ]] || still+=("$node")
    done
    waits=(${still[@]+"${still[@]}"})
done
took=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
echo "all three proxies write to it after $took ms; none was restarted"
((took < 1000)) || fail "that should take less than a second"
start_proxima 4
for node in 1 2 3 4; do all_current $node; done
talk 127.0.0.1 $proxy_port 'set greeting 0 0 5\r\nhello\r\n' >/dev/null
read_through 4 4
echo
echo "(It holds what was written since it joined; what is older it misses, and the application fills in.)"

title "Node 1 loses its memcached: it hangs, and answers nobody"
kill -STOP "${pids[0]}"
began=${EPOCHREALTIME/[.,]/}
answer=$(talk 127.0.0.1 $proxy_port 'set greeting 0 0 5\r\nagain\r\n')
took=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
echo "a write through the proxy of node 1: $answer after $took ms (it waits once, for the pool's timeout)"
[[ $answer == STORED ]] || fail "a lost node stops the writes"
began=${EPOCHREALTIME/[.,]/}
talk 127.0.0.1 $proxy_port 'set other 0 0 1\r\nx\r\n' >/dev/null
echo "the next one after $(((${EPOCHREALTIME/[.,]/} - began) / 1000)) ms"
value=$(talk 127.0.0.1 $proxy_port 'get greeting\r\n' | sed -n 2p)
echo "a read there, from another node: $value"
[[ $value == again ]] || fail "a read is stale"

title "It comes back, with the old value in its memory"
kill -CONT "${pids[0]}"
all_current 1
value=$(held 1 greeting)
echo "the memcached of node 1 holds now: ${value:-nothing: what it had missed was deleted there before it was read again}"
[[ $value != hello ]] || fail "the old value is still there"
grep -o 'copy pool.*' "$place/proxima-1.log" | tail -n 5 | sed 's/^/    /'

title "How long does a transaction take?"
for pid in "${pids[@]}"; do { kill "$pid" && wait "$pid"; } 2>/dev/null || true; done
pids=()
echo "Each measurement takes ${DEMO_SECONDS:-3} s. Nodes are 1 ms apart, in each direction."
[[ -n ${MCROUTER:-} ]] || echo "(MCROUTER=FILE names a binary of mcrouter, which is then measured too.)"
echo
python3 "$here/figures.py" "$proxima" --seconds "${DEMO_SECONDS:-3}" ${MCROUTER:+--mcrouter "$MCROUTER"}

title "Done"
