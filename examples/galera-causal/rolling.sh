#!/bin/bash
# Restarts the servers of a Galera pool in turn, and no client sees an error: the readers from the last name
# to the first, and the writer last, when another server takes the writes.
#
#   rolling.sh POOL COMMAND...
#
# COMMAND gets the name of a server as `proxima mysql show` prints it, as its last argument, and ends when that
# was restarted. With names that are hosts:
#   rolling.sh db sh -c 'ssh "$0" systemctl restart mariadb'
#
# ADMIN    the admin ports of all proxies before the servers, with spaces between them; 127.0.0.1:9150
# LEAVING  the longest time for what is under way at a server; 60s
# COMING   the longest time for a server to come back; 10m
set -euo pipefail

(($# > 1)) || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
pool=$1
shift
restart=("$@")
proxima=${PROXIMA:-proxima}
read -ra admins <<<"${ADMIN:-127.0.0.1:9150}"

# A command of `proxima mysql`, for each proxy.
each() {
    local admin
    for admin in "${admins[@]}"; do
        "$proxima" mysql "$@" --admin "$admin"
    done
}

# Each server and its role, from the last name to the first.
servers() {
    "$proxima" mysql show "$pool" --admin "${admins[0]}" |
        awk '$2 ~ /^(writer|reader|out)$/ { print $1, $2 }' | sort -rV
}

# Nothing stays as it must not, whatever ends this: no server drains, and no writer is ordered.
draining=''
is_ordered=''
end() {
    local admin
    for admin in "${admins[@]}"; do
        [[ -z $draining ]] || "$proxima" mysql undrain "$pool" "$draining" --admin "$admin" || true
        [[ -z $is_ordered ]] || "$proxima" mysql writer "$pool" --end --admin "$admin" || true
    done
}
trap end EXIT

# Waits until all servers serve: the one that has brought another one up to date as well.
all_serve() {
    local now name
    now=$(servers)
    while read -r name _; do
        each show "$pool" --wait "online=$name" --for "${COMING:-10m}" >/dev/null
    done <<<"$now"
}

roll() {
    echo "rolling: $1 drains"
    draining=$1
    each drain "$pool" "$1" --within "${LEAVING:-60s}"
    echo "rolling: $1 is restarted"
    "${restart[@]}" "$1"
    each undrain "$pool" "$1"
    draining=''
    all_serve
    echo "rolling: $1 serves again"
}

now=$(servers)
out=$(awk '$2 == "out" { print $1 }' <<<"$now")
[[ -z $out ]] || { echo "rolling: nothing is restarted while a server is out: $out" >&2; exit 1; }
count=$(wc -l <<<"$now")
((count > 1)) || { echo "rolling: pool $pool has no reader" >&2; exit 1; }

# Another server may take writes meanwhile: the roles are asked for anew each time.
restarted=" "
while ((count > 0)); do
    now=$(servers)
    next='' other=''
    while read -r name role; do
        if [[ $restarted == *" $name "* ]]; then
            other=$name
        elif [[ -z $next || $role == reader && $next_role == writer ]]; then
            next=$name next_role=$role
        fi
    done <<<"$now"
    [[ -n $next ]] || { echo "rolling: $count servers have left the pool" >&2; exit 1; }
    if [[ $next_role == writer ]]; then
        is_ordered=yes
        each writer "$pool" "$other"
    fi
    roll "$next"
    restarted+="$next "
    count=$((count - 1))
done
