"""Replicated pools: commands whose result depends on the value are decided at one copy, the key's home."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.copies import PATIENT, copies_of, copy_state, replicated, until_current, until_out

pytestmark = pytest.mark.either_io

CLIENTS = 6


def together(proxy, work):
    """Runs `work(client, number)` for several clients at the same time, and returns the results."""
    barrier = threading.Barrier(CLIENTS)

    def run(number):
        with proxy.raw() as client:
            barrier.wait()
            return work(client, number)

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(run, range(CLIENTS)))


def test_one_of_many_concurrent_adds_of_a_key_succeeds(servers, proxima):
    proxy = proxima(replicated(servers, timeout=PATIENT, workers=4))

    def add(client, number):
        return [client.ask(b"add k%d 0 0 1\r\n%d\r\n" % (key, number)) for key in range(100)]

    answers = together(proxy, add)
    for key in range(100):
        stored = [number for number in range(CLIENTS) if answers[number][key] == b"STORED\r\n"]
        assert len(stored) == 1, [answer[key] for answer in answers]
        assert copies_of(servers, f"k{key}") == [b"%d" % stored[0]] * 3


def test_concurrent_increments_are_each_counted_once(servers, proxima):
    proxy = proxima(replicated(servers, timeout=PATIENT, workers=4))
    with proxy.raw() as client:
        client.set("n", "0")
    answers = together(proxy, lambda client, _: [int(client.ask(b"incr n 1\r\n")) for _ in range(100)])
    assert sorted(number for each in answers for number in each) == list(range(1, 100 * CLIENTS + 1))
    with proxy.raw() as client:
        assert client.ask(b"gets n\r\n").splitlines()[1] == b"%d" % (100 * CLIENTS)


def test_concurrent_swaps_lose_no_change(servers, proxima):
    proxy = proxima(replicated(servers, timeout=PATIENT, workers=4))
    with proxy.raw() as client:
        client.set("n", "0")

    def count(client, _):
        done = 0
        while done < 30:
            head, value, end = client.ask(b"gets n\r\n").splitlines()
            assert end == b"END"
            value = b"%d" % (int(value) + 1)
            answer = client.ask(b"cas n 0 0 %d %b\r\n%b\r\n" % (len(value), head.split()[4], value))
            assert answer in (b"STORED\r\n", b"EXISTS\r\n"), answer
            done += answer == b"STORED\r\n"

    together(proxy, count)
    assert copies_of(servers, "n") == [b"%d" % (30 * CLIENTS)] * 3


@pytest.mark.parametrize("nearest", [0, 1, 2])
def test_gets_reads_the_version_at_the_home_whichever_copy_is_near(memcached, proxima, nearest):
    hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    servers = [memcached(host=host) for host in hosts]
    # So that their versions differ.
    for server in servers[1:]:
        for number in range(100):
            server.set("k", str(number))
    proxy = proxima(replicated(servers, timeout=PATIENT), "--node-address", hosts[nearest])
    with proxy.raw() as client:
        for key in (b"a", b"b", b"c", b"d", b"e", b"f"):
            client.set(key, "1")
            version = client.ask(b"gets %b\r\n" % key).split()[4]
            assert client.ask(b"mg %b c\r\n" % key) == b"HD c%b\r\n" % version
            assert client.ask(b"cas %b 0 0 1 %b\r\n2\r\n" % (key, version)) == b"STORED\r\n"
            assert client.ask(b"cas %b 0 0 1 %b\r\n3\r\n" % (key, version)) == b"EXISTS\r\n"
            assert copies_of(servers, key) == [b"2"] * 3


def version(client, key):
    return int(client.ask(b"gets %b\r\n" % key).split()[4])


def test_a_version_from_a_lost_home_matches_nothing_at_the_next(servers, proxima):
    """Copies count the same changes so much alike that a version of one is soon that of another change
    elsewhere."""
    home, *others = servers
    proxy = proxima(replicated(servers))

    def is_home(client, key):
        client.set(key, "read")
        before = version(client, key)
        home.set(key, "read")
        return version(client, key) != before

    with proxy.raw() as client:
        key = next(key for key in (b"k%d" % number for number in range(100)) if is_home(client, key))
        # The home's count is ahead. The next home reaches that number later.
        for _ in range(20):
            home.set("other", "x")
        home.set(key, "read")
        seen = version(client, key)
        home.kill()
        client.set(key, "newer")
        until_out(proxy, home)
        for _ in range(100):
            client.set(key, "newest")
            assert client.ask(b"cas %b 0 0 4 %d\r\nlost\r\n" % (key, seen)) == b"EXISTS\r\n"
        assert copies_of(others, key) == [b"newest"] * 2


def test_a_version_means_the_same_through_every_proxy(servers, proxima):
    one, other = proxima(replicated(servers, timeout=PATIENT)), proxima(replicated(servers, timeout=PATIENT))
    with one.raw() as client, other.raw() as stranger:
        for key in (b"a", b"b", b"c", b"d"):
            client.set(key, "1")
            assert stranger.ask(b"cas %b 0 0 1 %d\r\n2\r\n" % (key, version(client, key))) == b"STORED\r\n"
            head, value, _ = stranger.ask(b"gats 100 %b\r\n" % key).splitlines()
            assert value == b"2" and int(head.split()[4]) == version(client, key)
            meta = b"ms %b 1 C%d\r\n3\r\n" % (key, version(client, key))
            assert stranger.ask(meta) == b"HD\r\n" and stranger.ask(meta) == b"EX\r\n"


def test_a_meta_set_shows_the_version_of_the_home(memcached, proxima):
    servers = memcached.several(3)
    # So that their versions differ.
    for number, server in enumerate(servers):
        for _ in range(10 * number):
            server.set("other", "x")
    with proxima(replicated(servers, timeout=PATIENT)).raw() as client:
        for key in (b"a", b"b", b"c", b"d"):
            shown = client.ask(b"ms %b 1 c\r\n1\r\n" % key)
            assert client.ask(b"mg %b c\r\n" % key) == shown
            assert client.ask(b"ms %b 1 C%b\r\n2\r\n" % (key, shown.split()[1][1:])) == b"HD\r\n"


def test_version_0_means_no_version_as_in_memcached(servers, proxima):
    requests = [b"ma n C0\r\n", b"ms none 1 C7 c\r\n1\r\n", b"cas n 0 0 1 0\r\n1\r\n", b"md n C0\r\n"]
    with proxima(replicated(servers, timeout=PATIENT)).raw() as client:
        client.set("n", "1")
        answers = [client.ask(request) for request in requests]
    with servers[0].raw() as direct:
        direct.set("n", "1")
        assert answers == [direct.ask(request) for request in requests]


def test_chained_swaps_through_several_workers_leave_equal_copies(servers, proxima):
    """A swap does not overtake, on the way to any copy, the swap through another worker whose value it has
    read."""
    proxy = proxima(replicated(servers, timeout=PATIENT, workers=4))
    keys = [b"k%d" % number for number in range(150)]
    with proxy.raw() as client:
        for key in keys:
            client.set(key, "0")

    def chain(client, _):
        for key in keys:
            swapped = 0
            while swapped < 5:
                head, value, _ = client.ask(b"gets %b\r\n" % key).splitlines()
                value = b"%d" % (int(value) + 1)
                answer = client.ask(b"cas %b 0 0 %d %b\r\n%b\r\n" % (key, len(value), head.split()[4], value))
                swapped += answer == b"STORED\r\n"

    together(proxy, chain)
    for key in keys:
        assert copies_of(servers, key) == [b"%d" % (5 * CLIENTS)] * 3


def test_racing_writers_leave_equal_copies(servers, proxima):
    proxy = proxima(replicated(servers, timeout=PATIENT, workers=4))

    def write(client, number):
        for key in range(300):
            assert client.ask(b"set k%d 0 0 1\r\n%d\r\n" % (key, number)) == b"STORED\r\n"

    together(proxy, write)
    for key in range(300):
        assert len(set(copies_of(servers, f"k{key}"))) == 1


@pytest.mark.parametrize("workers", [1, 4])
def test_racing_replace_and_set_leave_equal_copies(servers, proxima, workers):
    """A `set` must not reach the other copies before a `replace` that was before it at the home."""
    proxy = proxima(replicated(servers, timeout=PATIENT, workers=workers))
    keys = range(100)
    with proxy.raw() as client:
        for key in keys:
            client.set(f"k{key}", "0")

    def write(client, number):
        if number % 2:
            return [client.ask(b"replace k%d 0 0 1\r\n%d\r\n" % (key, number)) for key in keys]
        for first in range(0, len(keys), 10):
            some = keys[first : first + 10]
            client.send(b"".join(b"set k%d 0 0 1\r\n%d\r\n" % (key, number) for key in some))
            assert client.exactly(len(b"STORED\r\n") * len(some)) == b"STORED\r\n" * len(some)

    for _ in range(5):
        together(proxy, write)
        assert [key for key in keys if len(set(copies_of(servers, f"k{key}"))) > 1] == []


@pytest.mark.parametrize("workers", [1, 4])
def test_streamed_values_racing_with_small_ones_leave_equal_copies(servers, proxima, workers):
    """A streamed value has connections of its own, which keep no order with those of small ones, even in one
    worker."""
    proxy = proxima(replicated(servers, timeout=PATIENT, workers=workers))

    def write(client, number):
        value = b"%d" % number * (1 if number % 2 else 100_000)
        for key in range(60):
            assert client.ask(b"set k%d 0 0 %d\r\n%b\r\n" % (key, len(value), value)) == b"STORED\r\n"

    together(proxy, write)
    for key in range(60):
        assert len(set(copies_of(servers, f"k{key}"))) == 1


def test_a_client_half_closed_behind_a_streamed_value_is_answered(servers, proxima):
    proxy = proxima(replicated(servers, timeout=PATIENT, workers=4))

    def write(client, number):
        if number:
            return [client.ask(b"set k 0 0 1\r\nx\r\n") for _ in range(100)]
        answers = []
        for _ in range(20):
            with proxy.raw() as sender:
                sender.send(b"set k 0 0 100000\r\n%b\r\n" % (b"v" * 100_000))
                sender.finish()
                answers.append(sender.rest())
        return answers

    assert {answer for answers in together(proxy, write) for answer in answers} == {b"STORED\r\n"}


def test_the_next_copy_decides_when_a_home_is_lost(servers, proxima):
    proxy = proxima(replicated(servers))
    keys = range(12)
    with proxy.raw() as client:
        for key in keys:
            client.set(f"n{key}", "1")
        servers[0].freeze()
        assert [client.ask(b"incr n%d 1\r\n" % key) for key in keys] == [b"2\r\n"] * 12
        servers[0].thaw()
        until_current(proxy, *servers)
        for key in keys:
            assert {copy for copy in copies_of(servers, f"n{key}")} <= {b"2", None}


def test_at_most_one_add_succeeds_while_homes_are_lost(memcached, proxima):
    """The next home has all that a lost home passed on. Nothing else was ever acknowledged."""
    servers = memcached.several(3, threads=4)
    proxy = proxima(replicated(servers, workers=4))
    for lost, server in enumerate(servers):

        def add(client, number):
            answers = []
            for key in range(200):
                if (number, key) == (0, 100):
                    server.freeze()
                answers.append(client.ask(b"add k%d-%d 0 0 1\r\n%d\r\n" % (lost, key, number)))
            return answers

        for key, said in enumerate(zip(*together(proxy, add))):
            assert said.count(b"STORED\r\n") <= 1, (key, said)
        server.thaw()
        until_current(proxy, *servers)


def test_a_pipeline_sees_its_own_changes_of_copies(servers, proxima):
    proxy = proxima(replicated(servers, timeout=PATIENT))
    with proxy.raw() as client:
        for number in range(50):
            key = b"n%d" % number
            client.set(key, "10")
            answer = client.ask(b"incr %b 5\r\nget %b\r\n" % (key, key))
            assert answer in (b"15\r\nVALUE %b 0 2\r\n15\r\nEND\r\n" % key, b"15\r\nEND\r\n"), answer
            answer = client.ask(b"append %b 0 0 1\r\n0\r\nget %b\r\n" % (key, key))
            stored = b"STORED\r\nVALUE %b 0 3\r\n150\r\nEND\r\n" % key
            assert answer in (stored, b"STORED\r\nEND\r\n"), answer
            # Where the result of the append was not known, the key was removed elsewhere. The answer is the
            # same.
            answer = client.ask(b"delete %b\r\nadd %b 0 0 1\r\n7\r\nget %b\r\n" % (key, key, key))
            assert answer == b"DELETED\r\nSTORED\r\nVALUE %b 0 1\r\n7\r\nEND\r\n" % key


META = [
    (b"ms k 1 ME\r\nx\r\n", b"NS\r\n", b"old"),
    (b"ms new 1 ME T60\r\nx\r\n", b"HD\r\n", None),
    (b"ms k 1 MR\r\nx\r\n", b"HD\r\n", b"x"),
    (b"ms none 1 MR\r\nx\r\n", b"NS\r\n", b"old"),
    (b"ms k 1 MA\r\nx\r\n", b"HD\r\n", b"oldx"),
    (b"ms k 1 MP\r\nx\r\n", b"HD\r\n", b"xold"),
    (b"ms k 1 C999999\r\nx\r\n", b"EX\r\n", b"old"),
    (b"ma k\r\n", b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n", b"old"),
    (b"ma fresh N60 J5 v\r\n", b"VA 1\r\n5\r\n", None),
    (b"mg k v N60\r\n", b"VA 3\r\nold\r\n", b"old"),
    (b"mg k v T60\r\n", b"VA 3\r\nold\r\n", b"old"),
    (b"md k I T30\r\n", b"HD\r\n", b"old"),
    (b"md k\r\n", b"HD\r\n", None),
    (b"md k q\r\n", b"", None),
    (b"ms k 1 q\r\nx\r\n", b"", b"x"),
    (b"ms k 1 ME q\r\nx\r\n", b"NS\r\n", b"old"),
    (b"set k 0 0 1 noreply\r\nx\r\n", b"", b"x"),
    (b"replace k 0 0 1 noreply\r\nx\r\n", b"", b"x"),
    (b"append k 0 0 1 noreply\r\nx\r\n", b"", b"oldx"),
    (b"delete k noreply\r\n", b"", None),
    (b"touch k 60\r\n", b"TOUCHED\r\n", b"old"),
    (b"gat 60 k\r\n", b"VALUE k 0 3\r\nold\r\nEND\r\n", b"old"),
]


@pytest.mark.parametrize(
    "request_, answer, value", META, ids=[request[:14].decode().strip() for request, _, _ in META]
)
def test_each_form_of_a_change_leaves_no_differing_copies(memcached, proxima, request_, answer, value):
    servers = memcached.several(3)
    proxy = proxima(replicated(servers, timeout=PATIENT))
    with proxy.raw() as client:
        client.set("k", "old")
        assert client.ask(request_) == answer
        held = copies_of(servers, "k") if value else []
        assert set(held) <= {value, None}
        assert value in held or not value
        assert client.get("k") in (value, None) or not value
    assert all(copy_state(proxy, server) == "current" for server in servers)


COUNTS = [
    (b"incr n 5\r\n", b"15\r\n", b"15"),
    (b"incr n 5 noreply\r\n", b"", b"15"),
    (b"incr n 990\r\n", b"1000\r\n", b"1000"),
    # memcached keeps the length and pads the number with blanks.
    (b"decr n 5\r\n", b"5\r\n", b"5 "),
    (b"ma n D5\r\n", b"HD\r\n", b"15"),
    (b"ma n MD D5 v\r\n", b"VA 1\r\n5\r\n", b"5 "),
    (b"ma bg== b D5 v\r\n", b"VA 2\r\n15\r\n", b"15"),
]


@pytest.mark.parametrize("request_, answer, value", COUNTS, ids=[each[0].decode().strip() for each in COUNTS])
@pytest.mark.parametrize("nearest", [0, 1, 2])
def test_a_changed_counter_is_found_at_the_nearest_copy(memcached, proxima, request_, answer, value, nearest):
    """Client libraries count and then read, and take a miss for a lost key. This holds whichever copy is the
    home."""
    hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    servers = [memcached(host=host) for host in hosts]
    proxy = proxima(replicated(servers), "--node-address", hosts[nearest])
    with proxy.raw() as client:
        client.set("n", "10", flags=7, ttl=1000)
        assert client.ask(request_) == answer
        assert client.get("n") == value
    for server in servers:
        with server.raw() as direct:
            head, held, _ = direct.ask(b"mg n v f t\r\n").split(b"\r\n")
            flags, ttl = head.split()[2:]
            assert (held, flags) == (value, b"f7")
            assert 900 < int(ttl.removeprefix(b"t")) <= 1000


def test_a_changed_counter_keeps_its_expiry_at_every_copy(memcached, proxima):
    """The cases are no expiry, and one later than thirty days, which memcached writes in another way."""
    servers = memcached.several(3)
    month, now = 30 * 86400, int(time.time())
    with proxima(replicated(servers)).raw() as client:
        for key, ttl, expected in [(b"a", 0, -1), (b"b", month, month), (b"c", now + 2 * month, 2 * month)]:
            client.set(key, "1", ttl=ttl)
            assert client.ask(b"incr %b 1\r\n" % key) == b"2\r\n"
            for server in servers:
                with server.raw() as direct:
                    head, held, _ = direct.ask(b"mg %b v t\r\n" % key).split(b"\r\n")
                    assert held == b"2"
                    assert abs(int(head.split()[2].removeprefix(b"t")) - expected) < 60


def test_a_counter_created_by_ma_is_at_every_copy(memcached, proxima):
    servers = memcached.several(3)
    with proxima(replicated(servers)).raw() as client:
        for key in (b"a", b"b", b"c"):
            assert client.ask(b"ma %b N60 J5 v\r\n" % key) == b"VA 1\r\n5\r\n"
            assert copies_of(servers, key) == [b"5"] * 3


def test_the_right_to_refill_a_stale_counter_stays_with_clients(memcached, proxima):
    """Reading the new number wins the right to refill it, and the proxy gives that right back."""
    servers = memcached.several(3)
    with proxima(replicated(servers)).raw() as client:
        client.set("n", "10")
        assert client.ask(b"md n I T60\r\n") == b"HD\r\n"
        assert client.ask(b"incr n 1\r\n") == b"11\r\n"
        [home] = [server for server in servers if server.get("n") is not None]
        with home.raw() as direct:
            assert direct.ask(b"mg n v\r\n") == b"VA 2 X W\r\n11\r\n"


def test_a_counter_too_long_to_copy_is_removed_at_other_copies(memcached, proxima):
    servers = memcached.several(3)
    with proxima(replicated(servers)).raw() as client:
        client.set("n", b"10" + b" " * 70_000)
        assert client.ask(b"incr n 1\r\n") == b"11\r\n"
        held = [copy.split()[0] for copy in copies_of(servers, "n") if copy is not None]
        assert held == [b"11"]
        assert client.ask(b"gets n\r\n").split()[5] == b"11"


@pytest.mark.parametrize("key, base64", [(b"n", b""), (b"bg==", b" b")], ids=["plain", "base64"])
def test_a_meta_get_with_an_expiry_prolongs_the_value_at_every_copy(memcached, proxima, key, base64):
    servers = memcached.several(3)
    with proxima(replicated(servers)).raw() as client:
        client.set("n", "v")
        assert client.ask(b"mg %b%b v T60\r\n" % (key, base64)) == b"VA 1\r\nv\r\n"
        for server in servers:
            with server.raw() as direct:
                assert direct.ask(b"mg n v t\r\n") in (b"VA 1 t60\r\nv\r\n", b"VA 1 t59\r\nv\r\n")


def test_a_value_stored_as_stale_is_fresh_at_no_copy(memcached, proxima):
    servers = memcached.several(3)
    with proxima(replicated(servers)).raw() as client:
        for number in range(20):
            key = b"k%d" % number
            client.set(key, "1")
            seen = version(client, key)
            client.set(key, "2")
            assert client.ask(b"ms %b 3 I C%d\r\nold\r\n" % (key, seen)) == b"HD\r\n"
            held = [server for server in servers if server.get(key) is not None]
            assert len(held) == 1
            with held[0].raw() as direct:
                assert direct.ask(b"mg %b v\r\n" % key) == b"VA 3 X W\r\nold\r\n"


CHANGES_OF_NOREPLY = [
    (b"incr noreply 1\r\n", b"2\r\n", {b"2"}),
    (b"append noreply 0 0 1\r\n0\r\n", b"STORED\r\n", {b"10", None}),
    (b"touch noreply 60\r\n", b"TOUCHED\r\n", {b"1"}),
    (b"gat 60 noreply\r\n", b"VALUE noreply 0 1\r\n1\r\nEND\r\n", {b"1"}),
    (b"replace noreply 0 0 1\r\n2\r\n", b"STORED\r\n", {b"2"}),
    (b"mg noreply v N30\r\n", b"VA 1\r\n1\r\n", {b"1", None}),
    (b"mg noreply v T60\r\n", b"VA 1\r\n1\r\n", {b"1"}),
    (b"md noreply I T60\r\n", b"HD\r\n", {b"1", None}),
    (b"delete noreply 0\r\n", b"DELETED\r\n", {None}),
    (b"delete noreply 0 noreply\r\n", b"", {None}),
    (b"md noreply\r\n", b"HD\r\n", {None}),
]


@pytest.mark.parametrize(
    "request_, answer, values", CHANGES_OF_NOREPLY, ids=[c[0][:22].decode() for c in CHANGES_OF_NOREPLY]
)
def test_changes_of_a_key_named_noreply_reach_every_copy(memcached, proxima, request_, answer, values):
    """Newer servers take the last word of the proxy's `delete noreply` for an option, and do not answer."""
    servers = memcached.several(3)
    proxy = proxima(replicated(servers))
    with proxy.raw() as client:
        client.set("noreply", "1")
        assert client.ask(request_) == answer
        assert set(copies_of(servers, "noreply")) == values
    assert all(copy_state(proxy, server) == "current" for server in servers)


@pytest.mark.parametrize("key", ["noreply", "0", "b", "q", "k\x01", "a2V5", "k" * 250])
def test_a_missed_write_of_any_key_is_repaired(memcached, proxima, key):
    """The repair removes that key alone."""
    servers = memcached.several(3)
    proxy = proxima(replicated(servers))
    with proxy.raw() as client:
        client.set("other", "v")
        client.set(key, "old")
        servers[0].freeze()
        client.set(key, "new")
        servers[0].thaw()
        until_current(proxy, servers[0])
    assert copies_of(servers, key) == [None, b"new", b"new"]
    assert copies_of(servers, "other") == [b"v"] * 3
