#!/bin/bash
# The stale test through HAProxy, straight at the servers of a Galera cluster, and through Proxima: `demo.py` starts
# all of them and stops them again, and `stale.py` is the test. READS is the number of reads of each way.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
PATH="$PATH:/usr/sbin:/sbin"
proxima=${PROXIMA_BIN:-$root/target/quick/proxima}
python=$root/.venv/bin/python

for program in "$python" mariadbd rsync haproxy; do
    if ! command -v "$program" >/dev/null; then
        sh "$root/scripts/prepare.sh"
        break
    fi
done
[[ -x $python ]] || { echo "demo: needs $python, which scripts/prepare.sh makes" >&2; exit 1; }
[[ -x $proxima ]] || sh "$root/scripts/build.sh" --profile quick
# The tests have what starts a cluster.
PYTHONPATH=$root/tests exec "$python" "$here/demo.py" "$proxima"
