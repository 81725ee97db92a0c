#!/bin/bash
# Restarts the servers of a Galera pool in turn, and no client sees an error: the readers from the last name to the
# first, and the writer last, when another server takes the writes.
#
#   rolling.sh POOL COMMAND...
#
# COMMAND gets the name of a server as its last argument, and ends when that was restarted, as
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
    for admin in "${admins[@]}"; do
        "$proxima" mysql "$@" --admin "$admin"
    done
}

# The servers of this role that were not restarted, from the last name to the first.
restarted=()
with_role() {
    "$proxima" mysql show "$pool" --admin "${admins[0]}" | awk -v role="$1" -v done=" ${restarted[*]} " \
        '$2 == role && !index(done, " " $1 " ") { print $1 }' | sort -rV
}

# A server serves again if it was not restarted.
draining=
serves_again() {
    [[ -z $draining ]] || each undrain "$pool" "$draining"
}
trap serves_again EXIT

roll() {
    echo "rolling: $1 drains"
    draining=$1
    each drain "$pool" "$1" --within "${LEAVING:-60s}"
    echo "rolling: $1 is restarted"
    "${restart[@]}" "$1"
    each undrain "$pool" "$1"
    draining=
    each show "$pool" --wait "online=$1" --for "${COMING:-10m}" >/dev/null
    echo "rolling: $1 serves again"
}

out=$(with_role out)
[[ -z $out ]] || { echo "rolling: nothing is restarted while a server is out: $out" >&2; exit 1; }
next=
# Another server may take writes meanwhile: the roles are asked for anew each time.
while reader=$(with_role reader | head -1) && [[ -n $reader ]]; do
    roll "$reader"
    restarted+=("$reader")
    next=$reader
done
[[ -n $next ]] || { echo "rolling: pool $pool has no reader" >&2; exit 1; }
writer=$(with_role writer)
if [[ -n $writer ]]; then
    each writer "$pool" "$next"
    roll "$writer"
    each writer "$pool" --end
fi
