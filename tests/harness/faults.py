"""The faults of the matrix. Each has a name, a beginning and an end. The proxy reads the first server."""

from collections.abc import Callable
from dataclasses import dataclass

from .nodes import TIMEOUT


def nothing(_nodes):
    pass


@dataclass
class Fault:
    begin: Callable
    end: Callable | None = None
    """None: the fault does not end."""
    relayed: bool = False
    """Whether a relay stands in front of the first server."""
    seconds: float | None = None
    """The fault's duration; None: the run decides."""
    spares: int = 2
    """The number of servers, the last ones, that the fault does not touch."""


def _freeze_two(nodes):
    for server in nodes.servers[:2]:
        server.freeze()


def _thaw_two(nodes):
    for server in nodes.servers[:2]:
        server.thaw()


def _kill_all(nodes):
    for server in nodes.servers:
        server.kill()


def _start_all(nodes):
    for server in nodes.servers:
        server.start()


def _restart_empty(nodes):
    nodes.servers[0].kill()
    nodes.servers[0].start()


def _restart_proxy(nodes):
    nodes.servers[0].freeze()
    nodes.proxy.kill()
    nodes.start_proxy()


FAULTS = {
    "killed": Fault(lambda nodes: nodes.servers[0].kill()),
    "frozen": Fault(lambda nodes: nodes.servers[0].freeze(), lambda nodes: nodes.servers[0].thaw()),
    # This takes one time-out, or two. Three in a row eject.
    "frozen shortly": Fault(
        lambda nodes: nodes.servers[0].freeze(), lambda nodes: nodes.servers[0].thaw(), seconds=1.5 * TIMEOUT
    ),
    # Some answers come in time, some do not.
    "slow": Fault(
        lambda nodes: nodes.members[0].slow(2 * TIMEOUT), lambda nodes: nodes.members[0].heal(), relayed=True
    ),
    "garbage": Fault(
        lambda nodes: nodes.members[0].garbage(), lambda nodes: nodes.members[0].heal(), relayed=True
    ),
    "refusing": Fault(
        lambda nodes: nodes.members[0].refuse(), lambda nodes: nodes.members[0].heal(), relayed=True
    ),
    "restarted empty": Fault(_restart_empty, nothing, seconds=0),
    "removed and added": Fault(
        lambda nodes: nodes.list(nodes.members[1:]), lambda nodes: nodes.list(nodes.members)
    ),
    "all but one gone": Fault(_freeze_two, _thaw_two, spares=1),
    "all gone": Fault(_kill_all, _start_all, spares=0),
    "proxy restarted": Fault(_restart_proxy, lambda nodes: nodes.servers[0].thaw()),
}
