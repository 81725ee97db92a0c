"""Shadows of mcrouter: exactly which requests are copied to which other servers, and that nobody notices."""

import time

import pytest

from harness import until
from harness.mcrouter import migrate
from harness.servers import answering

pytestmark = pytest.mark.either_io

KEYS = [f"f{number}" for number in range(100)]

TENTH = [f"f{number}" for number in (5, 7, 13, 33, 43, 46, 58, 71, 83, 85, 89, 91, 93)]
"""The keys whose hash lies in [0, 0.1]."""

FIFTH_TENTH = [f"f{number}" for number in (9, 10, 20, 26, 32, 34, 42, 47, 54, 63, 64, 98)]
"""The keys whose hash lies in [0.4, 0.5]."""


def stored(server, keys=KEYS):
    with server.raw() as direct:
        return [key for key in keys if direct.get(key) is not None]


def set_all(router, keys=KEYS):
    with router.raw() as client:
        for key in keys:
            client.set(key, "1")
        # A request behind them shows that all copies are sent: one connection carries them in order.
        for key in keys:
            assert client.get(key) == b"1"


def pool_route(*shadows):
    return {"type": "PoolRoute", "pool": "A", "shadows": list(shadows)}


def by_shadow_route(*shadows):
    """The same by a handle around the servers, under a hash."""
    shadowed = {"type": "ShadowRoute", "children": "Pool|A", "shadows": list(shadows)}
    return {"type": "HashRoute", "children": shadowed}


FORMS = pytest.mark.parametrize("form", [pool_route, by_shadow_route], ids=["pool-route", "shadow-route"])


@FORMS
def test_ranges_of_keys_are_exact(memcached, routed, form):
    main, first, second, everything, nothing = memcached.several(5)
    route = form(
        {"target": "PoolRoute|first", "index_range": [0, 0], "key_fraction_range": [0, 1]},
        {"target": "PoolRoute|first", "key_fraction_range": [0, 0.1]},
        {"target": "PoolRoute|second", "index_range": [0, 1], "key_fraction_range": [0.4, 0.5]},
        {"target": "PoolRoute|everything"},
        {"target": "PoolRoute|nothing", "index_range": [1, 5]},
    )
    pools = {"first": [first], "second": [second], "everything": [everything], "nothing": [nothing]}
    set_all(routed(route, {"A": [main], **pools}))
    until(lambda: stored(everything) == KEYS, "all keys are shadowed")
    until(lambda: stored(first) == TENTH and stored(second) == FIFTH_TENTH, "the ranges are shadowed")
    assert stored(nothing) == []
    # Reads are shadowed as well.
    assert everything.stat("cmd_get") >= 100 and nothing.stat("cmd_get") == 100


@FORMS
def test_ranges_of_servers_are_exact(memcached, routed, form):
    servers, shadow, other = memcached.several(3), memcached(), memcached()
    route = form(
        {"target": "PoolRoute|shadow", "index_range": [1, 2]},
        {"target": "PoolRoute|other", "index_range": [0, 2], "key_fraction_range": [0, 0.1]},
    )
    set_all(routed(route, {"A": servers, "shadow": [shadow], "other": [other]}))
    on = [stored(server) for server in servers]
    assert all(on) and sum(map(len, on)) == 100
    until(lambda: stored(shadow) == on[1], "the second server is shadowed")
    both = [key for key in TENTH if key not in on[2]]
    until(lambda: stored(other) == both, "a range of keys of the first two is shadowed")


@FORMS
def test_specific_keys_are_shadowed_with_whatever_is_behind_their_hash_stop(memcached, routed, form):
    main, shadow = memcached.several(2)
    route = form({"target": "PoolRoute|B", "keys_to_shadow": ["f1", "f2"]})
    keys = ["f1|#|id=1", "f2|#|", "f2", "f3", "f3|#|f1", "f11", "f", "f1|#"]
    set_all(routed(route, {"A": [main], "B": [shadow]}), keys)
    expected = ["f1|#|id=1", "f2|#|", "f2"]
    until(lambda: stored(shadow, keys) == expected, "the listed keys are shadowed")
    assert stored(main, keys) == keys


def test_every_command_is_shadowed_and_the_answer_is_the_pools(memcached, routed):
    main, shadow = memcached.several(2)
    with routed(pool_route({"target": "PoolRoute|B"}), {"A": [main], "B": [shadow]}).raw() as client:
        shadow.set("k", "shadow")
        assert client.get("k") is None
        assert client.ask(b"delete k\r\n") == b"NOT_FOUND\r\n"
        until(lambda: shadow.get("k") is None, "the delete is copied")
        client.set("k", "1")
        assert client.ask(b"append k 0 0 1\r\n0\r\n") == b"STORED\r\n"
        assert client.ask(b"incr k 5\r\n") == b"15\r\n"
        until(lambda: shadow.get("k") == b"15", "all changes are copied, in order")
        assert client.ask(b"touch k -1\r\n") == b"TOUCHED\r\n"
        until(lambda: shadow.get("k") is None, "the touch is copied")


