"""A wire to servers in a network of their own. The kernels at its ends retransmit lost packets, as on any
network."""

import ctypes
import fcntl
import os
import random
import select
import struct
import subprocess
import threading
import time

from . import ports
from .servers import Memcached

_NEW_NETWORK = 0x40000000
_SET_INTERFACE = 0x400454CA
_TUN, _BARE = 0x0001, 0x1000


def may_lay():
    """Whether a wire can be made here. Only root may have networks, and not every kernel has the device."""
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        return False
    try:
        wire = Wire()
    except (OSError, subprocess.CalledProcessError):
        return False
    wire.stop()
    return True


class Wire:
    """Carries packets until it is cut. `here` and `there` are the addresses of its ends."""

    def __init__(self):
        net = f"198.{random.choice([18, 19])}.{random.randrange(256)}"
        self.here, self.there = f"{net}.1", f"{net}.2"
        self._lost, self._is_cut, self._stop = [], False, threading.Event()
        self._holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        space = f"/proc/{self._holder.pid}/ns/net"
        while os.readlink(space) == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        self._inside = ["nsenter", f"--net={space}"]
        self._ends = []
        name = f"wire{ports.free()}"
        # A new device belongs to the namespace of the thread that makes it.
        for before, address, peer in ((), self.here, self.there), (self._inside, self.there, self.here):
            thread = threading.Thread(target=self._make_end, args=(name, before and space))
            thread.start()
            thread.join()
            for command in (
                ["ip", "address", "add", address, "peer", peer, "dev", name],
                ["ip", "link", "set", name, "up"],
            ):
                subprocess.run([*before, *command], check=True)
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def _make_end(self, name, space):
        if space:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(space) as handle:
                assert libc.setns(handle.fileno(), _NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())
        end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(end, _SET_INTERFACE, struct.pack("16sH22s", name.encode(), _TUN | _BARE, b""))
        self._ends.append(end)

    def _carry(self):
        other = dict(zip(self._ends, reversed(self._ends)))
        while not self._stop.is_set():
            for end in select.select(self._ends, [], [], 0.05)[0]:
                try:
                    packet = os.read(end, 65536)
                    if not self._is_cut:
                        os.write(other[end], packet)
                    elif end == self._ends[0] and _has_data(packet):
                        self._lost.append(time.monotonic())
                except OSError:
                    pass

    def cut(self):
        """Loses every packet from now on."""
        self._lost = []
        self._is_cut = True

    def mend(self):
        self._is_cut = False

    def pause(self):
        """Seconds between the kernel's last two retransmissions. The kernel doubles them each time."""
        times = self._lost[-2:]
        return times[1] - times[0] if len(times) == 2 else 0

    def memcached(self, **options):
        """Starts a server at the other end."""
        return Memcached(host=self.there, port=ports.free(), before=self._inside, **options)

    def stop(self):
        self._stop.set()
        if self._ends:
            self._thread.join()
        for end in self._ends:
            os.close(end)
        self._holder.kill()
        self._holder.wait()


def _has_data(packet):
    """Whether this is a TCP packet of IPv4 that carries bytes."""
    if packet[0] >> 4 != 4 or packet[9] != 6:
        return False
    head = (packet[0] & 15) * 4
    return len(packet) > head + (packet[head + 12] >> 4) * 4
