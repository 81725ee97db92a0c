"""Starts a Galera cluster, HAProxy and Proxima, and makes the stale test (`stale.py`) through them.

`demo.sh` runs it with Proxima's program, and with the tests' tools, which start three real servers on this
machine. SERVERS=HOST:PORT,… names a cluster that runs already, DB_USER and DB_PASSWORD a user there, DB_NAME
a schema in which this user may do all. READS is the number of reads of each way.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile

import proxies
import stale
from report import report
from stale import Account, Way

from harness.galera import Cluster, why_not


def own_cluster(stack, folder):
    """The addresses of a cluster that is started here, and an account."""
    if reason := why_not():
        sys.exit(f"demo: {reason}")
    cluster = Cluster(folder)
    stack.callback(cluster.leave)
    account = stack.enter_context(cluster.used()).account
    return [node.address for node in cluster.nodes], Account(account.name, account.password, account.name)


def other_cluster():
    """The addresses of a cluster that runs already, and an account."""
    keys = ("DB_USER", "DB_PASSWORD", "DB_NAME")
    if missing := [key for key in keys if key not in os.environ]:
        sys.exit(f"demo: SERVERS needs {', '.join(missing)}, too")
    servers = os.environ["SERVERS"].split(",")
    if len(servers) != 3:
        sys.exit("demo: SERVERS has to name three servers")
    return servers, Account(*(os.environ[key] for key in keys))


@contextlib.contextmanager
def table(account, writer, readers):
    """The table of the test, which all servers have."""
    with account.connect(writer) as connection:
        connection.query(f"DROP TABLE IF EXISTS {stale.TABLE}")
        connection.query(stale.MAKE)
    for reader in readers:
        with account.connect(reader) as connection:
            connection.query("SET SESSION wsrep_sync_wait = 1")
            stale.rows(connection, f"SELECT 1 FROM {stale.TABLE}")
    try:
        yield
    finally:
        with account.connect(writer) as connection:
            connection.query(f"DROP TABLE {stale.TABLE}")


def ways(at, writer, readers):
    """The ways to the cluster, where `at` knows the addresses of the proxies."""
    haproxy = (at[proxies.HAPROXY_WRITES], (at[proxies.HAPROXY_READS],))
    return [
        Way("HAProxy, two addresses", *haproxy, waits=False),
        Way("HAProxy, wsrep_sync_wait=3", *haproxy, set_by_client=True),
        Way("direct, wsrep_sync_wait=3", writer, tuple(readers), set_by_client=True),
        Way("Proxima, one address", at[proxies.SPLIT]),
        Way("Proxima, two addresses", at[proxies.WRITES], (at[proxies.READS],)),
        Way("Proxima, session", at[proxies.SESSION]),
        Way("Proxima, causal", at[proxies.CAUSAL]),
        Way("Proxima, eventual", at[proxies.EVENTUAL], waits=False),
    ]


def run(proxima, haproxy, reads):
    """Starts all, and returns what was measured by ways."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        print("starting three servers, Proxima and HAProxy", flush=True)
        servers, account = other_cluster() if "SERVERS" in os.environ else own_cluster(stack, folder)
        doors = stack.enter_context(proxies.Proxies(folder, servers, account))
        writer, readers = doors.start_proxima(proxima)
        doors.start_haproxy(haproxy, writer, readers)
        stack.enter_context(table(account, writer, readers))
        with account.connect(writer) as connection:
            ((name,),) = stale.rows(connection, "SELECT @@wsrep_node_name")
        print(
            f"Writes go to {name}. {stale.CLIENTS} clients write a row and at once read it, {reads} times in"
            f" each way, in {stale.ROUNDS} rounds that take turns.\n",
            flush=True,
        )
        return stale.measure(ways(doors.at, writer, readers), account, reads)


def main(proxima):
    # What was started is ended as well when somebody ends the demo.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    haproxy = shutil.which("haproxy")
    if not haproxy:
        sys.exit("demo: haproxy is missing: scripts/prepare.sh installs it")
    found = run(proxima, haproxy, int(os.environ.get("READS", "3000")))
    report(found)
    wrong = [way.name for way, rounds in found.items() if way.waits and any(part.stale for part in rounds)]
    if wrong:
        sys.exit(f"\nThis is not what the example promises: stale reads by {'; '.join(wrong)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
