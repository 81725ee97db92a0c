#!/bin/sh
# Measures one Redis and its client on a node of yours, pinned by the agent and not pinned, and prints the table.
#
#   measure.sh NODE [ROUNDS] [SECONDS]
#
# Needs kubectl, the agent on the node (docs/node-agent.md), 16 free CPUs and 20 GiB there, and nothing else that is busy. The
# two ways take turns, so that a node that gets slower hurts both. "Not pinned" is the annotation proxima.io/cpus: unpinned
# on both pods: the agent leaves them alone, as if it were not there.
set -eu
cd "$(dirname "$0")"
node=${1:?name a node: measure.sh NODE [ROUNDS] [SECONDS]}
rounds=${2:-5}
seconds=${3:-60}
pods="redis-1 memtier-1"
results=$(mktemp)
remove() { kubectl delete pod $pods --ignore-not-found --wait >/dev/null; }
trap 'remove; rm -f "$results"' EXIT
trap 'exit 130' INT TERM

manifest() { sed -e 's/\$n/1/g' -e "s/^spec:\$/spec:\n  nodeName: $node/" pair.yaml; }

unpinned() { kubectl annotate --local --filename=- --output=yaml proxima.io/cpus=unpinned; }

seat() { kubectl exec "$1" -- grep -E '^(Cpus|Mems)_allowed_list' /proc/1/status | tr '\n\t' '  '; }

measure() { # WAY
	kubectl wait --for=condition=Ready pod $pods --timeout=5m >/dev/null
	for pod in $pods; do echo "$1: $pod $(seat "$pod")" >&2; done
	server=$(kubectl get pod redis-1 --output=jsonpath='{.status.podIP}')
	# Totals: operations/s, hits/s, misses/s, mean latency, p50, p99, …
	kubectl exec memtier-1 -- memtier_benchmark --server="$server" --threads=8 --clients=10 --test-time="$seconds" \
		--hide-histogram 2>/dev/null | awk -v way="$1" '$1 == "Totals" { print way, $2, $5, $7 }' >>"$results"
}

remove
round=1
while [ "$round" -le "$rounds" ]; do
	echo "round $round of $rounds" >&2
	manifest | kubectl apply --filename=- >/dev/null
	measure agent
	remove
	manifest | unpinned | kubectl apply --filename=- >/dev/null
	measure unpinned
	remove
	round=$((round + 1))
done
sh table.sh "$results"
