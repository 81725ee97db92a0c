"""Pools whose servers all hold a copy of everything."""

from . import until
from .proxy import config

PATIENT = "20s"
"""The time-out where no server is lost: on a machine that is busy enough, half a second passes without an answer."""


def replicated(servers, keep=True, timeout="500ms", **keys):
    """The configuration of one replicated pool. `keep` is what stands behind `replicated`."""
    pool = {"servers": [server.address for server in servers], "timeout": timeout, "replicated": keep}
    return config("cache", {"cache": pool}, **keys)


def copy_state(proxy, server):
    """What this copy may be used for: current, leaving, out, joining or opening."""
    return proxy.member(server.address)["copy"]["state"]


def until_out(proxy, server):
    until(lambda: copy_state(proxy, server) != "current", f"{server.address} is not read")


def until_current(proxy, *servers):
    for server in servers:
        until(lambda: copy_state(proxy, server) == "current", f"{server.address} is read again")


def copies_of(servers, key):
    """What each copy holds."""
    return [server.get(key) for server in servers]
