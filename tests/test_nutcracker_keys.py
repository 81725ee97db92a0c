"""twemproxy's front door beside the real `nutcracker`: the same key is on the same server.

Every case has every hash under both distributions that place a key. `make soak` takes 10,000 keys for each.
"""

import pathlib
import subprocess

import pytest

from harness import SOAK, ports, until
from harness.nutcracker import NUTCRACKER, entry, listed, write, written
from harness.proxy import BINARY
from harness.redis import Connection, array

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(
        not pathlib.Path(NUTCRACKER).exists(), reason="nutcracker is missing: scripts/prepare.sh"
    ),
    pytest.mark.timeout(900 if SOAK else 60),
]


MANY = 10_000
FEW = MANY if SOAK else 1_000

HASHES = "one_at_a_time md5 crc16 crc32 crc32a fnv1_64 fnv1a_64 fnv1_32 fnv1a_32 hsieh murmur jenkins".split()


def pools_of(servers, **keys):
    """A pool for each hash and distribution."""
    named = [(hash, distribution) for hash in HASHES for distribution in ("ketama", "modula")]
    return {
        f"{hash}_{distribution}": {"hash": hash, "distribution": distribution, **keys, "servers": servers}
        for hash, distribution in named
    }


def keys_of(pools, count):
    """Keys of each pool that no other pool has; with bytes beyond ASCII, tags, and mcrouter's hash stop."""
    forms = [b"%b:%d", b"user:%b:{%d}x", b"caf\xc3\xa9\xff:%b:%d", b"a|#|%b:%d"]
    return [[forms[i % 4] % (name.encode(), i) for i in range(count)] for name in pools]


CASES = {
    "equal": (MANY, lambda servers: [entry(server) for server in servers], {}),
    "weighted": (MANY, lambda servers: [entry(server, i + 1) for i, server in enumerate(servers)], {}),
    "named": (
        FEW,
        lambda servers: [entry(server, 1, n) for server, n in zip(servers, ["zz", "b", "aaa", "a"])],
        {},
    ),
    "tagged": (FEW, lambda servers: [entry(server, 2) for server in servers], {"hash_tag": "{}"}),
}


@pytest.mark.parametrize("case", CASES)
def test_each_key_is_on_the_server_where_twemproxy_has_it(both, memcached, case):
    count, entries, keys = CASES[case]
    servers = memcached.several(4)
    pools = pools_of(entries(servers), **keys)
    theirs, ours = both(pools)
    keys_of_pools = keys_of(pools, count)
    write(theirs, keys_of_pools)
    before = all_listed(servers, count * len(pools))
    assert all(len(at) == 1 for at in before.values())
    write(ours, keys_of_pools)
    after = all_listed(servers, len(before))
    elsewhere = {key: at for key, at in after.items() if at != before.get(key)}
    assert not elsewhere, f"{len(elsewhere)} of {len(before)}: {list(elsewhere.items())[:5]}"


