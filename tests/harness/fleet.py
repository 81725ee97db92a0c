"""A fleet on one machine: nodes, each with a memcached and a proxy at its side."""

import json
import signal
from itertools import zip_longest

from . import freeze, ports, until
from .proxy import Proxy
from .servers import Memcached

CALM = {"lease": "8s", "suspect": "4s"}
"""Times that a machine with many tests at once keeps. Tests of failures have their own."""


class Node:
    """A memcached, and the proxy that alone talks to it: by a Unix socket, or else by a port. `place` is
    the namespace of the proxy."""

    def __init__(self, name, io, folder, peers, listen, unix=True, place=None, **keys):
        self.name = name
        self.folder = folder / name
        self.folder.mkdir()
        # memcached runs as another user.
        self.folder.chmod(0o777)
        self._io = io
        self.server = Memcached(socket=str(self.folder / "memcached.sock") if unix else None)
        fleet = {"listen": listen, "peers": peers, "name": name, "dir": str(self.folder / "fleet")}
        fleet |= {**CALM, **keys.pop("fleet", {})}
        pool = {"replicated": True, "own": self.server.address}
        host = place.serving if place else "127.0.0.1"
        listeners = [{"address": ports.address(host, place and 11211), "route": "cache"}]
        self._config = {
            "workers": 2,
            "listeners": listeners,
            "pools": {"cache": pool},
            "admin": ports.address(host, place and 9150),
            "fleet": fleet,
            **keys,
        }
        self.place = place
        self.proxy = None
        self.start()

    def start(self):
        """Starts the proxy, which does not wait until it has joined."""
        make = self.place.proxy if self.place else Proxy
        self.proxy = make(self._config, self._io, self.folder)

    @property
    def address(self):
        return self.proxy.address

    def raw(self):
        return self.proxy.raw()

    def status(self):
        """What the proxy says of its fleet."""
        return json.loads(self.proxy.http("/fleet")[1])

    def is_ready(self):
        return self.proxy.http("/ready")[0] == 200

    def reads_own_copy(self):
        return self.is_ready() and self.proxy.member(self.server.address)["copy"]["state"] == "current"

    def freeze(self):
        freeze(self.proxy.process)

    def thaw(self):
        self.proxy.signal(signal.SIGCONT)

    def stop_softly(self):
        """Ends the proxy as an operator does, and waits for the end."""
        self.proxy.signal(signal.SIGTERM)
        assert self.proxy.wait() == 0, self.proxy.log()

    def stop(self):
        if self.proxy.process.poll() is None:
            self.proxy.signal(signal.SIGCONT)
        try:
            self.proxy.stop()
        finally:
            self.server.stop()


class Fleet:
    """So many nodes, which have found each other. `places` are the namespaces of their proxies."""

    def __init__(self, count, io, folder, cleanup, places=(), **keys):
        listens = [f"{place.address}:11400" for place in places] or [ports.address() for _ in range(count)]
        self.nodes = []
        for number, (listen, place) in enumerate(zip_longest(listens, places)):
            node = Node(f"n{number}", io, folder, listens, listen, place=place, **dict(keys))
            cleanup.callback(node.stop)
            self.nodes.append(node)
        self.until_settled()

    def __iter__(self):
        return iter(self.nodes)

    def __getitem__(self, number):
        return self.nodes[number]

    def until_ready(self):
        for node in self.nodes:
            until(node.reads_own_copy, f"{node.name} is a peer with a lease, and its copy is read")

    def until_settled(self):
        """Waits until all nodes have one view, in which all of them decide, and read their own copies."""

        def is_settled():
            every = [node.status() for node in self.nodes]
            deciding = [[peer["name"] for peer in one["peers"] if peer["decides"]] for one in every]
            all_names = sorted(node.name for node in self.nodes)
            return (
                len({one["view"] for one in every}) == 1
                and all(names == all_names for names in deciding)
                and all(node.reads_own_copy() for node in self.nodes)
            )

        until(is_settled, "all nodes are settled")

    def until_view(self, names):
        """Waits until the view of every peer that is in it has exactly these peers."""
        for node in self.nodes:
            if node.name in names:
                until(
                    lambda node=node: [peer["name"] for peer in node.status()["peers"]] == sorted(names),
                    f"{node.name} has a view of {names}",
                )
