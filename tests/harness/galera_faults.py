"""Faults: what can happen to a Galera cluster, to the proxy before it, and to the data in it."""

import contextlib
import signal
import time
from typing import NamedTuple

import pymysql

from . import ports, until
from .galera import rows
from .galera_door import Door, clients


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


class _Full:
    """Servers that take no more connections, each until it is let go, on the connection that has begun it:
    who comes then may find even the one place taken that is root's beyond the limit."""

    def __init__(self):
        self._held = {}

    def begin(self, node):
        self._held[node.name] = direct = node.connect()
        direct.query("SET GLOBAL max_connections = 10")

    def end(self, node):
        with self._held.pop(node.name) as direct:
            direct.query("SET GLOBAL max_connections = 151")


_FULL = _Full()


def _provider(begin, end):
    return _by_statement(*(f"SET GLOBAL wsrep_provider_options = '{options}'" for options in (begin, end)))


class _HeldBack:
    """Servers that apply nothing of what the others write, each until it is let go."""

    def __init__(self):
        self._held = {}

    def begin(self, node):
        self._held[node.name] = stack = contextlib.ExitStack()
        stack.enter_context(node.held_back())

    def end(self, node):
        self._held.pop(node.name).close()


_HELD_BACK = _HeldBack()


def _replace(node):
    """Its data is gone, and another server has to bring it all."""
    node.stop()
    node.forget()


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
    # What is applied, and with it what the others may still send, is held up.
    "applying nothing": Fault(_HELD_BACK.begin, _HELD_BACK.end, spares=True),
    "without its data": Fault(_replace, spares=True),
    "full": Fault(_FULL.begin, _FULL.end, spares=True),
}
"""Faults of servers, by name."""


def _reload(door, cluster, start):
    door.proxy.config["pools"]["db"]["galera"] = {"read_age": "2s"}
    door.proxy.write(door.proxy.config)
    assert door.proxy.reload()[0] == 200


def _restart(door, cluster, start):
    door.proxy.kill()
    door.proxy = start(door.proxy.config)


def _drain(door, cluster, start):
    door.proxy.signal(signal.SIGTERM)
    assert door.proxy.wait() == 0
    door.proxy = start(door.proxy.config)


def _second(door, cluster, start):
    """Another proxy before the same servers comes, writes and goes."""
    config = {name: value for name, value in door.proxy.config.items() if name != "admin"}
    config["listeners"] = [{**listener, "address": ports.address()} for listener in config["listeners"]]
    second = Door(start(config), door.account)
    with second.connect() as client:
        client.query("CREATE TABLE seconds (id BIGINT PRIMARY KEY AUTO_INCREMENT)")
    with clients(second, lambda client, *_: client.query("INSERT INTO seconds VALUES (NULL)"), 2):
        time.sleep(3)
    second.proxy.stop()


def _stop_all(door, cluster):
    """Stops all servers, at last the one that takes writes, which is returned: it has all."""
    name = door.writer()
    *_, writer = nodes = sorted(cluster.nodes, key=lambda node: node.name == name)
    for node in nodes:
        node.stop()
    return writer


def _down_and_up(door, cluster, start):
    _stop_all(door, cluster).start()
    cluster.repair()


def _made_anew(door, cluster, start):
    """The servers come back as another cluster, with the data that they had."""
    writer = _stop_all(door, cluster)
    for node in cluster.nodes:
        node.forget()
    writer.start()
    cluster.repair()


def _alter(door, cluster, start):
    with door.connect() as client:
        client.query("ALTER TABLE log ADD COLUMN more INT DEFAULT 7, ALGORITHM=COPY")


def _flush(door, cluster, start):
    for node in cluster.nodes:
        node.run("FLUSH PRIVILEGES")


def _another_user(door, cluster, *statements):
    """A user who the servers know logs in, and these statements are about him. Returns how he logs in."""
    name = f"{cluster.account.name}_b"
    cluster.nodes[0].run(f"CREATE USER {name} IDENTIFIED BY 'before'")
    for node in cluster.nodes:
        assert node.barrier(), f"{node.name} knows {name}"

    def enters(password):
        try:
            with door.connect(3, user=name, password=password, database=None) as client:
                return rows(client, "SELECT 1") == ((1,),)
        except pymysql.err.OperationalError as error:
            assert error.args[0] == 1045, error
            return False

    assert enters("before")
    cluster.nodes[0].run(*(statement.format(name) for statement in statements))
    return enters


def _drop_user(door, cluster, start):
    enters = _another_user(door, cluster, "DROP USER {}")
    until(lambda: not enters("before"), "who was dropped is not let in", every=0.5)


def _change_password(door, cluster, start):
    enters = _another_user(door, cluster, "ALTER USER {} IDENTIFIED BY 'behind'")
    until(lambda: enters("behind"), "the new password lets in")
    # A login is asked of a server again once a minute.
    until(lambda: not enters("before"), "the former one does not", every=0.5)


OTHERS = {
    "the proxy read its configuration": Fault(_reload, spares=True),
    "the proxy was killed": Fault(_restart),
    "the proxy was ended": Fault(_drain),
    "a second proxy came and went": Fault(_second, spares=True),
    "all servers were stopped": Fault(_down_and_up),
    "the cluster was made anew": Fault(_made_anew),
    "a table was altered": Fault(_alter, spares=True),
    "privileges were read": Fault(_flush, spares=True),
    "a user was dropped": Fault(_drop_user, spares=True),
    "a password was changed": Fault(_change_password, spares=True),
}
"""Faults of the proxy, of the whole cluster and of the data: what is done to a door before a cluster. `start`
starts a proxy."""

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