@pytest.mark.parametrize("case", ["equal", "weighted", "named"])
def test_each_key_is_on_the_socket_where_twemproxy_has_it(both, memcached, folder, case):
    servers = [memcached(socket=str(folder / f"{name}.sock")) for name in "abc"]
    pools = pools_of(CASES[case][1](servers))
    theirs, ours = both(pools)
    keys_of_pools = keys_of(pools, FEW // 5)
    write(theirs, keys_of_pools)
    before = all_listed(servers, FEW // 5 * len(pools))
    write(ours, keys_of_pools)
    assert all_listed(servers, len(before)) == before


# The forms of a server's line, and whether twemproxy reads them.
FORMS = {
    "127.0.0.1:11211:1": True,
    "127.0.0.1:11212:1": True,
    "127.0.0.1:011211:1": True,
    "127.0.0.1:011212:1": True,
    "127.0.0.1:4294978507:1": True,
    "127.0.0.1:1:4294967297": True,
    "127.0.0.1:1:007": True,
    "127.0.0.1:1:1 name": True,
    "127.0.0.1:11211:1 a:b": True,
    "127.0.0.1:11211:1 ": True,
    "localhost:11211:1": True,
    "localhost:1:1": True,
    "::1:11211:1": True,
    "::1:1:1": True,
    "[::1]:11211:1": True,
    "[::1]:1:1": True,
    "/run/a.sock:1": True,
    "/run/a.sock:007": True,
    "/run/../run/a.sock:1": True,
    "/run/a.sock:1 name": True,
    "/run/a.sock:1 ": True,
    "/run/a b.sock:1 name": True,
    "/run/a:b.sock:1": False,
    "/run/a.sock:1  name": False,
    "/run/a.sock:1 two words": False,
    "/run/a.sock:0": False,
    "/run/a.sock": False,
    "unix:/run/a.sock:1": False,
    "127.0.0.1:1:1\tname": False,
    "127.0.0.1:1: 1": False,
    "127.0.0.1:1:2147483648": False,
    "127.0.0.1:99999999999999999999:1": False,
    "127.0.0.1:1:+1": False,
    "127.0.0.1:1:1x": False,
    "127.0.0.1:0:1": False,
    "127.0.0.1:1:0": False,
    "127.0.0.1:1": False,
    "127.0.0.1": False,
}


def test_server_lines_that_twemproxy_reads_are_read_under_the_same_names(both):
    read = [form for form, is_read in FORMS.items() if is_read]
    theirs, ours = both({f"pool{number}": {"servers": [form]} for number, form in enumerate(read)})

    def names(proxy):
        pools = [value for value in proxy.stats().values() if isinstance(value, dict)]
        return [[name for name, value in pool.items() if isinstance(value, dict)] for pool in pools]

    expected = dict(zip(read, names(theirs), strict=True))
    assert dict(zip(read, names(ours), strict=True)) == expected


def test_server_lines_that_twemproxy_refuses_are_refused(tmp_path):
    file = tmp_path / "nutcracker.yml"

    def reads(program, form):
        file.write_text(written({"p": {"listen": ports.address(), "servers": [form]}}))
        tested = subprocess.run([*program, "-t", "-c", file], capture_output=True)
        return tested.returncode == 0

    assert {form: reads([NUTCRACKER], form) for form in FORMS} == FORMS
    assert {form: reads([BINARY, "nutcracker"], form) for form in FORMS} == FORMS


def test_port_11211_is_no_part_of_a_name(both, memcached):
    servers = [memcached(host=f"127.11.2.{n}", port=11211) for n in range(1, 4)]
    pools = pools_of([entry(server) for server in servers])
    theirs, ours = both(pools)
    keys_of_pools = keys_of(pools, FEW)
    write(theirs, keys_of_pools)
    before = all_listed(servers, FEW * len(pools))
    write(ours, keys_of_pools)
    assert all_listed(servers, len(before)) == before


def all_listed(servers, count):
    """Which servers have each of so many keys. A listing may lack a few that move in memory meanwhile."""
    found = {}

    def complete():
        for key, at in listed(servers).items():
            found.setdefault(key, set()).update(at)
        return len(found) == count

    until(complete, f"{count} keys are listed")
    return found


def until_ejected(proxy, listener, keys):
    """Reads the keys until no request is lost."""
    request = b"".join(b"get %b\r\n" % key for key in keys)
    with proxy.raw(listener) as client:

        def served():
            client.send(request)
            return [client.line() for _ in keys] == [b"END\r\n"] * len(keys)

        until(served, "the dead server is ejected")


@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (1, 2, 3, 4)], ids=["equal", "weighted"])
def test_keys_are_shared_out_anew_when_a_server_is_ejected(both, memcached, weights):
    servers = memcached.several(4)
    entries = [entry(server, weight) for server, weight in zip(servers, weights)]
    eject = {"auto_eject_hosts": True, "server_failure_limit": 1, "server_retry_timeout": 600_000}
    pools = pools_of(entries, **eject)
    theirs, ours = both(pools, workers=1)
    servers.pop(1).kill()
    keys_of_pools = keys_of(pools, FEW)
    for proxy in (theirs, ours):
        for listener, keys in enumerate(keys_of_pools):
            until_ejected(proxy, listener, keys)
    write(theirs, keys_of_pools)
    before = all_listed(servers, FEW * len(pools))
    assert all(len(at) == 1 for at in before.values())
    write(ours, keys_of_pools)
    assert all_listed(servers, len(before)) == before


def test_redis_keys_are_on_the_server_where_twemproxy_has_them(both, redis_server):
    count = FEW // 5
    servers = redis_server.several(3)
    pools = pools_of([entry(server, i + 1) for i, server in enumerate(servers)], redis=True)
    theirs, ours = both(pools)

    def placed(proxy):
        """The keys that each server has."""
        for listener, keys in enumerate(keys_of(pools, count)):
            with Connection(proxy.addresses[listener]) as client:
                client.send(b"".join(array("SET", key, "v") for key in keys))
                assert client.take(5 * count) == b"+OK\r\n" * count
        found = [set(server.ask("KEYS", "*").split(b"\r\n")[2::2]) for server in servers]
        for server in servers:
            assert server.ask("FLUSHALL") == b"+OK\r\n"
        return found

    before = placed(theirs)
    assert sum(map(len, before)) == count * len(pools) and all(before)
    assert placed(ours) == before


def test_random_shares_out_among_the_live_servers_whatever_their_weights(both, memcached):
    servers = memcached.several(4)
    entries = [entry(server, weight) for server, weight in zip(servers, (1, 1, 1, 100))]
    eject = {"auto_eject_hosts": True, "server_failure_limit": 1, "server_retry_timeout": 600_000}
    pools = {"p": {"distribution": "random", **eject, "servers": entries}}
    theirs, ours = both(pools)
    servers.pop(0).kill()
    keys = [b"k%d" % i for i in range(600)]
    for proxy in (theirs, ours):
        until_ejected(proxy, 0, [b"none%d" % i for i in range(100)])
        before = [server.stat("cmd_set") for server in servers]
        write(proxy, [keys])
        counts = [server.stat("cmd_set") - at_first for server, at_first in zip(servers, before)]
        assert sum(counts) == len(keys) and min(counts) > len(keys) / 6, counts
