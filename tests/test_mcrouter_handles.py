"""mcrouter's route handles, with real servers behind its front door."""

import contextlib
import time

import pytest

from harness import until
from harness.mcrouter import migrate, stored
from harness.servers import answering

pytestmark = pytest.mark.either_io


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
        assert client.ask(b"set bad|#|x 0 0 1\r\n1\r\n") == b"SERVER_ERROR Hash stop not permitted\r\n"
        assert client.ask(b"get bad|#|x\r\n") == b"SERVER_ERROR Hash stop not permitted\r\n"


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


def test_keys_move_in_four_phases(memcached, mcrouter):
    old, new = memcached.several(2)
    start = int(time.time()) + 4
    router = mcrouter(migrate(start, 4, "A", "B"), [old], B={"servers": [new.address]})
    with router.raw() as client, old.raw() as first, new.raw() as second:

        def where(key):
            client.set(key, "1")
            return [first.get(key) is not None, second.get(key) is not None]

        def both_lack(key):
            first.set(key, "1")
            second.set(key, "1")
            client.ask(f"delete {key}\r\n".encode())
            return [first.get(key) is None, second.get(key) is None]

        assert where("before") == [True, False] and both_lack("x") == [True, False]
        time.sleep(max(0, start + 0.5 - time.time()))
        assert where("begun") == [True, False] and both_lack("x") == [True, True]
        time.sleep(max(0, start + 8.5 - time.time()))
        assert where("done") == [False, True] and both_lack("x") == [False, True]


def test_split_shards_keep_their_values_and_lose_all_copies_with_a_delete(memcached, mcrouter):
    (server,) = servers = memcached.several(1)
    splits = {"1": 1, "2": 2, "3": 3, "27": 27, "9": {"new_split_size": 2, "split_start": 1}}
    route = {"type": "PoolRoute", "pool": "A", "shard_splits": splits}
    with mcrouter(route, servers).raw() as client, server.raw() as direct:
        for shard in ("1", "2", "3", "27", "4"):
            names = [f"p:{shard}{letters}:k" for letters in ("", "aa", "ba", "ca", "za")]
            client.set(f"p:{shard}:k", "5")
            assert sum(direct.get(name) is not None for name in names) <= 1
            assert client.ask(f"incr p:{shard}:k 2\r\n".encode()) == b"7\r\n"
            assert client.get(f"p:{shard}:k") == b"7"
        # A delete reaches every copy, whichever host it was stored by.
        for name in ("p:3:k", "p:3aa:k", "p:3ba:k", "p:3ca:k"):
            direct.set(name, "1")
        assert client.ask(b"delete p:3:k\r\n") == b"DELETED\r\n"
        until(lambda: direct.get("p:3ba:k") is None, "the copies are gone")
        assert direct.get("p:3aa:k") is None and direct.get("p:3ca:k") == b"1"


def test_split_keys_have_a_copy_for_each_host(memcached, mcrouter):
    (server,) = servers = memcached.several(1)
    route = {"type": "KeySplitRoute", "destination": "PoolRoute|A", "replicas": 2, "all_sync": True}
    with mcrouter(route, servers).raw() as client, server.raw() as direct:
        client.set("k|#|x", "1")
        until(lambda: direct.get("k|#|x") == direct.get("k::1|#|x") == b"1", "both copies are there")
        assert client.get("k|#|x") == b"1"
        assert client.ask(b"delete k|#|x\r\n") == b"DELETED\r\n"
        until(lambda: direct.get("k|#|x") is direct.get("k::1|#|x") is None, "both copies are gone")


