"""A fleet on one machine: nodes, each with a memcached and a proxy at its side."""

import functools
import json
import signal
from itertools import zip_longest

from . import freeze, ports, until
from .proxy import Proxy
from .servers import Memcached

CALM = {"lease": "8s", "suspect": "4s"}
"""Times that a machine with many tests at once keeps. Tests of failures have their own."""

SHORT = {"lease": "1s", "suspect": "300ms"}
"""The default times, for tests of failures."""


class Node:
    """A memcached, and the proxy that alone talks to it: by a Unix socket, or else by a port. `place` is
    the namespace of the proxy, `before` a command behind which it runs. A witness has no memcached."""

    def __init__(
        self, name, io, folder, peers, listen, unix=True, place=None, witness=False, before=(), **keys
    ):
        self.name = name
        self.folder = folder / name
        self.folder.mkdir()
        # memcached runs as another user.
        self.folder.chmod(0o777)
        self._io = io
        self.listen = listen
        self.dir = self.folder / "fleet"
        self.server = None
        fleet = {"listen": listen, "peers": peers, "name": name, "dir": str(self.dir)}
        fleet |= {**CALM, **keys.pop("fleet", {})}
        pools, route = {}, "null"
        if witness:
            fleet["role"] = "witness"
        else:
            self.server = Memcached(socket=str(self.folder / "memcached.sock") if unix else None)
            pools, route = {"cache": {"replicated": True, "own": self.server.address}}, "cache"
        host = place.serving if place else "127.0.0.1"
        listeners = [{"address": ports.address(host, place and 11211), "route": route}]
        self._config = {
            "workers": 2,
            "listeners": listeners,
            "pools": pools,
            "admin": ports.address(host, place and 9150),
            "fleet": fleet,
            **keys,
        }
        self.place, self._before = place, before
        self.proxy = None
        self.start()

    def start(self):
        """Starts the proxy, which does not wait until it has joined."""
        make = self.place.proxy if self.place else functools.partial(Proxy, before=self._before)
        self.proxy = make(self._config, self._io, self.folder)

    def configure(self, **fleet):
        """Changes what `fleet:` says to the next proxy that is started here."""
        self._config["fleet"] |= fleet

    @property
    def address(self):
        return self.proxy.address

    def raw(self):
        return self.proxy.raw()

    def status(self):
        """What the proxy says of its fleet."""
        return json.loads(self.proxy.http("/fleet")[1])

    def ready(self):
        """What `/ready` says."""
        return self.proxy.http("/ready")[1]

    def view(self):
        """The names of the peers, as the proxy knows them."""
        return [peer["name"] for peer in self.status()["peers"]]

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
            if self.server:
                self.server.stop()


class Fleet:
    """So many nodes, which have found each other. `places` are the namespaces of their proxies, `listens`
    where they listen, and `announce` where they are reached if that is elsewhere."""

    def __init__(self, count, io, folder, cleanup, places=(), listens=(), announce=(), **keys):
        listens = listens or [f"{place.address}:11400" for place in places]
        listens = listens or [ports.address() for _ in range(count)]
        peers = announce or listens
        fleet = keys.pop("fleet", {})
        self.nodes = []
        for number, (listen, peer, place) in enumerate(zip_longest(listens, peers, places)):
            own = fleet if peer == listen else {**fleet, "announce": peer}
            node = Node(f"n{number}", io, folder, peers, listen, place=place, fleet=own, **keys)
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
                    lambda node=node: node.view() == sorted(names),
                    f"{node.name} has a view of {names}",
                )


def is_settled(nodes):
    """As many peers as nodes are in the view of each of them, and its own copy is read."""
    return all(len(node.view()) == len(nodes) and node.reads_own_copy() for node in nodes)


def write_and_read(nodes, value):
    """What is written at the first node is read at all."""
    clients = [node.raw() for node in nodes]
    clients[0].set("k", value)
    assert [client.get("k") for client in clients] == [value.encode()] * len(clients)
    for client in clients:
        client.close()
