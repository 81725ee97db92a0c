"""Counts what the words for fresh reads of a Galera cluster promise to have none of: stale reads, reads that
go backwards, acknowledged writes that are lost, writes that are applied twice, and replies of another client.

By each word clients write and read, as often as they can, on connections of their own and each on one
connection, alone and beside a load on the same proxy. `session` promises nothing to a client of its own
connection, so that its stale reads there are no fault; what `eventual` reads may be a second old
(`three_servers.py` says what runs where).

Usage: .venv/bin/python bench/promises.py [READS of each row, 20000]
"""

import contextlib
import json
import subprocess
import sys

from three_servers import WORDS, ThreeServers, print_table

from harness.judge import BENCH
from harness.proxy import environment

COUNTS = (
    "stale_reads",
    "backward_reads",
    "lost_acknowledged_writes",
    "writes_applied_twice",
    "foreign_replies",
    "wrong",
)
WAYS = {
    "1 : 1, own": ["--connections", "own", "--writers", "16", "--readers", "4"],
    "1 : 10, own": ["--connections", "own", "--writers", "3", "--readers", "16"],
    "1 : 1, same": ["--connections", "same", "--writers", "16"],
}
"""About so many writes to reads, as a write takes longer, and whose connections they take."""
SECONDS = 4


def run(address, words):
    command = [BENCH, "stale", "--protocol", "mysql", "--write", address, "--pause", "0s", "--timeout", "30s"]
    command += ["--duration", f"{SECONDS}s", "--quiet", "--json", "-", *words]
    return json.loads(subprocess.run(command, capture_output=True, text=True, env=environment()).stdout)


@contextlib.contextmanager
def loaded(address):
    """A load on this address meanwhile."""
    command = [BENCH, "load", "--protocol", "mysql", "--address", address, "--quiet", "--mix", "1:10"]
    command += ["--connections", "16", "--keys", "1000", "--fill", "--duration", "1h"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment()) as process:
        try:
            yield
        finally:
            process.kill()


def row(three, word, words, least):
    """What was counted in as many reads as this, at least."""
    found, before = dict.fromkeys(("reads", "writes", *COUNTS), 0), three.counted()
    age = 0
    while found["reads"] < least:
        said = run(three.address(word), words)
        found["reads"] += said["hits"] + said["misses"]
        found["writes"] += said["acknowledged_writes"]
        for name in COUNTS:
            found[name] += said[name]
        if said["stale_age_seconds"]:
            age = max(age, said["stale_age_seconds"]["max"])
    readers, writer, waited = (after - before for after, before in zip(three.counted(), before))
    found["oldest, ms"] = round(age * 1e3)
    found["at the writer, %"] = round(writer / max(readers + writer, 1) * 100, 2)
    found["waited, %"] = round(waited / max(readers + writer, 1) * 100, 2)
    return found


def main(reads="20000"):
    with contextlib.ExitStack() as stack:
        three, lines = ThreeServers(stack), []
        for beside in ("alone", "beside a load"):
            for way, words in WAYS.items():
                for word in WORDS:
                    with loaded(three.address(word)) if beside != "alone" else contextlib.nullcontext():
                        found = row(three, word, words, int(reads))
                    lines.append({"word": word, "way": way, "beside": beside} | found)
                    print(", ".join(map(str, lines[-1].values())), file=sys.stderr, flush=True)
        print_table([list(lines[0]), *([str(cell) for cell in line.values()] for line in lines)])


if __name__ == "__main__":
    main(*sys.argv[1:])
