"""twemproxy's front door beside the real `nutcracker`: the same key on the same server, the same requests lost."""

import pathlib
import time

import pytest

from harness import ports, until
from harness.nutcracker import NUTCRACKER, Door, Twemproxy, entry
from harness.redis import Connection

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(not pathlib.Path(NUTCRACKER).exists(), reason="nutcracker is missing: scripts/prepare.sh"),
]

HASHES = "one_at_a_time md5 crc16 crc32 crc32a fnv1_64 fnv1a_64 fnv1_32 fnv1a_32 hsieh murmur jenkins".split()


@pytest.fixture
def door(cleanup, io, tmp_path):
    def start(pools, *arguments, **options):
        proxy = Door(pools, tmp_path, io, *arguments, **options)
        cleanup.callback(proxy.stop)
        return proxy

    return start


@pytest.fixture
def twemproxy(cleanup, tmp_path):
    def start(pools, *arguments):
        proxy = Twemproxy(pools, tmp_path, *arguments)
        cleanup.callback(proxy.stop)
        return proxy

    return start


@pytest.fixture
def both(door, twemproxy):
    """The real one and ours, with the same pools on ports of their own."""

    def start(pools, **options):
        def own():
            return {name: {"listen": ports.address(), **keys} for name, keys in pools.items()}

        return twemproxy(own()), door(own(), **options)

    return start


def listed(servers):
    """Which servers have each key."""
    found = {}
    for server in servers:

        def dump():
            with server.raw() as direct:
                direct.send(b"lru_crawler metadump all\r\n")
                parts = []
                while not b"".join(parts[-2:]).endswith((b"END\r\n", b"request\r\n")):
                    parts.append(direct.sock.recv(1 << 20))
                text = b"".join(parts)
                return None if text.startswith(b"BUSY") else text

        for line in until(dump, "the keys are listed").splitlines()[:-1]:
            key = line.split(b" ", 1)[0].removeprefix(b"key=")
            found.setdefault(key, []).append(server.address)
    return found


def write(proxy, keys_of, batch=500):
    """Stores each pool's keys through it."""
    for listener, keys in enumerate(keys_of):
        with proxy.raw(listener) as client:
            for start in range(0, len(keys), batch):
                part = keys[start : start + batch]
                client.send(b"".join(b"set %b 0 0 1\r\nv\r\n" % key for key in part))
                answer = client.exactly(len(part) * 8)
                assert answer == b"STORED\r\n" * len(part), answer[:100]


def pools_of(servers, **keys):
    """A pool for each hash and distribution."""
    named = [(hash, distribution) for hash in HASHES for distribution in ("ketama", "modula")]
    return {
        f"{hash}_{distribution}": {"hash": hash, "distribution": distribution, **keys, "servers": servers}
        for hash, distribution in named
    }


def keys_of(pools, count):
    """Keys of each pool that no other pool has; some with bytes beyond ASCII, tags, and mcrouter's hash stop."""
    forms = [b"%b:%d", b"user:%b:{%d}x", b"caf\xc3\xa9\xff:%b:%d", b"a|#|%b:%d"]
    return [[forms[i % 4] % (name.encode(), i) for i in range(count)] for name in pools]


CASES = {
    "equal": (10_000, lambda servers: [entry(server) for server in servers], {}),
    "weighted": (10_000, lambda servers: [entry(server, i + 1) for i, server in enumerate(servers)], {}),
    "named": (1_000, lambda servers: [entry(server, 1, n) for server, n in zip(servers, ["zz", "b", "aaa", "a"])], {}),
    "tagged": (1_000, lambda servers: [entry(server, 2) for server in servers], {"hash_tag": "{}"}),
}


@pytest.mark.parametrize("case", CASES)
def test_each_key_is_on_the_server_where_twemproxy_has_it(both, memcached, case):
    count, entries, keys = CASES[case]
    servers = memcached.several(4)
    pools = pools_of(entries(servers), **keys)
    theirs, ours = both(pools)
    written = keys_of(pools, count)
    write(theirs, written)
    before = listed(servers)
    assert len(before) == count * len(pools) and all(len(at) == 1 for at in before.values())
    write(ours, written)
    elsewhere = {key: at for key, at in listed(servers).items() if at != before.get(key)}
    assert not elsewhere, f"{len(elsewhere)} of {len(before)}: {list(elsewhere.items())[:5]}"


