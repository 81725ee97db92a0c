#!/bin/bash
# A Galera cluster in a Kubernetes cluster on this machine is rolled three times while clients write and read:
# by the StatefulSet's own controller, by evictions alone, and by the operator and the proxies together.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=$root/.venv/bin/python

sh "$root/scripts/prepare.sh"
sh "$root/scripts/control-plane.sh"
sh "$root/scripts/helm.sh"
[[ -x $python ]] || { echo "demo: needs $python, which scripts/prepare.sh makes" >&2; exit 1; }
export PROXIMA_BIN=${PROXIMA_BIN:-$root/target/quick/proxima}
export PROXIMA_BENCH=${PROXIMA_BENCH:-$root/target/debug/proxima-bench}
[[ -x $PROXIMA_BIN ]] || sh "$root/scripts/build.sh" --profile quick
[[ -x $PROXIMA_BENCH ]] || (cd "$root" && cargo build --locked -p proxima-bench)
[[ -n ${PROXIMA_OPERATOR:-} ]] || make -C "$root/operator" build
# The tests have what starts a cluster.
PYTHONPATH=$root/tests exec "$python" "$here/demo.py"
