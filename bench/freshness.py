"""Measures what fresh reads of a Galera cluster cost: processor time of the servers and of the proxy for each
operation, by the words that say how fresh reads are, beside reads that wait for nothing.

Three servers, the proxy and the load are on this machine. All words take turns in each round, and multiples
compare two words of the same round. The script needs root, as the tests' cluster does. PROXIMA_BIN names the
program that is measured, as in target/release/proxima, and PROXIMA_BENCH the load.

Usage: .venv/bin/python bench/freshness.py [ROUNDS, 20] [SETS:GETS, 1:10] [CONNECTIONS, 32]
"""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from harness.galera import Cluster
from harness.galera_door import begin
from harness.judge import BENCH
from harness.proxy import Proxy, environment

WORDS = ("eventual", "session", "causal", "strict")
"""The first one is what the others are compared with."""
SECONDS = 3
TICKS = os.sysconf("SC_CLK_TCK")
USER = ("app", "secret")
"""The user of `proxima-bench`, with its password."""


def processor(pids):
    """The processor time of these processes so far, in seconds."""
    total = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def servers(cluster):
    """The numbers of the processes of its servers."""
    sockets = [os.fsencode(node.socket) for node in cluster.nodes]
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            is_one = any(socket in word for socket in sockets for word in words)
            if words[0].endswith(b"mariadbd") and is_one:
                found.append(int(path.parent.name))
    assert len(found) == len(cluster.nodes), found
    return found


def counted(proxy):
    """Reads that a reader was given, that the writer was, and those that had to wait."""
    reads = [proxy.metric("pool_reads_total", pool="db", role=role) for role in ("reader", "writer")]
    return [*reads, proxy.metric("pool_wait_duration_seconds_count", pool="db")]


def load(proxy, number, pids, mix, connections, seconds=SECONDS):
    """One word's part of a round."""
    before, reads = (processor(pids), processor([proxy.process.pid])), counted(proxy)
    command = [BENCH, "load", "--protocol", "mysql", "--address", proxy.addresses[number], "--quiet"]
    command += ["--json", "-", "--mix", mix, "--connections", str(connections), "--keys", "1000"]
    command += ["--value-size", "100", "--duration", f"{seconds}s"]
    command += ["--fill"] if seconds < SECONDS else []
    ran = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    said = json.loads(ran.stdout)
    requests = said["replies"]
    servers_took, proxy_took = processor(pids) - before[0], processor([proxy.process.pid]) - before[1]
    readers, writer, waited = (after - before for after, before in zip(counted(proxy), reads))
    all_reads = max(readers + writer, 1)
    return {
        "requests a second": requests / said["seconds"],
        "servers' CPU, us an operation": servers_took / requests * 1e6,
        "proxy's CPU, us an operation": proxy_took / requests * 1e6,
        "reads that waited, %": waited / all_reads * 100,
        "reads at the writer, %": writer / all_reads * 100,
    }


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


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
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def main(rounds="20", mix="1:10", connections="32"):
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o777)
        cluster = Cluster(folder)
        stack.callback(cluster.leave)
        used = stack.enter_context(cluster.used())
        name, password = USER
        used.nodes[0].run(
            "CREATE DATABASE IF NOT EXISTS proxima_bench",
            f"CREATE USER IF NOT EXISTS {name} IDENTIFIED BY '{password}'",
            f"GRANT ALL ON proxima_bench.* TO {name}",
        )

        def proxima(config):
            proxy = Proxy(config, "io_uring", folder)
            stack.callback(proxy.stop)
            return proxy

        words = [{"consistency": word} for word in WORDS]
        door = begin(proxima, folder, used, listeners=words, users=[USER])
        pids = servers(used)
        first = len(door.proxy.addresses) - len(WORDS)
        load(door.proxy, first, pids, mix, int(connections), seconds=1)
        found = []
        for turn in range(int(rounds)):
            order = [*WORDS[turn % len(WORDS) :], *WORDS[: turn % len(WORDS)]]
            found.append(
                {
                    word: load(door.proxy, first + WORDS.index(word), pids, mix, int(connections))
                    for word in order
                }
            )
            print(f"round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
        report(found)


if __name__ == "__main__":
    main(*sys.argv[1:])
