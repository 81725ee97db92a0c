"""Failover between migrating pools, in the four phases of a migration."""

import contextlib
import time

import pytest

from harness.mcrouter import migrate

pytestmark = pytest.mark.either_io

LEAD = 6
"""Seconds until a migration starts: the router is up by then."""

INTERVAL = 8

HASHES = {"key0": 75843317, "key1": 1197688624, "key2": 316999207, "abc:12:def": 1297931842}
"""Keys whose hashes differ modulo the interval: each moves at another second."""

CLOSE = 0.2
"""Seconds around the beginning of a phase in which nothing is asserted."""


def migrating(name, start):
    return migrate(start, INTERVAL, f"{name}_old", f"{name}_new")


def plain(start):
    return {"type": "FailoverRoute", "children": [migrating("wild", start), migrating("gutter", start)]}


def with_exptime(start):
    return {
        "type": "FailoverWithExptimeRoute",
        "normal": migrating("wild", start),
        "failover": migrating("gutter", start),
        "failover_exptime": 100,
    }


NAMES = ["wild_old", "wild_new", "gutter_old", "gutter_new"]


@pytest.mark.heavy  # it must see each phase, which has its seconds
@pytest.mark.parametrize("route_at, is_dead", [(plain, False), (with_exptime, True)], ids=["alive", "dead"])
def test_keys_go_from_old_to_new_pools_in_four_phases(memcached, routed, route_at, is_dead):
    servers = dict(zip(NAMES, memcached.several(4)))
    if is_dead:
        servers["wild_old"].kill()
        servers["wild_new"].kill()
    old, new = NAMES[2:] if is_dead else NAMES[:2]
    start = int(time.time()) + LEAD
    pools = {name: [server] for name, server in servers.items()}
    # A pool that keeps its failed deletes hides the failure from the route above it.
    router = routed(route_at(start), pools, "--asynclog-disable")
    seen = set()
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(router.raw())
        alive = NAMES[2:] if is_dead else NAMES
        direct = {name: stack.enter_context(servers[name].raw()) for name in alive}

        def having(key):
            return {name for name in alive if direct[name].get(key) is not None}

        def check(key):
            begun = time.time()
            for server in direct.values():
                server.ask(b"flush_all\r\n")
            client.set(key, "1")
            stored, value = having(key), client.get(key)
            for server in direct.values():
                server.set(key, "1")
            assert client.ask(f"delete {key}\r\n".encode()) == b"DELETED\r\n"
            lost = set(alive) - having(key)
            # Before the start, until the key moves, until the interval of moves is over, and then.
            moves = start + INTERVAL + HASHES[key] % INTERVAL
            bounds = [start, moves, start + 2 * INTERVAL]
            phases = {sum(at > bound for bound in bounds) for at in (begun - CLOSE, time.time() + CLOSE)}
            if len(phases) == 1:
                [phase] = phases
                expected = [({old}, {old}), ({old}, {old, new}), ({new}, {old, new}), ({new}, {new})]
                assert (stored, lost, value) == (*expected[phase], b"1"), (key, phase)
                seen.add((key, phase))

        while time.time() < start + 2 * INTERVAL + 2 * CLOSE:
            for key in HASHES:
                check(key)
        for key in HASHES:
            check(key)
    assert seen >= {(key, 3) for key in HASHES}
    assert {phase for _, phase in seen} == {0, 1, 2, 3}