@pytest.mark.parametrize(
    "latency, least",
    [
        ({"before_latency_ms": 200}, 0.2),
        ({"after_latency_ms": 200}, 0.2),
        ({"before_latency_ms": 100, "after_latency_ms": 200}, 0.3),
        ({"total_latency_ms": 300, "before_latency_ms": 100}, 0.3),
        ({"total_latency_percentile_ms": [[50, 200], [99, 250]]}, 0.2),
    ],
    ids=["before", "after", "both", "total", "percentiles"],
)
def test_latency_is_injected_before_after_and_up_to_a_total(memcached, mcrouter, latency, least):
    route = {"type": "LatencyInjectionRoute", "child": "PoolRoute|A", **latency}
    with mcrouter(route, memcached.several(1)).raw() as client:
        begun = time.monotonic()
        client.set("k", "1")
        assert client.get("k") == b"1"
        assert 2 * least <= time.monotonic() - begun < 2 * least + 1


@pytest.mark.parametrize(
    "keys, asked, sent",
    [
        ({"ensure_key_prefix": "a:"}, "k", "a:k"),
        ({"ensure_key_prefix": "a:"}, "a:k", "a:k"),
        ({"ensure_key_prefix": "a:", "modify_inplace": True}, "b:k", "a:k"),
        ({"ensure_key_prefix": "a:", "modify_inplace": True}, "k", "a:k"),
        ({"ensure_key_prefix": "a:", "replace_key_prefix": "b:"}, "b:k", "a:k"),
        ({"ensure_key_prefix": "a:", "replace_key_prefix": "b:"}, "k", "a:k"),
        ({"replace_key_prefix": "b:"}, "b:k", "k"),
        ({"set_key_suffix": ":z"}, "k", "k:z"),
        ({"ensure_key_prefix": "a:", "replace_key_prefix": "", "set_key_suffix": ":z"}, "k", "a:k:z"),
    ],
)
def test_keys_are_modified_on_their_way(memcached, mcrouter, keys, asked, sent):
    (server,) = servers = memcached.several(1)
    route = {"type": "ModifyKeyRoute", "target": "PoolRoute|A", **keys}
    with mcrouter(route, servers).raw() as client:
        client.set(asked, "1")
        assert server.get(sent) == b"1"
        assert client.get(asked) == b"1"


def test_key_that_a_route_makes_empty_or_too_long_is_answered_with_the_reason(memcached, mcrouter):
    route = {"type": "ModifyKeyRoute", "target": "PoolRoute|A", "replace_key_prefix": "b:"}
    with mcrouter(route, memcached.several(1)).raw() as client:
        answer = b"SERVER_ERROR ModifyKeyRoute: invalid key: invalid key: missing\r\n"
        assert client.ask(b"get b:\r\n") == answer
    route = {"type": "ModifyKeyRoute", "target": "PoolRoute|A", "set_key_suffix": "x" * 20}
    with mcrouter(route, memcached.several(1)).raw() as client:
        answer = b"SERVER_ERROR ModifyKeyRoute: invalid key: invalid key: too long\r\n"
        assert client.ask(b"get %b\r\n" % (b"k" * 240)) == answer


# The keys of f0..f99 whose hash lies in the first tenth.
TENTH = [5, 7, 13, 33, 43, 46, 58, 71, 83, 85, 89, 91, 93]


def test_shadows_get_the_keys_of_their_range_exactly(memcached, mcrouter):
    main, other, shadow, second = memcached.several(4)
    keys = [f"f{number}" for number in range(100)]
    pools = {"S": {"servers": [shadow.address]}, "T": {"servers": [second.address]}}
    shadows = [
        {"target": "PoolRoute|S", "key_fraction_range": [0, 0.1]},
        {"target": "PoolRoute|T", "keys_to_shadow": ["f1", "f2"]},
        {"target": "PoolRoute|nowhere"},
    ]
    route = {"type": "PoolRoute", "pool": "A", "shadows": shadows}
    spread(mcrouter(route, [main, other], **pools), [main, other], [*keys, "f1|#|x"])
    expected = [f"f{number}" for number in TENTH]
    until(lambda: stored(shadow, keys) == expected, "the first tenth is shadowed")
    until(lambda: stored(second, [*keys, "f1|#|x"]) == ["f1", "f2", "f1|#|x"], "the listed keys are shadowed")


