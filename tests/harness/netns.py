"""Nodes in network namespaces of their own, and the faults of the network between them."""

import contextlib
import ctypes
import os
import subprocess
import threading

from . import number
from .loss import Loss
from .proxy import Proxy

NOBODY = "02:77:00:00:00:ff"
"""An Ethernet address that no node has: what is sent there arrives nowhere, and nobody is told."""

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def ip(*words):
    """Runs `ip`. A failure is an `OSError` with what it said."""
    done = subprocess.run(["ip", *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(map(str, words))}: {done.stderr.strip()}")


def forbidden():
    """The reason why namespaces and a bridge cannot be made here, or None."""
    try:
        Network(1).remove()
    except OSError as error:
        return str(error)
    return None


def _checked(result):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


class Namespace:
    """A network of its own. Unix sockets and files are those of the whole machine."""

    def __init__(self, name):
        self.name = name

    def command(self, *words):
        """A command that runs another one in the namespace, and becomes it."""
        return ["ip", "netns", "exec", self.name, *words]

    def lossy(self, part, interface="eth0"):
        """Drops this part of the packets that come by this interface, until the result is closed.

        Raises `OSError` where the kernel does not allow it.
        """
        with self.entered():
            return Loss(interface, part)

    @contextlib.contextmanager
    def entered(self):
        """Sockets that this thread makes meanwhile belong to the namespace."""
        own = f"/proc/self/task/{threading.get_native_id()}/ns/net"
        with open(own) as before, open(f"/run/netns/{self.name}") as there:
            _checked(_libc.setns(there.fileno(), CLONE_NEWNET))
            try:
                yield
            finally:
                _checked(_libc.setns(before.fileno(), CLONE_NEWNET))


class Place(Namespace):
    """The namespace of one node: `address` is its own towards the other nodes, `serving` towards clients."""

    def __init__(self, network, name, index):
        super().__init__(name)
        self._switch = network.switch
        self.index = index
        self.address = f"10.77.0.{index + 1}"
        self.serving = f"10.77.1.{index + 1}"
        self.ethernet = f"02:77:00:00:00:{index + 1:02x}"

    def proxy(self, config, io, folder):
        """A proxy in the namespace."""
        return Inside(self, self._switch, config, io, folder)

    def lose_to(self, other):
        """From now on nothing that is sent from here to there arrives."""
        self._neighbour(other, NOBODY)

    def reach(self, other):
        """From now on what is sent from here to there arrives."""
        self._neighbour(other, other.ethernet)

    def _neighbour(self, other, ethernet):
        # A permanent entry needs no question to the other node, which a broken way would leave unanswered.
        words = ["lladdr", ethernet, "dev", "eth0", "nud", "permanent"]
        ip("-n", self.name, "neigh", "replace", other.address, *words)

    def plug(self, state):
        """`down` pulls the node's cable to the other nodes, `up` plugs it in again."""
        ip("-n", self._switch.name, "link", "set", f"eth0-{self.index}", state)


class Inside(Proxy):
    """A proxy in a namespace, whose clients are in another one."""

    def __init__(self, place, clients, config, io, folder):
        self._clients = clients
        super().__init__(config, io, folder, before=place.command())

    def entered(self):
        return self._clients.entered()

    def http(self, *arguments, **keys):
        with self.entered():
            return super().http(*arguments, **keys)

    def raw(self, *arguments, **keys):
        with self.entered():
            return super().raw(*arguments, **keys)


class Network:
    """So many nodes, in a namespace each, and one more with two bridges.

    One bridge joins the nodes to each other. By the other one clients in that namespace reach them, whatever
    happens to the first one.
    """

    def __init__(self, count):
        self._made = []
        prefix = f"proxima-{os.getpid()}-{number()}"
        self.switch = Namespace(f"{prefix}-switch")
        self.places = [Place(self, f"{prefix}-n{index}", index) for index in range(count)]
        try:
            self._make()
        except OSError:
            self.remove()
            raise

    def _make(self):
        for space in [self.switch, *self.places]:
            ip("netns", "add", space.name)
            self._made.append(space)
            ip("-n", space.name, "link", "set", "lo", "up")
        for bridge in ("bridge0", "bridge1"):
            ip("-n", self.switch.name, "link", "add", bridge, "type", "bridge")
            ip("-n", self.switch.name, "link", "set", bridge, "up")
        ip("-n", self.switch.name, "address", "add", "10.77.1.254/24", "dev", "bridge1")
        for place in self.places:
            self._connect(place, "eth0", "bridge0", place.address)
            self._connect(place, "eth1", "bridge1", place.serving)
            ip("-n", place.name, "link", "set", "eth0", "address", place.ethernet)
        for place in self.places:
            for other in self.places:
                if other is not place:
                    place.reach(other)

    def _connect(self, place, interface, bridge, address):
        port = f"{interface}-{place.index}"
        ends = ["type", "veth", "peer", "name", port, "netns", self.switch.name]
        ip("link", "add", interface, "netns", place.name, *ends)
        ip("-n", self.switch.name, "link", "set", port, "master", bridge, "up")
        ip("-n", place.name, "address", "add", f"{address}/24", "dev", interface)
        ip("-n", place.name, "link", "set", interface, "up")

    def remove(self):
        """Removes the namespaces, with all that is in them."""
        while self._made:
            ip("netns", "delete", self._made.pop().name)
