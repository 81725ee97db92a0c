"""mcrouter's hashes: which server of a pool has a key, compared with the numbers of mcrouter's own hash."""

import pytest

pytestmark = pytest.mark.either_io

A200 = "a" * 200

CH3 = {
    2: {"key0": 0, "key1": 0, "key2": 0, "foo": 1, "abc:12:def": 0, "user:1000": 1, A200: 0},
    3: {"key0": 0, "key1": 2, "key2": 0, "foo": 1, "abc:12:def": 0, "user:1000": 2, A200: 0},
    5: {"key0": 4, "key1": 2, "key2": 4, "foo": 1, "abc:12:def": 0, "user:1000": 2, A200: 4},
    10: {"key0": 7, "key1": 2, "key2": 4, "foo": 1, "abc:12:def": 0, "user:1000": 2, A200: 4},
    16: {"key0": 14, "key1": 2, "key2": 14, "foo": 1, "abc:12:def": 0, "user:1000": 2, A200: 14},
    100: {"key0": 22, "key1": 2, "key2": 40, "foo": 1, "abc:12:def": 94, "user:1000": 54, A200: 94},
}

CRC32 = {
    5: {"key0": 4, "key1": 1, "key2": 0, "foo": 1, "abc:12:def": 0, "user:1000": 2, A200: 1},
    10: {"key0": 4, "key1": 6, "key2": 0, "foo": 1, "abc:12:def": 0, "user:1000": 7, A200: 6},
}

CONST_SHARD = {
    10: {"abc:12:def": 0, "abc:9:def": 9, "abc:16:x": 4, "abc:1": 6, "abc::x": 3, "abc:x:1:": 7},
    16: {"abc:12:def": 12, "abc:9:def": 9, "abc:16:x": 10, "abc:1": 14, "abc::x": 3, "abc:x:1:": 7},
}

VECTORS = [
    (name, size, places)
    for name, table in (("Ch3", CH3), ("Crc32", CRC32), ("ConstShard", CONST_SHARD))
    for size, places in table.items()
]


def members(count):
    """Servers each of which answers with its index."""
    return [f"ErrorRoute|{number}" for number in range(count)]


def place(client, key):
    answer = client.ask(f"get {key}\r\n".encode())
    return int(answer.removeprefix(b"SERVER_ERROR "))


@pytest.mark.parametrize("name, size, places", VECTORS, ids=[f"{name}-{size}" for name, size, _ in VECTORS])
def test_keys_are_where_mcrouter_places_them(routed, name, size, places):
    pool = {"servers": members(size)}
    routes = [
        {"type": "PoolRoute", "pool": "A", "hash": name},
        {"type": "PoolRoute", "pool": "A", "hash": {"hash_func": name}},
        {"type": "HashRoute", "children": "Pool|A", "hash_func": name},
    ]
    for route in routes + ["PoolRoute|A"] * (name == "Ch3"):
        with routed(route, {"A": pool}).raw() as client:
            assert {key: place(client, key) for key in places} == places, route
            # The end behind a hash stop does not count, and neither does a routing prefix.
            assert place(client, "foo") == place(client, "foo|#|bar") == place(client, "/././foo|#|x")


def test_a_salt_places_keys_anew(routed):
    keys = [f"k{number}" for number in range(200)]
    found = {}
    for salt in ("", "x", "y"):
        hash = {"hash_func": "Ch3", "salt": salt} if salt else "Ch3"
        route = {"type": "PoolRoute", "pool": "A", "hash": hash}
        with routed(route, {"A": {"servers": members(5)}}).raw() as client:
            found[salt] = [place(client, key) for key in keys]
    with routed("PoolRoute|A", {"A": {"servers": members(5)}}).raw() as client:
        # The salt is appended to the key.
        assert found["x"] == [place(client, f"{key}x") for key in keys]
    assert found["x"] != found[""] != found["y"] != found["x"]


SHARDS = 8


