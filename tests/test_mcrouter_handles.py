"""mcrouter's route handles, with real servers behind its front door."""

import json

import pytest

from harness.mcrouter import Router

pytestmark = pytest.mark.either_io


@pytest.fixture
def mcrouter(cleanup, io, tmp_path):
    """Starts a router over this route and the pool `A` of these servers."""

    def start(route, servers=(), *arguments, **pools):
        pools = {"A": {"servers": [server.address for server in servers]}, **pools}
        router = Router(json.dumps({"pools": pools, "route": route}), tmp_path, io, *arguments)
        cleanup.callback(router.stop)
        return router

    return start


def spread(router, servers, keys):
    """Sets each key, and returns on which servers each of them is."""
    with router.raw() as client:
        for key in keys:
            client.send(f"set {key} 0 0 1\r\n1\r\n".encode())
        for key in keys:
            assert client.line() == b"STORED\r\n", key
    places = []
    for server in servers:
        with server.raw() as direct:
            places.append([direct.get(key) is not None for key in keys])
    return [[place for place, has in enumerate(row) if has] for row in zip(*places)]


def shares(places, count):
    return [sum(place == [number] for place in places) / len(places) for number in range(count)]


KEYS = [f"some:{number}:|#|id=123" for number in range(4000)]


def test_weights_place_keys_alike_in_the_pool_in_the_hash_and_in_the_route(memcached, mcrouter):
    servers, weights = memcached.several(4), [1, 0.5, 0, 1]
    addresses = [server.address for server in servers]
    routes = [
        ("PoolRoute|W", {"W": {"servers": addresses, "weights": weights}}),
        ({"type": "PoolRoute", "pool": "A", "hash": {"hash_func": "WeightedCh3", "weights": weights}}, {}),
        ({"type": "PoolRoute", "pool": "A", "weights": weights}, {}),
        (
            {"type": "HashRoute", "children": "Pool|A", "hash_func": "WeightedCh3", "weights": weights},
            {},
        ),
    ]
    seen = []
    for route, pools in routes:
        seen.append(spread(mcrouter(route, servers, **pools), servers, KEYS))
        for server in servers:
            with server.raw() as direct:
                assert direct.ask(b"flush_all\r\n") == b"OK\r\n"
    assert all(places == seen[0] for places in seen)
    found, total = shares(seen[0], 4), sum(weights)
    assert all(abs(share - weight / total) < 0.04 for share, weight in zip(found, weights)), found


def test_equal_loads_spread_keys_evenly(memcached, mcrouter):
    servers = memcached.several(8)
    router = mcrouter({"type": "LoadBalancerRoute", "children": "Pool|A"}, servers)
    found = shares(spread(router, servers, KEYS), 8)
    assert all(abs(share - 1 / 8) < 0.02 for share in found), found


def test_keys_with_the_same_first_parts_share_a_server(memcached, mcrouter):
    servers = memcached.several(4)
    route = {"type": "KeyParseRoute", "target": "PoolRoute|A", "num_routing_parts": 2, "delimiter": ":"}
    keys = [f"a:{group}:{number}" for group in range(20) for number in range(5)]
    places = spread(mcrouter(route, servers), servers, keys)
    groups = [places[start : start + 5] for start in range(0, 100, 5)]
    assert all(group == [group[0]] * 5 for group in groups)
    assert len({group[0][0] for group in groups}) > 1


def test_hash_stops_are_refused_where_they_are_not_allowed(memcached, mcrouter):
    route = {"type": "HashStopAllowListRoute", "target": "PoolRoute|A", "prefixes": ["good"]}
    with mcrouter(route, memcached.several(2)).raw() as client:
        client.set("good|#|x", "1")
        client.set("bad", "1")
        assert client.ask(b"set bad|#|x 0 0 1\r\n1\r\n") == b"SERVER_ERROR Hash stop not permited\r\n"
        assert client.ask(b"get bad|#|x\r\n") == b"SERVER_ERROR Hash stop not permited\r\n"


def test_all_requests_of_a_client_go_to_one_server_by_its_address(memcached, mcrouter):
    servers = memcached.several(3)
    places = []
    for offset in range(3):
        route = {"type": "OriginalClientHashRoute", "children": "Pool|A", "offset": offset}
        router = mcrouter(route, servers, "--retain-source-ip")
        found = spread(router, servers, [f"k{offset}{number}" for number in range(50)])
        assert found == [found[0]] * 50
        places.append(found[0][0])
    assert sorted(places) == [0, 1, 2]


def test_latest_uses_one_server_until_it_fails(memcached, mcrouter):
    servers = memcached.several(4)
    route = {"type": "LatestRoute", "children": "Pool|A", "failover_count": 2}
    router = mcrouter(route, servers, "--server-timeout=200")
    places = spread(router, servers, [f"a{number}" for number in range(50)])
    assert places == [places[0]] * 50
    servers[places[0][0]].kill()
    left = [server for number, server in enumerate(servers) if number != places[0][0]]
    again = spread(router, left, [f"b{number}" for number in range(50)])
    assert again == [again[0]] * 50 and len(again[0]) == 1
    left[again[0][0]].kill()
    with router.raw() as client:
        assert client.ask(b"get b1\r\n").startswith(b"SERVER_ERROR ")


def test_error_among_servers_answers_for_its_keys(memcached, mcrouter):
    servers = memcached.several(2)
    pool = {"servers": [servers[0].address, "ErrorRoute|out of service", servers[1].address]}
    router = mcrouter("PoolRoute|M", servers, M=pool)
    answers = {}
    with router.raw() as client:
        for number in range(300):
            answer = client.ask(f"set k{number} 0 0 1\r\n1\r\n".encode())
            answers[answer] = answers.get(answer, 0) + 1
    assert set(answers) == {b"STORED\r\n", b"SERVER_ERROR out of service\r\n"}
    assert 50 < answers[b"SERVER_ERROR out of service\r\n"] < 150, answers


@pytest.mark.parametrize(
    "route, answer",
    [
        ("ErrorRoute|reject", b"SERVER_ERROR reject\r\n"),
        ({"type": "ErrorRoute", "result": "mc_res_busy"}, b"SERVER_ERROR 307 busy\r\n"),
        ({"type": "ErrorRoute", "result": "bad_key"}, b"CLIENT_ERROR bad key\r\n"),
        ({"type": "ErrorRoute", "result": "tko", "response": "so"}, b"SERVER_ERROR so\r\n"),
        ("PoolRoute|E", b"SERVER_ERROR HashRoute with empty children, name: E\r\n"),
    ],
    ids=["text", "busy", "bad-key", "text-and-result", "empty-pool"],
)
def test_errors_are_answered_in_the_words_of_mcrouter(mcrouter, route, answer):
    with mcrouter(route, (), E={"servers": []}).raw() as client:
        assert client.ask(b"get k\r\n") == answer
        assert client.ask(b"set k 0 0 1\r\n1\r\n") == answer
