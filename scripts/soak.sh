#!/bin/sh
# The long runs, which look for failures that are rare.
set -eu
cd "$(dirname "$0")/.."

[ ! -d agent ] || ! command -v go >/dev/null || make -C agent test soak
! command -v go >/dev/null || make -C operator soak
# The program is the one that the image has, and not the one that was built quickly for `make test`.
sh scripts/build.sh --release
PROXIMA_BIN="${PROXIMA_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release/proxima}"
export PROXIMA_BIN
cargo build --release --locked -p proxima-bench
round=1
while [ "$round" -le "${SOAK_ROUNDS:-10}" ]; do
    echo "soak: round $round of ${SOAK_ROUNDS:-10}"
    .venv/bin/python -m pytest tests --every-back-end -m "not alone and not heavy" -n "${TEST_JOBS:-6}"
    .venv/bin/python -m pytest tests --every-back-end -m "heavy and not alone" -n "$(nproc)"
    .venv/bin/python -m pytest tests --every-back-end -m alone
    round=$((round + 1))
done
echo "soak: all cells of the failure matrix"
PROXIMA_SOAK=1 .venv/bin/python -m pytest --every-back-end tests/test_copies.py tests/test_copies_crash.py \
    tests/test_copies_state.py tests/test_home.py tests/test_matrix.py tests/test_hostile.py \
    tests/test_hostile_redis.py
echo "soak: every hash of twemproxy's in every case with 10,000 keys, and a million short connections"
PROXIMA_SOAK=1 .venv/bin/python -m pytest --every-back-end tests/test_nutcracker_keys.py \
    tests/test_connections.py
echo "soak: random faults of a fleet, of its network and its disks, and fifty peers on one host"
PROXIMA_SOAK=1 .venv/bin/python -m pytest --every-back-end tests/test_fleet_faults.py tests/test_fleet_net.py \
    tests/test_fleet_disk.py tests/test_fleet_many.py
echo "soak: the chart in a cluster, an hour of it without the API server, and a hundred changes of pods"
PROXIMA_SOAK=1 .venv/bin/python -m pytest --every-back-end tests/test_chart_*.py tests/test_kubernetes_nodes.py
echo "soak: the demo of stale reads, with a cluster of its own"
PROXIMA_SOAK=1 .venv/bin/python -m pytest tests/test_galera_causal.py
echo "soak: rolls of a Galera cluster in Kubernetes, and the operator killed in each step"
PROXIMA_SOAK=1 .venv/bin/python -m pytest tests/test_smart_update_*.py tests/test_galera_smart_update.py
echo "soak: the same requests while somebody watches, by taps, and all are timed"
PROXIMA_WATCHED=1 PROXIMA_TIMED=1 .venv/bin/python -m pytest --every-back-end -n "${TEST_JOBS:-6}" tests/test_redis_*.py tests/test_mysql_replies.py \
    tests/test_mysql_statements.py tests/test_mysql_sessions.py tests/test_near_cache.py tests/test_copies.py \
    tests/test_routes.py tests/test_large.py
echo "soak: an hour of histories of the near cache"
PROXIMA_SOAK=1 .venv/bin/python -m pytest --every-back-end tests/test_near_cache_histories.py
echo "soak: clients of MySQL that look for what others have marked"
PROXIMA_SOAK=1 .venv/bin/python -m pytest --every-back-end tests/test_mysql_marked.py
echo "soak: rules of the sessions of MySQL, each of which is switched off once"
.venv/bin/python tests/mutants/run.py
echo "soak: drivers of PHP, Ruby and Java"
PROXIMA_SOAK=1 .venv/bin/python -m pytest --every-back-end tests/test_mysql_more_drivers.py
echo "soak: the chart by the helm before this one as well, and all that happens to it in a cluster"
sh scripts/helm.sh 3
PROXIMA_SOAK=1 .venv/bin/python -m pytest tests/test_chart_*.py tests/test_kubernetes_nodes.py
echo "soak: what five hundred subscribers cost their leader"
cargo test --profile fast --locked -p proxima --lib subscribers -- --ignored --nocapture
echo "soak: the largest scopes of the fleet's model"
PROXIMA_SOAK=1 sh scripts/model.sh --nocapture
FUZZ_SECONDS="${FUZZ_SECONDS:-1800}" sh scripts/fuzz.sh