def test_shards_by_number_are_on_servers_of_their_own(memcached, routed):
    servers = memcached.several(SHARDS)
    route = {"type": "PoolRoute", "pool": "A", "hash": "ConstShard"}
    with routed(route, {"A": servers}).raw() as client:
        for shard in range(SHARDS):
            for number in range(10):
                client.set(f"some:{shard}:{number}", "1")
    for shard, server in enumerate(servers):
        for other in range(SHARDS):
            with server.raw() as direct:
                found = [direct.get(f"some:{other}:{number}") is not None for number in range(10)]
            assert found == [shard == other] * 10


COUNT = 20_000

WEIGHTS = [1, 0.5, 0, 1, 0.25, 0.75, 0.1, 1]


def stored(client, keys):
    """Sets all keys."""
    for start in range(0, len(keys), 1000):
        part = keys[start : start + 1000]
        client.send(b"".join(b"set %b 0 0 1\r\n1\r\n" % key for key in part))
        assert client.exactly(8 * len(part)) == b"STORED\r\n" * len(part)


def those_of(server, keys):
    """The keys that a server has."""
    found = set()
    with server.raw() as direct:
        for start in range(0, len(keys), 100):
            answer = direct.ask(b"get %b\r\n" % b" ".join(keys[start : start + 100]))
            found.update(line.split()[1] for line in answer.splitlines() if line.startswith(b"VALUE "))
        direct.ask(b"flush_all\r\n")
    return found


def test_weights_of_pool_hash_and_route_place_20000_keys_alike(memcached, routed):
    servers = memcached.several(len(WEIGHTS))
    weighted = {"servers": [server.address for server in servers], "weights": WEIGHTS}
    plain = {"servers": weighted["servers"]}
    by_hash = {"hash_func": "WeightedCh3", "weights": WEIGHTS}
    forms = {
        "weights in the pool": ("PoolRoute|A", weighted),
        "a hash object": ({"type": "PoolRoute", "pool": "A", "hash": by_hash}, plain),
        "weights in the route": ({"type": "PoolRoute", "pool": "A", "weights": WEIGHTS}, plain),
    }
    keys = [b"key:%d:|#|id=%d" % (number, number * 7) for number in range(COUNT)]
    placed = {}
    for name, (route, pool) in forms.items():
        with routed(route, {"A": pool}).raw() as client:
            stored(client, keys)
        placed[name] = [those_of(server, keys) for server in servers]
    first = placed["weights in the pool"]
    assert all(places == first for places in placed.values()), {
        name: [len(keys) for keys in places] for name, places in placed.items()
    }
    assert sum(map(len, first)) == COUNT
    for weight, has in zip(WEIGHTS, first):
        assert abs(len(has) - COUNT * weight / sum(WEIGHTS)) <= 0.075 * len(has), (weight, len(has))


def test_lower_weight_moves_the_keys_of_its_server_alone(routed):
    keys = [f"key{number}" for number in range(2000)]
    found = []
    for last in (1, 0.5):
        pool = {"servers": members(4), "weights": [1, 0.5, 1, last]}
        with routed("PoolRoute|A", {"A": pool}).raw() as client:
            client.send(b"".join(f"get {key}\r\n".encode() for key in keys))
            found.append([int(client.line().split()[1]) for _ in keys])
    moved = [(before, after) for before, after in zip(*found) if before != after]
    assert moved and {before for before, _ in moved} == {3}


def test_missing_weights_are_a_half_and_the_log_says_so(routed):
    router = routed("PoolRoute|A", {"A": {"servers": members(3), "weights": [1]}})
    keys = [f"foo{number}" for number in range(300)]
    with router.raw() as client:
        few = [place(client, key) for key in keys]
    assert "weights" in router.log()
    with routed("PoolRoute|A", {"A": {"servers": members(3), "weights": [1, 0.5, 0.5]}}).raw() as client:
        assert few == [place(client, key) for key in keys]
