"""The memory of the near cache: about what it counts, a large reply once for all who read it, and nothing for
what a scan reads."""

import json
import random
import select
import subprocess
import time

import pytest

from harness import SOAK, ports, until
from harness.judge import BENCH
from harness.near_cache import Asked, clients, kept, kept_redis
from harness.origin import Origin, reply
from harness.raw import Raw
from harness.redis import array

pytestmark = pytest.mark.either_io

MIB = 1 << 20
LARGE = 1_500_000


def before_server(memcached, cleanup, body):
    """A configuration with a near cache whose values a server has."""
    server = memcached(item="4m")
    server.set("k", body)
    return kept([server], largest="2MiB")


def before_origin(memcached, cleanup, body):
    """The same with an HTTP origin."""
    origin = Origin(lambda _: reply(body))
    cleanup.callback(origin.stop)
    rules = [{"name": "all", "ttl": "60s", "largest": "2MiB"}]
    route = {"near": {"origin": f"http://{origin.address}/{{key}}", "rules": rules}}
    return {"workers": 4, "listeners": [{"address": ports.address(), "route": route}]}


@pytest.mark.parametrize("configuration", [before_server, before_origin])
def test_a_large_reply_is_there_once_for_all_who_read_it(memcached, proxima, cleanup, configuration):
    """Whoever stops reading takes no more than a socket's worth of it."""
    body = bytes(random.Random(1).randbytes(LARGE // 10)) * 10
    proxy = proxima(configuration(memcached, cleanup, body))
    each = 4
    with clients(proxy, 100) as readers:
        assert readers[0].get("k") == body
        before = proxy.memory()
        for reader in readers:
            reader.send(b"get k\r\n" * each)
        sockets = [reader.sock for reader in readers]
        until(lambda: len(select.select(sockets, [], [], 0)[0]) == len(readers), "each gets something")
        assert proxy.memory("VmHWM") - before < 64 * MIB, "of the 600 MB that they have asked for"
        whole = b"VALUE k 0 %d\r\n%b\r\nEND\r\n" % (LARGE, body)
        for reader in readers[:10]:
            assert reader.exactly(each * len(whole)) == each * whole
        for reader in readers[10:]:
            reader.abort()
        with proxy.raw() as client:
            assert client.get("k") == body


MEMORY = 1024 * MIB if SOAK else 64 * MIB


def traffic(proxy, chance, prefix, size, volume):
    """Sets keys at the pool, and reads them through the near cache by one connection after the other, until
    their values have so many bytes. `size` tells the size of each. Yields now and then."""
    while volume > 0:
        with Raw(proxy.config["listeners"][0]["address"]) as reader:
            with Raw(proxy.config["listeners"][1]["address"]) as writer:
                for _ in range(5):
                    keys = [b"%b%x" % (prefix, chance.getrandbits(128)) for _ in range(50)]
                    values = [b"v" * int(size(chance)) for _ in keys]
                    writer.send(b"".join(array("SET", *pair) for pair in zip(keys, values)))
                    assert writer.exactly(5 * len(keys)) == b"+OK\r\n" * len(keys)
                    reader.send(b"".join(array("GET", key) for key in keys))
                    for value in values:
                        reply = reader.exactly(len(str(len(value))) + 5 + len(value))
                        assert reply.count(b"v") == len(value)
                    volume -= sum(map(len, values))
                    yield


def at_rest(proxy):
    """Bytes of resident memory behind the time in which idle workers give back what they have freed. The
    program's own pages, which come in as it is used, do not count."""
    time.sleep(2.5)
    return proxy.memory("RssAnon")


@pytest.mark.timeout(900 if SOAK else 120)
@pytest.mark.parametrize(
    "size, most",
    [(lambda _: 400, 1.2), (lambda _: 8_000, 1.2), (lambda chance: 10 ** chance.uniform(0, 5), 1.5)],
    ids=["400", "8000", "any"],
)
def test_it_takes_what_it_counts(redis_server, proxima, size, most):
    """Beside what the same traffic takes where nothing is kept. Here the workers are busy in turn, and the
    allocator keeps free blocks for each size and each of them."""
    rule = {"name": "kept", "prefix": "kept:", "ttl": "1h"}
    proxy = proxima(kept_redis([redis_server()], rule, top={"near": {"memory": f"{MEMORY // MIB}MiB"}}))
    chance = random.Random(2)

    def counted():
        return json.loads(proxy.http("/near")[1])["bytes"]

    for _ in traffic(proxy, chance, b"passes:", size, MEMORY / 2):
        pass
    assert counted() == 0
    before = at_rest(proxy)
    for _ in traffic(proxy, chance, b"kept:", size, 1.6 * MEMORY):
        assert counted() <= MEMORY
    takes = at_rest(proxy) - before
    assert counted() > 0.9 * MEMORY
    assert 0.9 < takes / counted() < most, f"{takes / MIB:.1f} MiB of {counted() / MIB:.1f}"


@pytest.mark.timeout(3600 if SOAK else 120)
def test_misses_leave_nothing_behind(memcached, proxima):
    """A hundred million of them in `make soak`."""
    count = 100_000_000 if SOAK else 300_000
    proxy = proxima(kept([memcached()]))

    def miss(duration):
        load = [BENCH, "load", "--address", proxy.address, "--mix", "0:1", "--keys", "1000000", "--strict"]
        ran = subprocess.run([*load, "-c", "50", "-P", "50", "--duration", duration], capture_output=True)
        assert ran.returncode == 0, ran.stderr
        return proxy.metric("requests_total", command="get")

    miss("1s")
    before = proxy.memory()
    while miss("10s" if SOAK else "1s") < count:
        pass
    # 300 bytes that stay of each would be five times this much, and more in soak.
    assert proxy.memory() - before < 16 * MIB
    near_cache = json.loads(proxy.http("/near")[1])
    assert (near_cache["keys"], near_cache["bytes"]) == (0, 0)
    assert proxy.metric("near_fills_total", rule="all") >= 0.9 * count


def test_what_is_dropped_goes_back_to_the_system_without_more_to_keep(memcached, proxima):
    """One worker has kept a reply, and another one frees it: the first has nothing to do any more. The
    program's own pages, which come in as it is used, do not count, nor does what connections take for
    themselves the first time."""
    size, count = 100_000, 480
    server = memcached(memory=256)
    proxy = proxima(kept([server], top={"near": {"memory": "64MiB"}}))
    keys = [b"%d" % number for number in range(count)]
    body = b"v" * size

    def memory():
        return proxy.memory("RssAnon")

    with clients(proxy, 8, listener=1) as writers, clients(proxy, 8) as readers:

        def comes_and_goes(share):
            """Keeps all of it and drops it: all but this share goes back. Returns the memory behind that."""
            before = memory()
            for number, key in enumerate(keys):
                writers[0].set(key, body)
                assert readers[number % 8].get(key) == body
            full = memory()
            assert full - before > 0.9 * size * count
            writers[0].send(b"".join(b"delete %b\r\n" % key for key in keys))
            assert writers[0].exactly(9 * count) == b"DELETED\r\n" * count
            until(
                lambda: memory() - before < (full - before) * share,
                "memory of what was dropped goes back",
                every=0.25,
            )

        comes_and_goes(1 / 2)
        comes_and_goes(1 / 4)


def test_keys_that_are_read_and_set_in_turn_take_no_more_memory_and_are_never_old(memcached, proxima):
    """The next reply of a changed key is written where the last one was, if it fits."""
    proxy = proxima(kept([memcached()]))

    def near(name):
        return json.loads(proxy.http("/near")[1])[name]

    seen = []
    with proxy.raw() as client:
        for turn in range(20):
            # Sizes of one block and of two, in turn.
            values = {
                b"k%d" % number: b"%d" % turn + b"v" * (100 + turn % 4 // 2 * 300) for number in range(50)
            }
            for key, value in values.items():
                client.set(key, value)
            assert near("keys") == 0, "all of them were changed"
            for _ in range(2):
                assert all(client.get(key) == value for key, value in values.items())
            assert near("keys") == len(values)
            seen.append(near("bytes"))
    assert proxy.metric("near_hits_total", rule="all") == 20 * 50
    assert proxy.metric("near_dropped_total", rule="all", reason="changed") == 19 * 50
    assert max(seen[4:]) <= max(seen[:4]), seen


def scan(client, name, count):
    """Asks for this many keys that the server does not have."""
    for first in range(0, count, 500):
        client.send(b"".join(b"get %b%d\r\n" % (name, first + number) for number in range(500)))
        assert client.exactly(500 * 5) == b"END\r\n" * 500


# A memory for some thousand replies that say that there is nothing.
SCANNED = {"negative": "60s", "top": {"near": {"memory": "1MiB"}}}


def test_where_nobody_asks_twice_nothing_is_pushed_out_and_who_does_is_answered(memcached, proxima):
    proxy = proxima(kept([memcached()], **SCANNED))

    def turned_away():
        names = ("near_refused_fills_total", "near_passed_total")
        return sum(proxy.metric(name, rule="all", reason="not_asked_again") for name in names)

    def evictions():
        return proxy.metric("near_dropped_total", rule="all", reason="evicted")

    with proxy.raw() as client:
        scan(client, b"fills", 60_000)
        before, evicted = turned_away(), evictions()
        scan(client, b"passes", 1_000)
        # A shard that has less than its part takes what comes.
        assert turned_away() - before > 900
        assert evictions() - evicted < 100
        hits = proxy.metric("near_hits_total", rule="all")
        for _ in range(4):
            assert client.get("another") is None
        assert proxy.metric("near_hits_total", rule="all") >= hits + 2


def test_many_who_miss_one_key_during_a_scan_cause_two_requests(memcached, proxima):
    server = memcached()
    proxy, asked = proxima(kept([server], **SCANNED)), Asked(server)
    with proxy.raw() as client, clients(proxy, 100) as readers:
        scan(client, b"fills", 60_000)
        for number in range(5):
            asked()
            server.freeze()
            seen = proxy.metric("requests_total", command="get")
            for reader in readers:
                reader.send(b"get new%d\r\n" % number)
            until(lambda: proxy.metric("requests_total", command="get") >= seen + 100, "all have asked")
            server.thaw()
            for reader in readers:
                assert reader.exactly(5) == b"END\r\n"
            assert 1 <= asked() <= 2
    assert proxy.metric("near_passed_total", rule="all", reason="not_asked_again") > 10_000