def test_port_11211_is_no_part_of_a_name(both, memcached):
    servers = [memcached(host=f"127.11.2.{n}", port=11211) for n in range(1, 4)]
    pools = pools_of([entry(server) for server in servers])
    theirs, ours = both(pools)
    written = keys_of(pools, 1_000)
    write(theirs, written)
    before = listed(servers)
    write(ours, written)
    assert listed(servers) == before


@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (1, 2, 3, 4)], ids=["equal", "weighted"])
def test_keys_are_shared_out_anew_when_a_server_is_ejected(both, memcached, weights):
    servers = memcached.several(4)
    entries = [entry(server, weight) for server, weight in zip(servers, weights)]
    eject = {"auto_eject_hosts": True, "server_failure_limit": 1, "server_retry_timeout": 600_000}
    pools = pools_of(entries, **eject)
    theirs, ours = both(pools, workers=1)
    servers.pop(1).kill()
    written = keys_of(pools, 1_000)
    for proxy in (theirs, ours):
        for listener, keys in enumerate(written):
            until_ejected(proxy, listener, keys)
    write(theirs, written)
    before = listed(servers)
    assert all(len(at) == 1 for at in before.values())
    write(ours, written)
    assert listed(servers) == before


def until_ejected(proxy, listener, keys):
    """Reads the keys until no request is lost."""
    request = b"".join(b"get %b\r\n" % key for key in keys)
    with proxy.raw(listener) as client:

        def served():
            client.send(request)
            return [client.line() for _ in keys] == [b"END\r\n"] * len(keys)

        until(served, "the dead server is ejected")


