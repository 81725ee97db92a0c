"""Failover between migrating pools, in the four phases of a migration."""

import time

import pytest

from harness import until

pytestmark = pytest.mark.either_io

LEAD = 5
"""Seconds until a migration starts: the router is up by then."""

INTERVAL = 4


def migrating(name, start):
    return {
        "type": "MigrateRoute",
        "from": f"PoolRoute|{name}_old",
        "to": f"PoolRoute|{name}_new",
        "start_time": start,
        "interval": INTERVAL,
    }


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


@pytest.mark.parametrize("route_at", [plain, with_exptime], ids=["failover", "failover-with-exptime"])
@pytest.mark.parametrize("is_dead", [False, True], ids=["alive", "dead"])
def test_keys_go_from_old_to_new_pools_in_four_phases(memcached, routed, route_at, is_dead):
    servers = dict(zip(NAMES, memcached.several(4)))
    name = "gutter" if is_dead else "wild"
    if is_dead:
        servers["wild_old"].kill()
        servers["wild_new"].kill()
    alive = {each: server for each, server in servers.items() if each.startswith(name) or not is_dead}
    start = int(time.time()) + LEAD
    pools = {each: [server] for each, server in servers.items()}
    # A pool that keeps its failed deletes hides the failure from the route above it.
    router = routed(route_at(start), pools, "--asynclog-disable")

    def on(key):
        return {each for each, server in alive.items() if server.get(key) is not None}

    def clear():
        for server in alive.values():
            with server.raw() as direct:
                direct.ask(b"flush_all\r\n")

    def written(client, keys):
        """Where each key is set, and which servers lose it by a delete."""
        places, lost = [], set()
        clear()
        for key in keys:
            client.set(key, "1")
            assert client.get(key) == b"1"
            places.append(on(key))
            for server in alive.values():
                server.set(key, "1")
            assert client.ask(f"delete {key}\r\n".encode()) == b"DELETED\r\n"
            until(lambda: on(key) != alive.keys(), "it is deleted somewhere")
            lost.add(frozenset(alive.keys() - on(key)))
        return places, lost

    old, new = f"{name}_old", f"{name}_new"
    keys = [f"k{number}" for number in range(20)]
    with router.raw() as client:
        places, lost = written(client, keys)
        assert places == [{old}] * 20 and lost == {frozenset({old})}
        time.sleep(max(0.0, start + 0.2 - time.time()))
        places, lost = written(client, keys)
        assert time.time() < start + INTERVAL, "this machine is too slow for the test"
        # No key moves before the interval has passed; deletes go to both from the start on.
        assert places == [{old}] * 20 and lost == {frozenset({old, new})}
        # Each key has a moment of its own within the next interval.
        moved = set()

        def all_moved():
            clear()
            for key in keys:
                client.set(key, "1")
                found = on(key)
                assert found == {new} if key in moved else found in ({old}, {new}), (key, found)
                if found == {new}:
                    moved.add(key)
            halfway.append(len(moved))
            return len(moved) == len(keys)

        halfway = []
        until(all_moved, "all keys have moved")
        assert any(0 < count < len(keys) for count in halfway), halfway
        assert start + INTERVAL <= time.time()
        time.sleep(max(0.0, start + 2 * INTERVAL + 1.2 - time.time()))
        places, lost = written(client, keys)
        assert places == [{new}] * 20 and lost == {frozenset({new})}
