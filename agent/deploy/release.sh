#!/bin/sh
# Releases a whole pool of nodes, before the agent is removed from it: every container there gets all CPUs and
# memory nodes back.
#
#   release.sh [NODE-SELECTOR]        for example: release.sh pool=cache
#
# Without a selector it releases every node that has the agent.
#
# It needs kubectl, with the right to list nodes and to exec in namespace proxima (NAMESPACE names another).
# It goes through eight nodes at a time, prints a line for each, and ends with 1 and the list of those that
# are not released. It can be repeated. The agents pin no container until they are started again. Delete the
# DaemonSet next.
set -eu
namespace=${NAMESPACE:-proxima}
selector=${1:-}

if [ "${1:-}" = --one ]; then # --one NODE POD APP releases one node, for xargs below
	case $4 in
	*cri*) set -- "$2" "$3" --socket=/run/proxima-agent/agent.sock ;;
	*) set -- "$2" "$3" ;;
	esac
	node=$1 pod=$2
	shift 2
	if said=$(kubectl --namespace "$namespace" exec "$pod" -- /proxima-agent release "$@" 2>&1); then
		echo "$node: $said"
		exit
	fi
	echo "$node: NOT RELEASED: $said"
	exit 1
fi

command -v kubectl >/dev/null || { echo "release.sh: kubectl is not there" >&2; exit 2; }
nodes=$(kubectl get nodes --selector="$selector" --output='jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}')
[ -n "$nodes" ] || { echo "release.sh: no node has the labels $selector; see kubectl get nodes --show-labels" >&2; exit 2; }
pods=$(kubectl --namespace "$namespace" get pods --selector=app.kubernetes.io/name=proxima-agent \
	--output='jsonpath={range .items[*]}{.spec.nodeName}{" "}{.metadata.name}{" "}{.metadata.labels.app}{"\n"}{end}')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "$nodes" | sort >"$work/nodes"
echo "$pods" | sort >"$work/pods"
join "$work/nodes" "$work/pods" >"$work/todo"
[ -s "$work/todo" ] || { echo "release.sh: no agent runs on the nodes with the labels $selector" >&2; exit 2; }
xargs -P 8 -n 3 sh "$0" --one <"$work/todo" | tee "$work/done" || true
if grep -q 'NOT RELEASED' "$work/done" || [ "$(wc -l <"$work/todo")" -ne "$(grep -c ': released' "$work/done")" ]; then
	echo "release.sh: not everywhere; repeat it, or look at the agents' status there" >&2
	exit 1
fi
