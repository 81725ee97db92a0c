"""Pools whose servers all hold a copy of every value."""

from . import until
from .proxy import config

PATIENT = "20s"
"""A time-out for tests in which no server is lost: on a busy machine half a second may pass without an
answer."""


def replicated(servers, keep=True, timeout="500ms", **keys):
    """The configuration of one replicated pool. `keep` is the value of `replicated`."""
    pool = {"servers": [server.address for server in servers], "timeout": timeout, "replicated": keep}
    return config("cache", {"cache": pool}, **keys)


def copy_state(proxy, server):
    """The state of this copy: current, leaving, out, joining or opening."""
    return proxy.member(server.address)["copy"]["state"]


def until_out(proxy, server):
    until(lambda: copy_state(proxy, server) != "current", f"{server.address} is not read")


def until_current(proxy, *servers):
    for server in servers:
        until(lambda: copy_state(proxy, server) == "current", f"{server.address} is read again")


def copies_of(servers, key):
    """The value that each copy holds."""
    return [server.get(key) for server in servers]