def test_one_request_is_shadowed_by_several_targets(memcached, routed):
    main, first, second, third = memcached.several(4)
    route = pool_route(
        {"target": "PoolRoute|first"},
        {"target": {"type": "AllSyncRoute", "children": ["PoolRoute|second", "PoolRoute|third"]}},
        {"target": "ErrorRoute|nobody hears this"},
    )
    pools = {"A": [main], "first": [first], "second": [second], "third": [third]}
    with routed(route, pools).raw() as client:
        client.set("k", "1")
        until(lambda: [s.get("k") for s in (first, second, third)] == [b"1"] * 3, "all have it")
        assert client.get("k") == b"1"


def test_a_wrong_shadow_is_left_out_and_the_others_stay(memcached, routed):
    main, shadow = memcached.several(2)
    wrong = [
        5,
        {},
        {"target": "PoolRoute|nowhere"},
        {"target": "PoolRoute|B", "key_fraction_range": [0, 1.5]},
        {"target": "PoolRoute|B", "key_fraction_range": "x"},
        {"target": "PoolRoute|B", "index_range": [1]},
    ]
    route = pool_route(*wrong, {"target": "PoolRoute|B", "key_fraction_range": [0, 0.1]})
    router = routed(route, {"A": [main], "B": [shadow]})
    set_all(router)
    until(lambda: stored(shadow) == TENTH, "the good entry is served")
    assert router.log().count("this shadow is left out") == len(wrong)


def test_a_shadow_that_is_dead_frozen_or_wrong_is_not_noticed(memcached, scripted, routed):
    main, dead, frozen = memcached.several(3)
    dead.kill()
    frozen.freeze()
    wrong = scripted(answering(b"nonsense\r\n"))
    shadows = [{"target": f"PoolRoute|{name}"} for name in ("dead", "frozen", "wrong")]
    pools = {"A": [main], "dead": [dead], "frozen": [frozen], "wrong": [wrong]}
    set_all(routed(pool_route(*shadows), pools, "--server-timeout=30000"))
    assert stored(main) == KEYS
    # All requests are answered, and their copies are still under way: a time-out would have lost them.
    frozen.thaw()
    until(lambda: stored(frozen) == KEYS, "the frozen shadow gets every copy that nobody has waited for")


def test_a_migration_is_shadowed_in_every_phase(memcached, routed):
    old, new, old_shadow, new_shadow = memcached.several(4)
    start = int(time.time()) + 4
    migration = {"type": "MigrateRoute", "start_time": start, "interval": 2}
    migration["from"] = {**pool_route({"target": "PoolRoute|old_shadow"}), "pool": "old"}
    migration["to"] = {**pool_route({"target": "PoolRoute|new_shadow"}), "pool": "new"}
    servers = {"old": old, "new": new, "old_shadow": old_shadow, "new_shadow": new_shadow}
    router = routed(migration, {name: [server] for name, server in servers.items()})

    def reached(name):
        """The servers that get a set key."""
        with router.raw() as client:
            client.set(name, "1")
        found = [each for each, server in servers.items() if server.get(name)]
        return found if len(found) == 2 else None

    assert until(lambda: reached("before"), "a copy arrives") == ["old", "old_shadow"]
    time.sleep(max(0.0, start + 4.2 - time.time()))
    assert until(lambda: reached("after"), "a copy arrives") == ["new", "new_shadow"]


def test_a_shadow_after_a_migration_gets_what_both_pools_get(memcached, routed):
    old, new, shadow = memcached.several(3)
    start = int(time.time()) + 4
    shadows = [{"target": "PoolRoute|shadow", "key_fraction_range": [0, 0.1]}]
    route = {"type": "ShadowRoute", "children": migrate(start, 2), "shadows": shadows}
    router = routed(route, {"old": [old], "new": [new], "shadow": [shadow]})
    set_all(router)
    until(lambda: stored(shadow) == TENTH, "the range is shadowed")
    assert stored(old) == KEYS and stored(new) == []
    with shadow.raw() as direct:
        direct.ask(b"flush_all\r\n")
    time.sleep(max(0.0, start + 4.2 - time.time()))
    set_all(router)
    until(lambda: stored(shadow) == TENTH, "the range is shadowed")
    assert stored(new) == KEYS


def test_shadow_pools_come_from_a_file_with_constants_in_it(memcached, routed, tmp_path):
    main, shadow = memcached.several(2)
    ports = [server.address.rsplit(":", 1)[1] for server in (main, shadow)]
    for name, constant in (("main", "MAIN"), ("shadow", "SHADOW")):
        file = tmp_path / f"{name}.json"
        file.write_text(f'{{"servers": ["127.0.0.1:%{constant}%",], // its port\n}}')
    pools = {"A": f"file:{tmp_path}/main.json", "B": f"file:{tmp_path}/shadow.json"}
    shadows = {"target": "PoolRoute|B", "key_fraction_range": [0, 0.1]}
    params = f"--config-params=MAIN:{ports[0]},SHADOW:{ports[1]}"
    set_all(routed(pool_route(shadows), pools, params))
    until(lambda: stored(shadow) == TENTH, "the range is shadowed")
    assert stored(main) == KEYS
