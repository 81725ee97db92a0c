#!/bin/bash
# An application, a balancer, two proxies and four servers, once for memcached and once for Redis. Servers and
# proxies come and go, and the demo counts the errors that clients see: with Proxima, and beside it with
# twemproxy where that is installed. It stops everything that it starts, and works on copies of its files.
#
# With FIGURES=1 it measures instead: how many commands a second the application gets, and what they cost.
# FIGURES="--rounds 3 …" hands these words to `proxima-bench compare`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
PATH="$PATH:/usr/sbin:/sbin"
proxima=${PROXIMA_BIN:-$root/target/quick/proxima}
# The balancer asks for the health of each pool at a port of its own.
health_port=9160
redis_health_port=9161
place=$(mktemp -d)
# The number of each process that runs, by name.
declare -A pids=()
protocols=(memcached redis)
# The proxies are at these addresses: 127.0.0.N.
declare -A proxies=([Proxima]="1 2" [twemproxy]="3 4")
declare -A balancers=([Proxima]=127.0.0.10 [twemproxy]=127.0.0.20)

stop() {
    status=$?
    trap - EXIT INT TERM
    if ((${#pids[@]})); then
        kill -KILL "${pids[@]}" 2>/dev/null || true
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

title() { printf '\n== %s\n\n' "$*"; }
fail() { echo "demo: $*" >&2; exit 1; }

# start NAME COMMAND… starts a process whose log is NAME.log.
start() {
    "${@:2}" >>"$place/$1.log" 2>&1 &
    pids[$1]=$!
}

# end NAME [SIGNAL] ends that process.
end() {
    { kill "-${2:-TERM}" "${pids[$1]}" && wait "${pids[$1]}"; } 2>/dev/null || true
    unset "pids[$1]"
}

listens() { (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; }

# until_true WHAT COMMAND… waits until the command succeeds.
until_true() {
    for ((tries = 0; tries < 400; tries++)); do
        ! "${@:2}" || return 0
        sleep 0.05
    done
    fail "this never happened: $1"
}

# http ADDRESS PORT METHOD PATH [BODY] prints the answer.
http() {
    local body=${5:-}
    exec 3<>"/dev/tcp/$1/$2"
    printf '%s %s HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s' "$3" "$4" ${#body} "$body" >&3
    sed '1,/^\r*$/d' <&3
    exec 3>&-
}

# say_health NODE prints the check of memcached's pool there, and its answer.
say_health() {
    echo "\$ curl http://127.0.0.$1:$health_port"
    http "127.0.0.$1" $health_port GET /
}

# statistics NODE prints what twemproxy's statistics port tells there.
statistics() { cat <"/dev/tcp/127.0.0.$1/22222"; }

# balanced 1|2 UP|out waits until all balancers lead clients to their first or second proxy, or away from it.
balanced() {
    local kind
    # shellcheck disable=SC2317
    is_so() {
        local states
        states=$(http "${balancers[$kind]}" 8404 GET '/;csv' |
            awk -F, -v "name=proxy-$1" '$2 == name { print ($18 ~ /^UP/ ? "UP" : "out") }')
        [[ $states == "$2"$'\n'"$2" ]]
    }
    for kind in "${kinds[@]}"; do until_true "for the balancer proxy $1 is $2" is_so "$1" "$2"; done
}

start_server() {
    local user=()
    ((EUID != 0)) || user=(-u nobody)
    start "memcached-$1" memcached "${user[@]}" -l "127.0.0.$1" -p 11211 -U 0 -m 16
    start "redis-$1" redis-server --bind "127.0.0.$1" --port 6379 --save "" --dir "$place"
    until_true "memcached $1 listens" listens "127.0.0.$1" 11211
    until_true "redis $1 listens" listens "127.0.0.$1" 6379
}

# written SERVER prints how many keys were written to that memcached.
written() {
    exec 3<>"/dev/tcp/127.0.0.$1/11211"
    printf 'stats\r\nquit\r\n' >&3
    tr -d '\r' <&3 | awk '$2 == "cmd_set" { print $3 }'
    exec 3>&-
}

# start_proxy KIND NODE starts that proxy at 127.0.0.NODE, with the same arguments for both kinds.
start_proxy() {
    local command=("$proxima" nutcracker "--health=memcached=127.0.0.$2:$health_port"
        "--health=redis=127.0.0.$2:$redis_health_port" --health-min=2
        "--drain-file=$place/out-$2" --drain-delay=2s)
    [[ $1 == Proxima ]] || command=(nutcracker -o "$place/twemproxy-$2.log")
    write_file "$2"
    start "$1-$2" "${command[@]}" -c "$place/nutcracker-$2.yml" -a "127.0.0.$2" -s 22222 -i 100
    until_true "$1 $2 serves" listens "127.0.0.$2" 22121
    until_true "$1 $2 serves Redis" listens "127.0.0.$2" 22122
}

# write_file NODE writes the configuration of that proxy, and renames it into its place.
write_file() {
    sed "s/listen: 127.0.0.1:/listen: 127.0.0.$1:/" "$place/nutcracker.yml" >"$place/nutcracker-$1.new"
    mv "$place/nutcracker-$1.new" "$place/nutcracker-$1.yml"
}

# twemproxy has no health port: its balancer looks whether it can be connected to, and is told by hand to lead
# clients away.
write_their_balancer() {
    sed -e '/option httpchk/d; s/check port.*/check/; s/stats enable/&\n    stats admin if TRUE/' \
        -e "s/127.0.0.10/${balancers[twemproxy]}/; s/127.0.0.1:/127.0.0.3:/; s/127.0.0.2:/127.0.0.4:/" \
        "$here/haproxy.cfg" >"$place/twemproxy.cfg"
}

# lead_them ready|maint has twemproxy's balancer lead clients to the first proxy, or away from it.
lead_them() {
    local protocol
    for protocol in "${protocols[@]}"; do
        http "${balancers[twemproxy]}" 8404 POST / "s=proxy-1&action=$1&b=$protocol" >/dev/null
    done
}

# begin_step TEXT begins a step: requests belong to it from now on.
begin_step() {
    title "$1"
    steps+=("$1")
    local kind protocol
    for kind in "${kinds[@]}"; do
        for protocol in "${protocols[@]}"; do
            begins[$kind-$protocol-$((${#steps[@]} - 1))]=$(wc -l <"$place/clients-$kind-$protocol.log")
        done
    done
}

# outcomes KIND STEP prints the outcomes of the requests of a step.
outcomes() {
    local protocol first last
    for protocol in "${protocols[@]}"; do
        first=$((${begins[$1-$protocol-$2]} + 1))
        last=${begins[$1-$protocol-$(($2 + 1))]}
        sed -n "$first,${last}p" "$place/clients-$1-$protocol.log"
    done
}

# cell KIND STEP prints "errors of requests", and how many were asked again.
cell() {
    if [[ ! -v pids["clients-$1-redis"] ]]; then
        echo "not installed"
    else
        outcomes "$1" "$2" |
            awk '{ count[$0 == "ok" || $0 == "repeated" ? $0 : "error"]++ }
                END { printf "%d of %d, %d again", count["error"], NR, count["repeated"] }'
    fi
}

# measure prints the figures of one to five servers: asked directly, through one proxy, and through HAProxy and
# two; on connections that are kept, and on one for each request; with each distribution.
measure() {
    local words=(--rounds 1 --distribution "ketama,modula,random") bench=${PROXIMA_BENCH:-$root/target/release/proxima-bench}
    [[ $FIGURES == 1 ]] || read -ra words <<<"$FIGURES"
    # It is the release that is measured.
    proxima=${PROXIMA_BIN:-$root/target/release/proxima}
    [[ -x $proxima ]] || sh "$root/scripts/build.sh" --release
    [[ -x $bench ]] || cargo build --manifest-path "$root/Cargo.toml" --release --locked -p proxima-bench
    "$bench" compare --rows balanced --only proxima-nutcracker,twemproxy --binary "proxima-nutcracker=$proxima" \
        --results "$root/target/figures" --plots "$root/target/figures" "${words[@]}"
}

programs=(memcached redis-server haproxy)
missing=
for program in "${programs[@]}"; do
    command -v "$program" >/dev/null || missing=yes
done
[[ -z $missing ]] || sh "$root/scripts/prepare.sh"
for program in "${programs[@]}" python3; do
    command -v "$program" >/dev/null || fail "needs $program"
done
if [[ -n ${FIGURES:-} ]]; then
    measure
    exit
fi
[[ -x $proxima ]] || sh "$root/scripts/build.sh" --profile quick
kinds=(Proxima)
! command -v nutcracker >/dev/null || kinds+=(twemproxy)
for address in 127.0.0.{10,11,12,13,14,15,20}:{11211,6379} 127.0.0.{10,20}:8404 \
    127.0.0.{1,2,3,4}:{22121,22122,22222} 127.0.0.{1,2}:{$health_port,$redis_health_port}; do
    ! listens "${address%:*}" "${address#*:}" || fail "somebody listens on $address already"
done
cp "$here/nutcracker.yml" "$here/haproxy.cfg" "$place"
mv "$place/haproxy.cfg" "$place/Proxima.cfg"
write_their_balancer
# memcached and Redis may run as other users.
chmod 755 "$place"
declare -A begins
steps=()

title "Four servers, two proxies with twemproxy's file, and a balancer"
for server in 11 12 13 14; do start_server $server; done
for kind in "${kinds[@]}"; do
    for node in ${proxies[$kind]}; do start_proxy "$kind" "$node"; done
    start "haproxy-$kind" haproxy -db -f "$place/$kind.cfg"
    for protocol in "${protocols[@]}"; do
        port=11211
        [[ $protocol == memcached ]] || port=6379
        until_true "the balancer serves" listens "${balancers[$kind]}" $port
        start "clients-$kind-$protocol" python3 "$here/clients.py" "$protocol" "${balancers[$kind]}:$port"
    done
    until_true "the balancer tells its state" listens "${balancers[$kind]}" 8404
    echo "$kind: clients of memcached and of Redis ask ${balancers[$kind]}"
done
balanced 1 UP
balanced 2 UP
sleep 1

begin_step "nothing happens"
sleep 2

begin_step "a server is killed"
end memcached-12 KILL
end redis-12 KILL
# Each proxy asks it again after 5 s (server_retry_timeout), in vain.
sleep 1
say_health 1
sleep 6

begin_step "the server returns"
start_server 12
sleep 4.5
asked=$(written 12)
((asked > 0)) || fail "the server that returned is not asked"
echo "it was empty, and has been written $asked times since"

begin_step "a proxy is drained, and comes back"
echo "\$ touch $place/out-1"
touch "$place/out-1"
is_drained() { http 127.0.0.1 $health_port GET / | grep -q draining; }
until_true "the proxy sees the file" is_drained
say_health 1
no_clients() { [[ $(statistics 1 | grep -o '"client_connections":[0-9]*' | sort -u) == *:0 ]]; }
until_true "the drained proxy has no clients" no_clients
[[ ! -v pids[twemproxy-3] ]] || lead_them maint
balanced 1 out
# It could be stopped or replaced now. twemproxy is, as it has no other way to let go of clients that stay.
if [[ -v pids[twemproxy-3] ]]; then
    end twemproxy-3
    start_proxy twemproxy 3
fi
sleep 1
echo "\$ rm $place/out-1"
rm "$place/out-1"
[[ ! -v pids[twemproxy-3] ]] || lead_them ready
balanced 1 UP
sleep 1

begin_step "a proxy is killed"
for kind in "${kinds[@]}"; do end "$kind-${proxies[$kind]##* }" KILL; done
balanced 2 out
sleep 1

begin_step "the proxy is started again"
for kind in "${kinds[@]}"; do start_proxy "$kind" "${proxies[$kind]##* }"; done
balanced 2 UP
sleep 1

begin_step "a fifth server is added to the file"
start_server 15
sed -i 's/^\( *- 127.0.0.\)14\(:.*\)/&\n\115\2/' "$place/nutcracker.yml"
for node in ${proxies[Proxima]}; do write_file "$node"; done
fifth() { statistics "$1" | grep -q '"127.0.0.15:6379"'; }
for node in ${proxies[Proxima]}; do until_true "proxy $node has the fifth server" fifth "$node"; done
awaited() { (($(written 15) > 0)); }
until_true "the fifth server is written to" awaited
# twemproxy reads its file at the start only.
if [[ -v pids[twemproxy-3] ]]; then
    for node in ${proxies[twemproxy]}; do
        end "twemproxy-$node"
        start_proxy twemproxy "$node"
        sleep 1
    done
fi
sleep 1
echo "it has been written $(written 15) times since"

begin_step "Errors that clients saw"
printf '%-38s%-26s%s\n' "" Proxima twemproxy
for ((step = 0; step < ${#steps[@]} - 1; step++)); do
    printf '%-38s%-26s%s\n' "${steps[step]}" "$(cell Proxima $step)" "$(cell twemproxy $step)"
done
printf '\nagain: a kept connection had ended, and the client connected anew and asked again\n'
for kind in "${kinds[@]}"; do
    title "What they were told with $kind"
    for ((step = 0; step < ${#steps[@]} - 1; step++)); do
        { outcomes "$kind" "$step" | grep -vxE 'ok|repeated' || true; } | sort | uniq -c |
            sed "s/^ */${steps[step]}: /"
    done
done
