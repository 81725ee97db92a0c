"""A client that discovers the servers which it spreads its keys over."""

import contextlib

from pymemcache.client.base import Client
from pymemcache.client.hash import HashClient

PATIENCE = 10


def told(address, question=b"config get cluster"):
    """The version and the nodes (host, ip, port) that are told at this address, and None for `END`."""
    with contextlib.closing(Client(_place(address), timeout=PATIENCE)) as client:
        text = client.raw_command(question, end_tokens=b"END\r\n")
    if not text:
        return None
    head, rest = text.split(b"\r\n", 1)
    assert len(rest) == int(head.split()[-1]) + 2 and rest.endswith(b"\n\r\n"), text
    version, nodes = rest.decode().split()[0], rest.decode().split()[1:]
    return int(version), [tuple(node.split("|")) for node in nodes]


class Discovering(HashClient):
    """Takes the nodes of a list with a higher version than before.

    pymemcache's own `AWSElastiCacheHashClient` asks in the same words. It is in no release yet.
    """

    def __init__(self, endpoint, **options):
        super().__init__([], timeout=PATIENCE, default_noreply=False, **options)
        self.endpoint, self.version = endpoint, 0
        self.refresh()

    def refresh(self, endpoint=None):
        """Asks again, as clients of ElastiCache do once a minute."""
        version, nodes = told(endpoint or self.endpoint)
        if version <= self.version:
            return
        self.version = version
        places = {f"{ip}:{port}": (ip, int(port)) for _, ip, port in nodes}
        for name in set(self.clients) - set(places):
            self.clients.pop(name).close()
            self.hasher.remove_node(name)
        for name in set(places) - set(self.clients):
            self.add_server(places[name])


def _place(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)
