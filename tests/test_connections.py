"""Clients with a connection for every request: nothing of them stays."""

import socket
import struct
import subprocess

import pytest

from harness import SOAK, until
from harness.judge import BENCH
from harness.proxy import config, environment

FEW, MANY = 10_000, 1_000_000 if SOAK else 60_000
"""Connections before the first look at the memory, and before the second."""


def connect(proxy, count):
    """Makes connections of one request each until the proxy has accepted as many."""
    command = [BENCH, "load", "--quiet", "--address", proxy.address, "--reconnect", "--connections", "20"]
    while proxy.metric("clients_accepted_total") < count:
        seconds = "10s" if count - FEW > 100_000 else "1s"
        done = subprocess.run(
            [*command, "--keys", "1000", "--duration", seconds],
            capture_output=True,
            text=True,
            env=environment(),
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(600 if SOAK else 60)
def test_short_connections_leave_no_memory_behind(memcached, proxima):
    servers = [server.address for server in memcached.several(4)]
    proxy = proxima(config("cache", {"cache": {"servers": servers}}))
    connect(proxy, FEW)
    before = proxy.memory()
    connect(proxy, MANY)
    after = proxy.memory()
    # The kernel may take pages of the program back meanwhile. A busy machine has more clients at a time.
    assert after <= before * (1.05 if SOAK else 1.1), f"{before} bytes, then {after}"


def test_a_client_that_resets_at_once_is_served_by_its_address(memcached, proxima):
    server = memcached()
    pools = {"cache": {"servers": [server.address]}}
    route = {"by_client": ["cache", "cache"]}
    proxy = proxima(config(route, pools))
    host, port = proxy.address.split(":")
    for number in range(200):
        client = socket.create_connection((host, int(port)))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(b"set k%d 0 0 1\r\nv\r\n" % number)
        client.close()
    until(lambda: server.stat("cmd_set") == 200, "every value is stored")
