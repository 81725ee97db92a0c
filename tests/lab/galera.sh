#!/bin/bash
# A server of the Galera cluster of pods CLUSTER-0, CLUSTER-1, …, which joins those that are there. The file
# `first` in its data says that it is to begin the cluster. An image may have it called another version.
set -euo pipefail

data=/var/lib/mysql
peers=$CLUSTER-0.$CLUSTER,$CLUSTER-1.$CLUSTER,$CLUSTER-2.$CLUSTER
group="base_host=$POD_IP;gcache.size=16M"
options=(
    --no-defaults --datadir="$data" --tmpdir=/tmp --socket=/tmp/socket --pid-file=/tmp/pid
    --innodb-log-file-size=8M --innodb-buffer-pool-size=16M --innodb-flush-log-at-trx-commit=0
    --key-buffer-size=1M --performance-schema=OFF --skip-name-resolve
    --binlog-format=ROW --innodb-autoinc-lock-mode=2
    --wsrep-on=ON --wsrep-provider=/usr/lib/galera/libgalera_smm.so --wsrep-provider-options="$group"
    --wsrep-cluster-name="$CLUSTER" --wsrep-cluster-address="gcomm://$peers"
    --wsrep-node-name="$POD_NAME" --wsrep-node-address="$POD_IP" --wsrep-sst-method=rsync
)
if [[ -n ${CALLED-} ]]; then
    options+=(--version="$CALLED-MariaDB")
fi

if [[ -e $data/first ]]; then
    rm "$data/first"
    options+=(--wsrep-new-cluster)
elif grep -qE '^seqno: +-1$' "$data/grastate.dat"; then
    # It was killed. From where its data ends it asks for what is missing, and not for all data.
    mariadbd "${options[@]}" --wsrep-recover --log-error=/tmp/recovered
    position=$(sed -n 's/.*Recovered position: *//p' /tmp/recovered | tail -n 1)
    options+=(--wsrep-start-position="$position")
fi
exec mariadbd "${options[@]}"
