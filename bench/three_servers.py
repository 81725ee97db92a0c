"""A Galera cluster of three servers with a proxy before it, on this machine, for the scripts of this folder.

The scripts need root, as the tests' cluster does. PROXIMA_BIN names the program that is measured, as in
target/release/proxima, and PROXIMA_BENCH the load.
"""

import contextlib
import os
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from harness import galera_door
from harness.galera import Cluster
from harness.proxy import Proxy

WORDS = ("eventual", "session", "causal", "strict")
"""The first one is what the others are compared with."""
TICKS = os.sysconf("SC_CLK_TCK")
USER = ("app", "secret")
"""The user of `proxima-bench`, with its password."""


class ThreeServers:
    """The cluster, and a proxy with a listener for each word behind the usual ones (`door`), until the end of
    the stack. Files may be put into `folder`."""

    def __init__(self, stack, workers=2):
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.folder.chmod(0o777)
        whole = Cluster(self.folder)
        stack.callback(whole.leave)
        self.cluster = stack.enter_context(whole.used())
        name, password = USER
        self.cluster.nodes[0].run(
            "CREATE DATABASE IF NOT EXISTS proxima_bench",
            f"CREATE USER IF NOT EXISTS {name} IDENTIFIED BY '{password}'",
            f"GRANT ALL ON proxima_bench.* TO {name}",
        )

        def proxima(config):
            proxy = Proxy(config, "io_uring", self.folder)
            stack.callback(proxy.stop)
            return proxy

        listeners = [{"consistency": word} for word in WORDS]
        keys = {"workers": workers, "listeners": listeners, "users": [USER]}
        self.door = galera_door.begin(proxima, self.folder, self.cluster, **keys)

    def address(self, word):
        """Where reads are as fresh as this word says."""
        return self.door.proxy.addresses[WORDS.index(word) - len(WORDS)]

    def pids(self):
        """The numbers of the processes of its servers."""
        sockets = [os.fsencode(node.socket) for node in self.cluster.nodes]
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                is_one = any(socket in word for socket in sockets for word in words)
                if words[0].endswith(b"mariadbd") and is_one:
                    found.append(int(path.parent.name))
        assert len(found) == len(self.cluster.nodes), found
        return found

    def counted(self):
        """Reads that a reader was given, that the writer was, and those that had to wait."""
        metric = self.door.proxy.metric
        reads = [metric("pool_reads_total", pool="db", role=role) for role in ("reader", "writer")]
        return [*reads, metric("pool_wait_duration_seconds_count", pool="db")]


def processor(pids):
    """The processor time of these processes so far, in seconds."""
    total = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def spread(values, digits=2):
    """The median, with the least and the greatest."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def print_table(lines):
    """Prints lines of cells below each other."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