def test_shadows_of_a_range_of_servers_get_the_keys_of_these_alone(memcached, mcrouter):
    first, second, shadow = memcached.several(3)
    keys = [f"k{number}" for number in range(100)]
    shadows = [{"target": "PoolRoute|S", "index_range": [1, 2]}]
    route = {"type": "PoolRoute", "pool": "A", "shadows": shadows}
    router = mcrouter(route, [first, second], S={"servers": [shadow.address]})
    places = spread(router, [first, second], keys)
    expected = [key for key, place in zip(keys, places) if place == [1]]
    assert 20 < len(expected) < 80
    until(lambda: stored(shadow, keys) == expected, "the second server is shadowed")


def test_shadow_that_is_dead_harms_no_request(memcached, mcrouter):
    main, shadow = memcached.several(2)
    route = {"type": "PoolRoute", "pool": "A", "shadows": [{"target": "PoolRoute|S"}]}
    router = mcrouter(route, [main], S={"servers": [shadow.address]})
    shadow.kill()
    with router.raw() as client:
        for number in range(100):
            client.set(f"k{number}", "1")
            assert client.get(f"k{number}") == b"1"


def test_requests_over_the_rate_get_the_default_reply(memcached, mcrouter):
    rates = {"gets_rate": 5, "gets_burst": 5, "sets_rate": 1, "deletes_rate": 2}
    route = {"type": "PoolRoute", "pool": "A", "rates": rates}
    with mcrouter(route, memcached.several(1)).raw() as client:
        sets = [client.ask(b"set k 0 0 1\r\n1\r\n") for _ in range(3)]
        assert sets == [b"STORED\r\n", b"NOT_STORED\r\n", b"NOT_STORED\r\n"]
        assert 5 <= [client.get("k") for _ in range(50)].count(b"1") <= 6
        deletes = [client.ask(b"delete x\r\n") for _ in range(3)]
        assert deletes == [b"NOT_FOUND\r\n"] * 3
        time.sleep(1.1)
        assert client.ask(b"set k 0 0 1\r\n1\r\n") == b"STORED\r\n"


def test_limited_pool_serves_all_requests_of_many_clients(memcached, mcrouter):
    route = {"type": "PoolRoute", "pool": "A", "max_outstanding": 2}
    router = mcrouter(route, memcached.several(2))
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(router.raw()) for _ in range(20)]
        for number, client in enumerate(clients):
            for key in range(50):
                client.send(f"set k{number}-{key} 0 0 1\r\n1\r\nget k{number}-{key}\r\n".encode())
        for number, client in enumerate(clients):
            for key in range(50):
                lines = [client.line() for _ in range(4)]
                value = b"VALUE k%d-%d 0 1\r\n" % (number, key)
                assert lines == [b"STORED\r\n", value, b"1\r\n", b"END\r\n"]


def test_blackholed_keys_never_reach_the_servers(memcached, mcrouter):
    (server,) = servers = memcached.several(1)
    policies = {"key": [{"op": "equals", "value": "bad"}, {"op": "equals", "value": "worse"}]}
    route = {"type": "BlackholeRoute", "default": "PoolRoute|A", "policies": policies}
    with mcrouter(route, servers).raw() as client:
        client.set("good", "1")
        assert client.ask(b"set bad 0 0 1\r\n1\r\n") == b"NOT_STORED\r\n"
        assert client.get("worse") is None
    assert stored(server, ["good", "bad", "worse"]) == ["good"]


def failing_over(rules=None):
    return {"type": "FailoverRoute", "children": ["PoolRoute|A", "PoolRoute|B"], **(rules or {})}


