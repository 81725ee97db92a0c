"""Routes with a near cache, and what is asked of them."""

import contextlib

from . import ports
from .proxy import config

RULE = {"name": "all", "ttl": "60s"}


def near(child, *rules, **keys):
    """A route that keeps replies of `child`; without rules by one for all keys, with these settings."""
    return {"near": {"child": child, "rules": list(rules) or [{**RULE, **keys}]}}


def kept(servers, *rules, pool=(), more=(), top=(), **keys):
    """A configuration with four workers, whose first listener keeps replies and whose second does not. `pool`
    is what else the pool has, `more` are further routes, and `top` is what else the configuration has."""
    pools = {"cache": {"servers": [server.address for server in servers], **dict(pool)}}
    return config(near("cache", *rules, **keys), pools, "cache", *more, workers=4, **dict(top))


def kept_redis(servers, *rules, pool=(), top=(), **keys):
    """The same before Redis."""
    pools = {"cache": {"protocol": "redis", "servers": [server.address for server in servers], **dict(pool)}}
    listeners = [
        {"address": ports.address(), "protocol": "redis", "route": route}
        for route in (near("cache", *rules, **keys), "cache")
    ]
    return {"workers": 4, "listeners": listeners, "pools": pools, **dict(top)}


class Asked:
    """How many reads a server has been asked since the last look."""

    def __init__(self, server):
        self._count = lambda: server.stat("cmd_get")
        self._before = self._count()

    def __call__(self):
        before, self._before = self._before, self._count()
        return self._before - before


def calls(server, name):
    """How often a Redis server has executed this command, by whomever."""
    for line in server.ask("INFO", "commandstats").split(b"\r\n"):
        if line.startswith(b"cmdstat_%s:" % name.encode()):
            return int(line.split(b"calls=")[1].split(b",")[0])
    return 0


@contextlib.contextmanager
def clients(proxy, count, listener=0):
    """So many clients, which spread over the workers."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(proxy.raw(listener)) for _ in range(count)]
