"""Split shards of mcrouter: which copies a shard has, and which of them a command reaches."""

import time

import pytest

from harness import until

pytestmark = pytest.mark.either_io


def letters(number):
    """What stands behind the shard in the name of this copy."""
    return "" if number == 0 else chr(ord("a") + (number - 1) % 26) + chr(ord("a") + (number - 1) // 26)


def copies(shard, count, rest="k|#|x"):
    """The names of all copies of one key, and one more, which is no copy."""
    return [f"p:{shard}{letters(number)}:{rest}" for number in range(count + 1)]


SPLITS = {"1": 1, "2": 2, "3": 3, "26": 26, "27": 27, "28": 28, "54": 54}

FORMS = {
    "PoolRoute": {"type": "PoolRoute", "pool": "A", "shard_splits": SPLITS},
    "ShardSplitRoute": {"type": "ShardSplitRoute", "target": "PoolRoute|A", "shard_splits": SPLITS},
}


def filled(server, names):
    """Gives each copy a value of its own."""
    with server.raw() as direct:
        for number, name in enumerate(names):
            direct.set(name, str(number * 10))


def left(server, names):
    with server.raw() as direct:
        return [number for number, name in enumerate(names) if direct.get(name) is not None]


@pytest.mark.parametrize("route", FORMS.values(), ids=FORMS.keys())
def test_a_host_uses_one_copy_and_a_delete_reaches_all(memcached, routed, route):
    server = memcached()
    with routed(route, {"A": [server]}).raw() as client:
        for shard, count in SPLITS.items():
            key, names = f"p:{shard}:k|#|x", copies(shard, count)
            filled(server, names)
            own = int(client.get(key)) // 10
            assert own < count
            assert client.get(key) == b"%d" % (own * 10), "it stays the same"
            assert client.ask(f"incr {key} 1\r\n".encode()) == b"%d\r\n" % (own * 10 + 1)
            client.set(key, "x")
            values = [server.get(name) for name in names]
            expected = [b"%d" % (number * 10) for number in range(count + 1)]
            assert values == expected[:own] + [b"x"] + expected[own + 1 :]
            assert client.ask(f"delete {key}\r\n".encode()) == b"DELETED\r\n"
            until(lambda: left(server, names) == [count], "every copy is deleted, and nothing else")


def test_copies_of_all_shards_are_those_of_one_host_number(memcached, routed):
    """The copy is the host's number modulo their count, so that the copies of several counts agree."""
    server = memcached()
    splits = {"2": 2, "3": 3, "6": 6, "12": 12}
    route = {"type": "PoolRoute", "pool": "A", "shard_splits": splits}
    with routed(route, {"A": [server]}).raw() as client:
        own = {}
        for shard, count in splits.items():
            filled(server, copies(shard, count))
            own[count] = int(client.get(f"p:{shard}:k|#|x")) // 10
    assert {count: own[12] % count for count in own} == own


def test_other_keys_are_left_alone(memcached, routed):
    server = memcached()
    with routed(FORMS["PoolRoute"], {"A": [server]}).raw() as client:
        keys = ["k", "p:4:k", "p:27", "p:27aa:k", "p::27:k", "27:k", "p:x|#|:27:k", "p:027:k"]
        for key in keys:
            client.set(key, "1")
            assert server.get(key) == b"1", key
            assert client.ask(f"delete {key}\r\n".encode()) == b"DELETED\r\n"


def changing(start, period=0, **keys):
    return {
        "old_split_size": 1,
        "new_split_size": 5,
        "split_start": start,
        "migration_period": period,
        **keys,
    }


PHASES = {
    "not begun": (changing(int(time.time()) + 100_000), {0}),
    "begun": (changing(int(time.time()) - 50_000, 100_000), set(range(5))),
    "over": (changing(1), set(range(5))),
}


@pytest.mark.parametrize("split, own", PHASES.values(), ids=PHASES.keys())
@pytest.mark.parametrize("fanout", [None, False, True])
def test_deletes_of_a_changing_shard_reach_all_copies_only_if_asked_for(
    memcached, routed, split, own, fanout
):
    server = memcached()
    keys = {} if fanout is None else {"fanout_deletes": fanout}
    route = {"type": "PoolRoute", "pool": "A", "shard_splits": {"7": {**split, **keys}}}
    with routed(route, {"A": [server]}).raw() as client:
        names = copies("7", 5)
        filled(server, names)
        used = int(client.get("p:7:k|#|x")) // 10
        assert used in own
        assert client.ask(b"incr p:7:k|#|x 1\r\n") == b"%d\r\n" % (used * 10 + 1)
        assert client.ask(b"delete p:7:k|#|x\r\n") == b"DELETED\r\n"
        kept = [5] if fanout else [number for number in range(6) if number != used]
        until(lambda: left(server, names) == kept, "the copies are deleted")
        time.sleep(0.1)
        assert left(server, names) == kept


def test_the_answer_to_a_delete_is_that_of_the_first_copy(memcached, routed):
    server = memcached()
    with routed(FORMS["PoolRoute"], {"A": [server]}).raw() as client:
        server.set("p:3aa:k", "1")
        assert client.ask(b"delete p:3:k\r\n") == b"NOT_FOUND\r\n"
        until(lambda: server.get("p:3aa:k") is None, "the second copy is deleted")


def test_an_option_leaves_shards_whole(memcached, routed):
    server = memcached()
    option = "--disable-shard-split-route"
    with routed(FORMS["PoolRoute"], {"A": [server]}, option).raw() as client:
        for shard, count in SPLITS.items():
            client.set(f"p:{shard}:k", "v")
            assert server.get(f"p:{shard}:k") == b"v"
            assert left(server, copies(shard, count, "k")) == [0]
