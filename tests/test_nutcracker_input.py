"""twemproxy's front door with input that is large or wrong.

`proxy/tests/nutcracker/refusals.rs` has what is refused of a file, and `test_discovery.py` the bad answers of
discovery endpoints.
"""

import pytest

from harness import ports, until
from harness.names import System, may_mount
from harness.nutcracker import Door, entry
from harness.proxy import BINARY

pytestmark = pytest.mark.either_io


def test_file_of_5000_servers_is_served_and_followed(door, memcached):
    """One memcached on every address of this host stands for all servers."""
    port = memcached(host="0.0.0.0", options=("-c", "8192")).address.rsplit(":", 1)[1]
    servers = [f"127.1.{number // 250}.{number % 250 + 1}:{port}:1" for number in range(5_001)]
    pool = {"listen": ports.address(), "auto_eject_hosts": True}
    proxy = door({"p": {**pool, "servers": servers[:5_000]}}, workers=1)
    keys = [f"{number}-is-a-key" for number in range(50)]
    with proxy.raw() as client:
        for key in keys:
            client.set(key, "v")
            assert client.get(key) == b"v"
        proxy.write({"p": {**pool, "servers": servers}})
        until(lambda: proxy.metric("pool_members", pool="p", up="true") == 5_001, "one more is known")
        assert [client.get(key) for key in keys] == [b"v"] * len(keys)


@pytest.mark.parametrize("protocol", ["memcached", "redis"])
@pytest.mark.skipif(not may_mount(), reason="only root has a resolv.conf of its own, and port 53")
def test_host_that_does_not_resolve_is_an_error_for_its_keys_alone(
    memcached, redis_server, cleanup, tmp_path, io, protocol
):
    system = System(tmp_path)
    cleanup.callback(system.stop)
    is_redis = protocol == "redis"
    here, late = {"memcached": memcached, "redis": redis_server}[protocol].several(2)
    entries = [entry(here, 1, "here"), f"late.example:{late.address.rsplit(':', 1)[1]}:1 late"]
    pools = {"p": {"listen": ports.address(), "redis": is_redis, "hash": "md5", "servers": entries}}
    proxy = Door(pools, tmp_path, io, program=[*system.before, BINARY, "nutcracker"])
    cleanup.callback(proxy.stop)
    write, both = {
        "memcached": (b"set %d-is-a-key 0 0 1\r\nv\r\n", b"get %d-is-a-key %d-is-a-key\r\n"),
        "redis": (
            b"*3\r\n$3\r\nSET\r\n$10\r\n%d-is-a-key\r\n$1\r\nv\r\n",
            b"*3\r\n$4\r\nMGET\r\n$10\r\n%d-is-a-key\r\n$10\r\n%d-is-a-key\r\n",
        ),
    }[protocol]
    good, bad = (b"+OK\r\n", b"-ERR ") if is_redis else (b"STORED\r\n", b"SERVER_ERROR ")

    def answers(client):
        client.send(b"".join(write % number for number in range(10)))
        return [client.line() for _ in range(10)]

    with proxy.raw() as client:
        first = answers(client)
        lost = [number for number, answer in enumerate(first) if answer.startswith(bad)]
        kept = [number for number, answer in enumerate(first) if answer == good]
        assert lost and kept and len(lost + kept) == 10, first
        client.send(both % (lost[0], kept[0]))
        assert client.line().startswith(bad)
        assert answers(client) == first
        system.names.set("late.example", "127.0.0.1")
        until(lambda: answers(client) == [good] * 10, "its keys are served as soon as DNS knows it")