def test_failovers_are_limited_and_those_from_a_dead_server_are_free(memcached, mcrouter, scripted):
    dead, good = memcached.several(2)
    busy = scripted(answering(b"SERVER_ERROR 307 busy\r\n"))
    good.set("k", "1")
    limit = {"failover_limit": {"rate": 0.2, "burst": 1}}
    router = mcrouter(failing_over(limit), [busy], B={"servers": [good.address]})
    hit, error = b"1", b"SERVER_ERROR 307 busy"
    with router.raw() as client:
        answers = []
        for _ in range(12):
            client.send(b"get k\r\n")
            line = client.line().strip()
            answers.append(line if line == error else [client.line(), client.line()][0].strip())
    assert answers == [hit, *[error] * 4, hit, *[error] * 4, hit, error]
    dead.kill()
    router = mcrouter(failing_over(limit), [dead], B={"servers": [good.address]})
    with router.raw() as client:
        assert [client.get("k") for _ in range(12)] == [hit] * 12


def test_requests_that_fail_over_are_tagged(memcached, mcrouter):
    dead, good = memcached.several(2)
    dead.kill()
    router = mcrouter(failing_over({"failover_tag": True}), [dead], B={"servers": [good.address]})
    with router.raw() as client:
        client.set("k|#|x", "1")
        client.set("l", "1")
        assert client.get("k|#|x") == b"1"
    assert stored(good, ["k|#|x", "k|#|x:failover=1", "l"]) == ["k|#|x:failover=1", "l"]


def test_second_request_finds_the_live_server_by_its_failures(memcached, mcrouter):
    servers = memcached.several(4)
    servers[2].set("k", "1")
    for dead in (0, 1, 3):
        servers[dead].kill()
    policy = {"failover_policy": {"type": "LeastFailuresPolicy", "max_tries": 2}}
    router = mcrouter({"type": "FailoverRoute", "children": "Pool|A", **policy}, servers)
    with router.raw() as client:
        assert client.ask(b"get k\r\n").startswith(b"SERVER_ERROR AsyncSocketException")
        assert client.get("k") == b"1"


@pytest.mark.parametrize("policy", ["DeterministicOrderPolicy", "RendezvousPolicy"])
def test_failover_within_a_pool_hides_dead_servers(memcached, mcrouter, policy):
    servers = memcached.several(5)
    tags = [f"s{number}" for number in range(5)]
    pool = {
        "servers": [server.address for server in servers],
        "failure_domains": [1, 1, 2, 2, 3],
        "tags": tags,
    }
    keys = {
        "DeterministicOrderPolicy": {"max_tries": 4, "max_error_tries": 3, "enable_failure_domains": True},
        "RendezvousPolicy": {"tags": tags},
    }
    route = {
        "type": "SaltedFailoverRoute",
        "pool": "S",
        "hash": {"hash_func": "Rendezvous"} if policy == "RendezvousPolicy" else "Ch3",
        "failover_policy": {"type": policy, **keys[policy]},
    }
    router = mcrouter(route, servers, "--timeouts-until-tko=1", S=pool)
    with router.raw() as client:
        for number in (0, 2):
            servers[number].kill()
            for key in range(50):
                client.set(f"k{key}", "1")
                assert client.get(f"k{key}") == b"1"


def test_value_that_failed_over_expires_after_the_failover_expiry(memcached, mcrouter):
    dead, good = memcached.several(2)
    dead.kill()
    route = {
        "type": "FailoverWithExptimeRoute",
        "normal": "PoolRoute|A",
        "failover": "PoolRoute|B",
        "failover_exptime": 2,
        "failover_errors": {"gets": ["tko", "connect_error"], "updates": ["tko", "connect_error"]},
    }
    router = mcrouter(route, [dead], B={"servers": [good.address]})
    with router.raw() as client:
        client.set("k", "1")
        assert client.get("k") == b"1"
        time.sleep(3.1)
        assert client.get("k") is None
        # Deletes have their own list of errors, which is the usual one.
        assert client.ask(b"delete k\r\n") == b"NOT_FOUND\r\n"
