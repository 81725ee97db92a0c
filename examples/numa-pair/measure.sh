#!/bin/sh
# Measures one Redis and its client on a node of yours, pinned by the agent and not pinned, and prints the
# table.
#
#   measure.sh NODE [ROUNDS] [SECONDS]
#
# It needs kubectl, a node with two sockets and the agent on it (docs/node-agent.md), 16 free CPUs and 20 GiB
# there, and no other load. The two ways take turns, so that a node that gets slower hurts both. "Not pinned"
# means the annotation proxima.io/cpus: unpinned on both pods: the agent leaves them alone, as if it were not
# there.
#
# It works in a namespace of its own, which it makes at the start and deletes at the end, and touches nothing
# outside of it.
set -eu
cd "$(dirname "$0")"
fail() { echo "measure.sh: $*" >&2; exit 1; }
[ $# -gt 0 ] || fail "name a node: measure.sh NODE [ROUNDS] [SECONDS]"
node=$1
rounds=${2:-5}
seconds=${3:-60}
for number in "$rounds" "$seconds"; do
	case $number in '' | 0 | *[!0-9]*) fail "$number is no number of rounds or seconds" ;; esac
done
command -v kubectl >/dev/null || fail "kubectl is not there; it starts the pods and must reach your cluster"
kubectl get node "$node" --output=name >/dev/null || fail "the cluster does not tell of a node $node; see kubectl get nodes"

results=$(mktemp)
namespace=numa-pair-$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')
made=
k() { kubectl --namespace="$namespace" "$@"; }
remove() { k delete pod redis-1 memtier-1 --ignore-not-found --wait >/dev/null; }
finish() {
	rm -f "$results"
	# This deletes only what this run has made: if the name had been taken, the run would have ended before.
	if [ -n "$made" ]; then kubectl delete namespace "$namespace" --wait=false >/dev/null; fi
}
trap finish EXIT
trap 'exit 130' INT TERM
kubectl create namespace "$namespace" >/dev/null || fail "namespace $namespace cannot be made; may you make namespaces?"
made=yes

manifest() { sed -e 's/[$]n/1/g' -e "s/^spec:\$/spec:\n  nodeName: $node/" pair.yaml; }

unpinned() { kubectl annotate --local --filename=- --output=yaml proxima.io/cpus=unpinned; }

inside() { # POD COMMAND...
	pod=$1
	shift
	k exec "$pod" -- "$@"
}

seat() { inside "$1" grep -E '^(Cpus|Mems)_allowed_list' /proc/1/status | tr '\n\t' '  '; }

sockets() { inside redis-1 sh -c 'cat /sys/devices/system/cpu/cpu*/topology/physical_package_id' | sort -u | wc -l; }

measure() { # WAY
	k wait --for=condition=Ready pod redis-1 memtier-1 --timeout=5m >/dev/null ||
		fail "the pods do not start on $node: $(k get events --field-selector=type=Warning --output='jsonpath={.items[*].message}' 2>&1 | head -c 500) (they need 16 CPUs and 20 GiB)"
	[ "$(sockets)" -gt 1 ] || fail "$node has one socket: wherever the pair sits, it sits together, and there is nothing to measure"
	server=$(seat redis-1)
	client=$(seat memtier-1)
	echo "$1: redis-1 $server" >&2
	echo "$1: memtier-1 $client" >&2
	{ [ -n "$server" ] && [ -n "$client" ]; } || fail "kubectl exec does not work in the pods"
	if [ "$1" = agent ] && [ "$server" = "$client" ]; then
		fail "both have the same CPUs, so nobody has pinned them: is the agent on $node? 'proxima-agent status' there says what it does"
	fi
	address=$(k get pod redis-1 --output=jsonpath='{.status.podIP}')
	# Totals: operations/s, hits/s, misses/s, mean latency, p50, p99, …
	inside memtier-1 memtier_benchmark --server="$address" --threads=8 --clients=10 --test-time="$seconds" \
		--hide-histogram 2>/dev/null | awk -v way="$1" '
			$1 == "Totals" { print way, $2, $5, $7; found = 1 }
			END { exit !found }' >>"$results" ||
		fail "memtier_benchmark in memtier-1 has not reached Redis on $address"
}

round=1
while [ "$round" -le "$rounds" ]; do
	echo "round $round of $rounds" >&2
	manifest | k apply --filename=- >/dev/null
	measure agent
	remove
	manifest | unpinned | k apply --filename=- >/dev/null
	measure unpinned
	remove
	round=$((round + 1))
done
sh table.sh "$results"
