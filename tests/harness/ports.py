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


def address(host="127.0.0.1"):
    """`host:port` with a free port."""
    return f"[{host}]:{free(host)}" if ":" in host else f"{host}:{free(host)}"
