"""A Galera cluster whose servers are in network namespaces of their own, and the packets lost around them.

The servers reach each other by one bridge, and the proxy reaches them by another. The proxy and its clients
are in the namespace of both bridges, so that no fault is between these two.
"""

import contextlib

from .galera_node import GaleraNode
from .galera_own import own
from .netns import Inside


class Apart:
    """A cluster on the places of a network: the server `node-0` is on the first one."""

    def __init__(self, network, cluster):
        self._network, self.cluster = network, cluster

    def proxy(self, config, io, folder):
        """A proxy in the namespace of the bridges."""
        switch = self._network.switch
        return Inside(switch, switch, config, io, folder)

    def place(self, node):
        """Where a server is."""
        return self._network.places[self.cluster.nodes.index(node)]

    def lose(self, node, bridge, comes, goes):
        """Loses packets of a server by this bridge: the parts `comes` of what is sent to it, and `goes` of
        what it sends. Returns the losses, each of which is to be closed."""
        place = self.place(node)
        # What a server sends comes to the other end of its cable.
        ends = (place, f"eth{bridge}", comes), (self._network.switch, f"eth{bridge}-{place.index}", goes)
        return [space.lossy(part, interface) for space, interface, part in ends if part]


@contextlib.contextmanager
def apart(network):
    """Starts the cluster on a network of three places."""

    def make(kind, folder, number):
        place = network.places[number]
        return GaleraNode(kind, folder, place.address, place.serving, place.command())

    with own(make) as cluster:
        yield Apart(network, cluster)
