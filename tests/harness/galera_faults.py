"""What can happen to a Galera cluster, to the proxy before it, and to the data in it."""

import time
from typing import NamedTuple

from . import until


class Fault(NamedTuple):
    """A fault of one or several servers. `spares`: it makes no error outside of transactions, wherever it
    is."""

    begin: object
    end: object = None
    spares: bool = False
    seconds: float = 3.0


def _by_statement(begin, end):
    """A fault that a statement begins, and another one ends."""

    def does(statement):
        def run(node):
            with node.connect() as direct:
                direct.query(statement)

        return run

    return does(begin), does(end)


def _provider(begin, end):
    return _by_statement(*(f"SET GLOBAL wsrep_provider_options = '{options}'" for options in (begin, end)))


SERVERS = {
    "stopped": Fault(lambda node: node.stop(), spares=True),
    "killed": Fault(lambda node: node.kill()),
    # It is evicted, and says for some seconds behind this that all is well.
    "frozen": Fault(lambda node: node.freeze(), lambda node: node.thaw(), seconds=8.0),
    "cut off from the others": Fault(*_provider("gmcast.isolate=1", "gmcast.isolate=0"), seconds=8.0),
    "desynced": Fault(
        *_by_statement("SET GLOBAL wsrep_desync = ON", "SET GLOBAL wsrep_desync = OFF"), spares=True
    ),
    "read-only": Fault(
        *_by_statement("SET GLOBAL read_only = ON", "SET GLOBAL read_only = OFF"), spares=True
    ),
    "rejecting queries": Fault(
        *_by_statement("SET GLOBAL wsrep_reject_queries = 'ALL'", "SET GLOBAL wsrep_reject_queries = 'NONE'"),
        spares=True,
    ),
    "full": Fault(
        *_by_statement("SET GLOBAL max_connections = 10", "SET GLOBAL max_connections = 151"), spares=True
    ),
}
"""Faults of servers, by name."""


def _reload(door, cluster, start):
    door.proxy.config["pools"]["db"]["galera"] = {"read_age": "2s"}
    door.proxy.write(door.proxy.config)
    assert door.proxy.reload()[0] == 200


def _restart(door, cluster, start):
    door.proxy.kill()
    door.proxy = start(door.proxy.config)


def _alter(door, cluster, start):
    with door.connect() as client:
        client.query("ALTER TABLE log ADD COLUMN more INT DEFAULT 7, ALGORITHM=COPY")


def _flush(door, cluster, start):
    for node in cluster.nodes:
        node.run("FLUSH PRIVILEGES")


OTHERS = {
    "reloaded": Fault(_reload, spares=True),
    "restarted": Fault(_restart),
    "a table altered": Fault(_alter, spares=True),
    "privileges read anew": Fault(_flush, spares=True),
}
"""Faults of the proxy and of the data: what is done to a door before a cluster. `start` starts a proxy."""

WHERE = {
    "writer": lambda writer, readers: [writer],
    "reader": lambda writer, readers: readers[:1],
    "readers": lambda writer, readers: readers,
}
"""The servers that a fault meets."""


def meet(fault, nodes, is_over):
    """The fault meets these servers. Without an end it is over when they are started again."""
    for node in nodes:
        fault.begin(node)
    time.sleep(fault.seconds)
    if fault.end:
        for node in nodes:
            fault.end(node)
    is_over()
    for node in nodes:
        until(node.is_synced, f"{node.name} is back: {node.log}", every=0.1)
