"""Measures what fresh reads of a Galera cluster cost: processor time of the servers and of the proxy for each
operation, by the words that say how fresh reads are, beside reads that wait for nothing.

All words take turns in each round, and multiples compare two words of the same round (`three_servers.py` says
what runs where).

Usage: .venv/bin/python bench/freshness.py [ROUNDS, 20] [SETS:GETS, 1:10] [CONNECTIONS, 32]
"""

import contextlib
import json
import subprocess
import sys

from three_servers import WORDS, ThreeServers, print_table, processor, spread

from harness.judge import BENCH
from harness.proxy import environment

SECONDS = 3


def load(three, word, pids, mix, connections, seconds=SECONDS):
    """One word's part of a round."""
    proxy = [three.door.proxy.process.pid]
    before, reads = (processor(pids), processor(proxy)), three.counted()
    command = [BENCH, "load", "--protocol", "mysql", "--address", three.address(word), "--quiet"]
    command += ["--json", "-", "--mix", mix, "--connections", str(connections), "--keys", "1000"]
    command += ["--value-size", "100", "--duration", f"{seconds}s"]
    command += ["--fill"] if seconds < SECONDS else []
    ran = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    said = json.loads(ran.stdout)
    requests = said["replies"]
    servers_took, proxy_took = processor(pids) - before[0], processor(proxy) - before[1]
    readers, writer, waited = (after - before for after, before in zip(three.counted(), reads))
    all_reads = max(readers + writer, 1)
    return {
        "requests a second": requests / said["seconds"],
        "servers' CPU, us an operation": servers_took / requests * 1e6,
        "proxy's CPU, us an operation": proxy_took / requests * 1e6,
        "reads that waited, %": waited / all_reads * 100,
        "reads at the writer, %": writer / all_reads * 100,
    }


def report(rounds):
    """Prints the table of all rounds."""
    lines = [("", *WORDS)]
    for name in rounds[0][WORDS[0]]:
        lines.append((name, *(spread([found[word][name] for found in rounds], 1) for word in WORDS)))
        if "CPU" in name:
            times = [
                spread([found[word][name] / found[WORDS[0]][name] for found in rounds]) for word in WORDS
            ]
            lines.append((f"  as a multiple of {WORDS[0]}", *times))
    print_table(lines)


def main(rounds="20", mix="1:10", connections="32"):
    with contextlib.ExitStack() as stack:
        three = ThreeServers(stack)
        pids = three.pids()
        load(three, WORDS[0], pids, mix, int(connections), seconds=1)
        found = []
        for turn in range(int(rounds)):
            order = [*WORDS[turn % len(WORDS) :], *WORDS[: turn % len(WORDS)]]
            found.append({word: load(three, word, pids, mix, int(connections)) for word in order})
            print(f"round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
        report(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
