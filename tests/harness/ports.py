"""Free ports, below those that the kernel gives to outgoing connections: no client of a test takes one first."""

import random
import socket

_given = set()
_random = random.Random()


def free(host="127.0.0.1"):
    """A port where nobody listens on `host`, never given twice by this process."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        port = _random.randrange(12000, 32000)
        if port in _given:
            continue
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
        _given.add(port)
        return port


def address(host="127.0.0.1", port=None):
    """`host:port` with this port, or a free one."""
    port = port or free(host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def free_on(hosts):
    """One that is free on all of them."""
    while True:
        port = free(hosts[0])
        try:
            for host in hosts:
                with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
                    sock.bind((host, port))
        except OSError:
            continue
        return port
