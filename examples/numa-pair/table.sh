#!/bin/sh
# Prints a table of medians, least and greatest from lines "agent|unpinned OPERATIONS-PER-SECOND MEAN-LATENCY
# P99-LATENCY".
set -eu
for way in unpinned agent; do
	for column in 2 3 4; do
		awk -v way="$way" -v column="$column" '$1 == way { print $column }' "$1" | sort -n | awk -v way="$way" -v column="$column" '
			{ v[NR] = $1 }
			END { if (NR) print way, column, (v[int((NR + 1) / 2)] + v[int((NR + 2) / 2)]) / 2, v[1], v[NR] }'
	done
done | awk '
	{ median[$1, $2] = $3; range[$1, $2] = "(" $4 "–" $5 ")"; seen[$1] = 1 }
	END {
		if (!seen["agent"] || !seen["unpinned"]) { print "no results" > "/dev/stderr"; exit 1 }
		split("operations/s,mean latency ms,p99 latency ms", name, ",")
		print "|  | not pinned | with the agent | change |\n|---|--:|--:|--:|"
		for (i = 1; i <= 3; i++) {
			a = median["unpinned", i + 1]; b = median["agent", i + 1]
			printf "| %s | %s %s | %s %s | %+.1f %% |\n", name[i], a, range["unpinned", i + 1], b, range["agent", i + 1], a ? 100 * (b / a - 1) : 0
		}
	}'
