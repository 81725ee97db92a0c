"""Free ports, from a block that no other process of tests has, apart from those of outgoing connections."""

import itertools
import os
import socket

BLOCK = 400
"""Ports of one process: more than any test takes, so that no port is reused soon after its last user has
ended."""


def _blocks():
    """The first ports of all blocks. The kernel gives no client a port in one of them."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        low, high = map(int, file.read().split())
    blocks = range(12000, 65536 - BLOCK, BLOCK)
    apart = [first for first in blocks if first + BLOCK <= low or first > high]
    # Where outgoing connections may have any port, no block is safe, and `free` checks each port again.
    return apart or list(blocks)


def _claim():
    """A block, and the socket that reserves it.

    The socket's name belongs to the network namespace, as ports do. The kernel releases it however a process
    ends.
    """
    blocks = _blocks()
    start = os.getpid() % len(blocks)
    for first in blocks[start:] + blocks[:start]:
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0proxima tests, ports from {first}")
        except OSError:
            claim.close()
            continue
        return claim, range(first, first + BLOCK)
    raise RuntimeError(f"all {len(blocks)} blocks of ports are claimed by other runs of the tests")


_claimed, _block = _claim()
_ports = itertools.cycle(_block)


def free(host="127.0.0.1"):
    """A port on which no program listens on `host`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in itertools.islice(_ports, BLOCK):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
        return port
    raise RuntimeError(f"all ports from {_block[0]} to {_block[-1]} are in use on {host}")


def address(host="127.0.0.1", port=None):
    """`host:port` with this port, or with a free one."""
    port = port or free(host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def free_on(hosts):
    """A port that is free on all of these hosts."""
    while True:
        port = free(hosts[0])
        try:
            for host in hosts:
                with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
                    sock.bind((host, port))
        except OSError:
            continue
        return port