def test_redis_keys_are_on_the_server_where_twemproxy_has_them(both, redis_server):
    servers = redis_server.several(3)
    pools = {
        name: {"redis": True, "distribution": name, "servers": [entry(server, i + 1) for i, server in enumerate(servers)]}
        for name in ("ketama", "modula")
    }
    theirs, ours = both(pools)

    def place(proxy):
        for listener, name in enumerate(pools):
            with Connection(proxy.addresses[listener]) as client:
                for i in range(500):
                    assert client.ask("SET", f"{name}:{i}", "v") == b"+OK\r\n"
        return [server.ask("KEYS", "*").count(b"\n") for server in servers]

    before = place(theirs)
    assert sum(count // 2 for count in before) >= 1_000
    assert place(ours) == before


def test_random_sends_to_every_live_server(door, memcached):
    servers = memcached.several(3)
    proxy = door({"p": {"listen": ports.address(), "distribution": "random", "servers": [entry(s) for s in servers]}})
    with proxy.raw() as client:
        for i in range(200):
            client.set(f"k{i}", "v")
    assert all(server.stat("curr_items") > 20 for server in servers)


RETRY = 1_500


def lost(proxy, key, listener=0, count=1):
    """Which of this many requests, each from a client of its own, got an error."""

    def ask():
        with proxy.raw(listener) as client:
            client.send(b"set %b 0 0 1\r\nv\r\n" % key)
            return client.line().startswith(b"SERVER_ERROR")

    return [ask() for _ in range(count)]


@pytest.fixture
def pair(both, memcached):
    """Both proxies, with limit and other keys, over two servers; and a key of the second server."""

    def start(limit, workers, **keys):
        servers = memcached.several(2)
        eject = {"auto_eject_hosts": True, "server_failure_limit": limit, "server_retry_timeout": RETRY, **keys}
        pools = {"p": {"distribution": "modula", **eject, "servers": [entry(server) for server in servers]}}
        with_key = next(keys for keys in [_key_of_second(both, servers)])
        return servers, with_key, lambda: both(pools, workers=workers)

    return start


def _key_of_second(both, servers):
    """A key that modula gives to the second server."""
    theirs, _ = both({"p": {"distribution": "modula", "servers": [entry(server) for server in servers]}})
    keys = [b"key%d" % i for i in range(20)]
    write(theirs, [keys])
    return next(key for key, at in listed(servers).items() if at == [servers[1].address])


EACH = [(limit, workers) for limit in (1, 2) for workers in (1, 4)]


@pytest.mark.parametrize("limit, workers", EACH)
@pytest.mark.parametrize("preconnect", [False, True], ids=["", "preconnect"])
def test_a_dead_server_costs_as_many_requests_as_in_twemproxy(pair, limit, workers, preconnect):
    servers, key, start = pair(limit, workers, preconnect=preconnect)
    servers[1].kill()
    theirs, ours = start()
    time.sleep(0.2)
    first = lost(theirs, key, count=5)
    assert lost(ours, key, count=5) == first
    assert first == [True] * (limit - preconnect) + [False] * (5 - limit + preconnect)
    # Both are asked again when the time is over, and lose as many requests once more.
    time.sleep(RETRY / 1_000 + 0.2)
    again = lost(theirs, key, count=5)
    assert lost(ours, key, count=5) == again == [True] * limit + [False] * (5 - limit)
    until(lambda: theirs.stats()["p"]["server_ejects"] == 2, "twemproxy's count is fresh")
    assert ours.metric("member_ejections_total") == 2


@pytest.mark.parametrize("limit, workers", EACH)
def test_a_killed_server_costs_as_many_requests_as_in_twemproxy(pair, limit, workers):
    servers, key, start = pair(limit, workers)
    theirs, ours = start()
    assert lost(theirs, key, count=1) == [False]
    # Every worker gets to know the server.
    assert lost(ours, key, count=12) == [False] * 12
    servers[1].kill()
    time.sleep(0.2)
    first = lost(theirs, key, count=5)
    assert lost(ours, key, count=5) == first == [True] * (limit - 1) + [False] * (6 - limit)


@pytest.mark.parametrize("limit, workers", EACH)
def test_a_frozen_server_costs_as_many_requests_as_in_twemproxy(pair, limit, workers):
    servers, key, start = pair(limit, workers, timeout=150)
    theirs, ours = start()
    servers[1].freeze()
    first = lost(theirs, key, count=4)
    assert lost(ours, key, count=4) == first == [True] * limit + [False] * (4 - limit)
    servers[1].thaw()
    time.sleep(RETRY / 1_000 + 0.2)
    assert lost(theirs, key, count=4) == lost(ours, key, count=4) == [False] * 4


@pytest.mark.parametrize("limit, workers", EACH)
def test_requests_of_one_connection_to_a_server_count_once(pair, limit, workers):
    servers, key, start = pair(limit, workers)
    servers[1].kill()
    theirs, ours = start()

    def pipelined(proxy):
        with proxy.raw() as client:
            client.send(b"set %b 0 0 1\r\nv\r\n" % key * 5)
            return [client.line().startswith(b"SERVER_ERROR") for _ in range(5)]

    first = [pipelined(theirs) for _ in range(3)]
    assert [pipelined(ours) for _ in range(3)] == first == [[True] * 5] * limit + [[False] * 5] * (3 - limit)


def test_a_reply_begins_the_count_anew(both, memcached, scripted):
    seen = []

    def every_second_connection_fails(sock):
        seen.append(1)
        while sock.recv(4096):
            if len(seen) % 2:
                return
            sock.sendall(b"STORED\r\n")
            return

    one, other = memcached(), scripted(every_second_connection_fails)
    eject = {"auto_eject_hosts": True, "server_failure_limit": 3, "server_retry_timeout": RETRY}
    entries = [entry(one, 1, "a"), entry(other, 1, "b")]
    theirs, ours = both({"p": {"distribution": "modula", **eject, "servers": entries}}, workers=1)
    for proxy in (theirs, ours):
        for i in range(20):
            lost(proxy, b"key%d" % i)
    assert theirs.stats()["p"]["server_ejects"] == ours.metric("member_ejections_total") == 0


def test_without_auto_eject_every_request_tries_again(both, memcached):
    servers = memcached.several(2)
    key = _key_of_second(both, servers)
    theirs, ours = both({"p": {"distribution": "modula", "servers": [entry(server) for server in servers]}})
    servers[1].kill()
    for proxy in (theirs, ours):
        lost(proxy, key)  # twemproxy may find the end of its connection only now
        assert lost(proxy, key, count=5) == [True] * 5
    servers[1].start()
    for proxy in (theirs, ours):
        assert lost(proxy, key, count=5) == [False] * 5


def test_all_servers_ejected_is_an_error_for_every_request(both):
    nobody = [ports.address() for _ in range(2)]
    eject = {"auto_eject_hosts": True, "server_failure_limit": 1, "server_retry_timeout": 60_000}
    for proxy in both({"p": {**eject, "servers": [entry(address) for address in nobody]}}):
        for i in range(10):
            assert lost(proxy, b"key%d" % i) == [True]
