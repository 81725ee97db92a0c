"""The near cache beside real servers: what is kept, for how long, what ends it, and what passes."""

import itertools
import threading
import time

import pytest

from harness import ports, until
from harness.near_cache import RULE, Asked, calls, clients, kept, kept_redis, near
from harness.proxy import config
from harness.redis import Connection, array

HUGE = 1_500_000


@pytest.fixture
def cache(memcached, proxima):
    """Starts a proxy before one memcached: the server, the proxy, and a count of what the server is asked."""

    def start(*rules, **keys):
        server = memcached(item="4m")
        proxy = proxima(kept([server], *rules, **keys))
        return server, proxy, Asked(server)

    return start


@pytest.fixture
def redis_cache(redis_server, proxima):
    """The same before one Redis."""

    def start(*rules, **keys):
        server = redis_server()
        return server, proxima(kept_redis([server], *rules, **keys))

    return start


def test_a_hit_asks_no_server_whichever_worker_has_it(cache):
    server, proxy, asked = cache()
    server.set("k", "value")
    asked()
    with clients(proxy, 16) as readers:
        for reader in readers:
            assert reader.get("k") == b"value"
        assert asked() == 1
        assert readers[3].ask(b"get k k other\r\n").count(b"VALUE k 0 5\r\nvalue\r\n") == 2
        assert asked() == 1, "the other one alone"


def test_each_form_is_kept_for_itself_and_a_change_ends_all_of_them(cache):
    server, proxy, asked = cache()
    with proxy.raw() as client:
        client.set("k", "one", flags=7)
        forms = {
            b"get k\r\n": b"VALUE k 7 3\r\none\r\nEND\r\n",
            b"mg k v\r\n": b"VA 3\r\none\r\n",
            b"mg k f s v\r\n": b"VA 3 f7 s3\r\none\r\n",
            b"mg k s f v\r\n": b"VA 3 s3 f7\r\none\r\n",
            b"mg k k q v\r\n": b"VA 3 kk\r\none\r\n",
            b"mg k O12 v\r\n": b"VA 3 O12\r\none\r\n",
            # A server answers by the key as it was stored.
            b"mg aw== b k v\r\n": b"VA 3 kk\r\none\r\n",
            b"mg k\r\n": b"HD\r\n",
        }
        asked()
        for request, answer in forms.items():
            assert client.ask(request) == answer
        assert asked() == len(forms)
        for request, answer in forms.items():
            assert client.ask(request) == answer
        assert client.ask(b"mg k Oanother v\r\n") == b"VA 3 Oanother\r\none\r\n"
        assert asked() == 0
        client.set("k", "other", flags=8)
        for request, answer in forms.items():
            changed = answer.replace(b" 3", b" 5").replace(b"s3", b"s5").replace(b"one", b"other")
            assert client.ask(request) == changed.replace(b"f7", b"f8").replace(b"k 7", b"k 8")
        assert asked() == len(forms)


@pytest.mark.either_io
def test_requests_whose_replies_are_no_one_elses_pass(cache):
    server, proxy, asked = cache()
    server.set("k", "v")
    with proxy.raw() as client:
        client.get("k")
        client.ask(b"mg k v\r\n")
        asked()
        for request in [b"gets k", b"mg k c v", b"mg k t v", b"mg k h v", b"mg k l v"]:
            for _ in range(2):
                assert client.ask(request + b"\r\n")
            assert asked() == 2, request
        # These change what the server knows of the key, and end what is kept.
        for request in [b"gat 0 k", b"gats 0 k", b"mg k T0 v", b"mg k N30 v"]:
            assert client.ask(request + b"\r\n")
            asked()
            assert client.get("k") == b"v"
            assert asked() == 1, request
            assert client.get("k") == b"v"
            assert asked() == 0, request


@pytest.mark.either_io
def test_a_version_is_never_kept(cache):
    _, proxy, _ = cache()
    with proxy.raw() as client, proxy.raw(1) as other:
        client.set("k", "1")
        assert client.get("k") == b"1"
        version = client.ask(b"gets k\r\n").split()[4]
        other.set("k", "2")
        assert client.ask(b"cas k 0 0 1 %b\r\n3\r\n" % version) == b"EXISTS\r\n"
        version = client.ask(b"gets k\r\n").split()[4]
        assert client.ask(b"cas k 0 0 1 %b\r\n4\r\n" % version) == b"STORED\r\n"
        assert client.get("k") == b"4"


CHANGES = {
    "set": (b"set k 0 0 3\r\nnew\r\n", b"new"),
    "set without an answer": (b"set k 0 0 3 noreply\r\nnew\r\n", b"new"),
    "append": (b"append k 0 0 1\r\n1\r\n", b"51"),
    "prepend": (b"prepend k 0 0 1\r\n1\r\n", b"15"),
    "replace": (b"replace k 0 0 3\r\nnew\r\n", b"new"),
    "incr": (b"incr k 2\r\n", b"7"),
    "decr": (b"decr k 2\r\n", b"3"),
    "delete": (b"delete k\r\n", None),
    "ms": (b"ms k 3\r\nnew\r\n", b"new"),
    "ms, base64": (b"ms aw== 3 b\r\nnew\r\n", b"new"),
    "ms, append": (b"ms k 1 MA\r\n1\r\n", b"51"),
    "ms, quiet": (b"ms k 3 q\r\nnew\r\n", b"new"),
    "md": (b"md k\r\n", None),
    "md, stale": (b"md k I T30\r\n", b"5"),
    "ma": (b"ma k\r\n", b"6"),
    "flush_all": (b"flush_all\r\n", None),
}


@pytest.mark.either_io
@pytest.mark.parametrize("name", CHANGES)
def test_each_change_ends_what_is_kept_whichever_route_it_takes(memcached, proxima, name):
    request, held = CHANGES[name]
    server = memcached()
    renamed = {"modify_key": {"child": "cache", "ensure_prefix": "k"}}
    proxy = proxima(kept([server], more=[renamed]))
    for listener in range(3):
        with proxy.raw() as client, proxy.raw(listener) as changing:
            client.set("k", "5")
            assert client.get("k") == client.get("k") == b"5"
            changing.ask(request)
            assert client.get("k") == held, f"by listener {listener}"
            assert client.get("k") == held
            assert client.get("k") == server.get("k")


def test_a_change_by_a_key_that_a_route_makes_ends_what_is_kept(memcached, proxima):
    server = memcached()
    renamed = {"modify_key": {"child": "cache", "ensure_prefix": "p:"}}
    proxy = proxima(kept([server], more=[renamed]))
    with proxy.raw() as client, proxy.raw(2) as renaming:
        client.set("p:k", "old")
        assert client.get("p:k") == b"old"
        renaming.set("k", "new")
        assert client.get("p:k") == b"new"


@pytest.mark.either_io
def test_a_route_may_change_keys_above(memcached, proxima):
    server = memcached()
    above = {"modify_key": {"child": near("cache"), "ensure_prefix": "p:"}}
    pools = {"cache": {"servers": [server.address]}}
    proxy = proxima(config(above, pools, "cache", workers=4))
    asked = Asked(server)
    with proxy.raw() as client, proxy.raw(1) as plain:
        client.set("k", "old")
        assert client.get("k") == client.get("p:k") == client.get("k") == b"old"
        assert asked() == 1
        plain.set("p:k", "new")
        assert client.get("k") == b"new"


@pytest.mark.either_io
def test_misses_are_kept_where_a_rule_says_so(cache):
    rules = [{"name": "some", "prefix": "n:", "ttl": "60s", "negative": "60s"}, RULE]
    server, proxy, asked = cache(*rules)
    with proxy.raw() as client, proxy.raw(1) as plain:
        for _ in range(3):
            assert client.get("n:k") is None and client.ask(b"mg n:k v\r\n") == b"EN\r\n"
        assert asked() == 2
        for _ in range(3):
            assert client.get("k") is None
        assert asked() == 3
        for number in range(3):
            assert client.ask(b"mg n:k k O%d\r\n" % number) == b"EN kn:k O%d\r\n" % number
        assert asked() == 1, "the opaque is each reader's own"
        plain.set("n:k", "v")
        assert client.get("n:k") == b"v" and client.ask(b"mg n:k v\r\n") == b"VA 1\r\nv\r\n"


@pytest.mark.either_io
def test_rules_match_by_prefix_pattern_and_command(cache):
    rules = [
        {"name": "off", "prefix": "off:", "ttl": "0s"},
        {"name": "glob", "pattern": "*:map:?", "ttl": "60s"},
        {"name": "meta", "prefix": "m:", "commands": ["mg"], "ttl": "60s"},
    ]
    server, proxy, asked = cache(*rules)
    with proxy.raw() as client:
        for key, request, count in [
            ("off:map:1", "get", 3),
            ("a:map:1", "get", 1),
            ("a:map:12", "get", 3),
            ("m:1", "get", 3),
            ("m:1", "mg", 1),
        ]:
            client.set(key, "v")
            asked()
            for _ in range(3):
                assert client.ask(f"{request} {key}{' v' * (request == 'mg')}\r\n".encode())
            assert asked() == count, (key, request)


class Held:
    """A memcached of a test's own, which holds back the answers to `get` while `open` is not set."""

    def __init__(self, scripted):
        self.open = threading.Event()
        self.asked = []
        self.value = b"old"
        self.server = scripted(self._talk)
        self.address = self.server.address

    def _talk(self, sock):
        heard = b""
        while part := sock.recv(65536):
            heard += part
            while b"\r\n" in heard:
                line, heard = heard.split(b"\r\n", 1)
                self.asked.append(line)
                self.open.wait(30)
                answer = b"VALUE %b 0 %d\r\n%b\r\nEND\r\n" % (line.split()[1], len(self.value), self.value)
                sock.sendall(answer)


@pytest.mark.either_io
def test_one_renews_while_the_others_get_what_is_old(scripted, proxima):
    server = Held(scripted)
    proxy = proxima(kept([server], pool={"timeout": "30s"}, ttl="300ms", jitter=0, stale="50s"))
    server.open.set()
    with clients(proxy, 8) as readers:
        assert readers[0].get("k") == b"old"
        server.open.clear()
        server.value = b"new"
        time.sleep(0.4)
        for reader in readers:
            assert reader.get("k") == b"old"
        until(lambda: len(server.asked) == 2, "one asks")
        for reader in readers:
            assert reader.get("k") == b"old"
        assert len(server.asked) == 2, "nobody else does"
        server.open.set()
        until(lambda: readers[5].get("k") == b"new", "it is renewed")


@pytest.mark.either_io
def test_an_old_reply_stands_for_an_error_unless_it_was_changed(memcached, proxima):
    server = memcached()
    pool = {"timeout": "300ms", "eject": {"failures": 0}}
    proxy = proxima(kept([server], pool=pool, ttl="100ms", stale_on_error="60s"))
    with proxy.raw() as client:
        client.set("k", "v")
        client.set("other", "v")
        assert client.get("k") == client.get("other") == b"v"
        server.freeze()
        time.sleep(0.2)
        assert client.get("k") == client.get("other") == b"v"
        # Nobody knows whether the server has changed it.
        assert client.ask(b"set k 0 0 3\r\nnew\r\n").startswith(b"SERVER_ERROR")
        assert client.ask(b"get k\r\n").startswith(b"SERVER_ERROR")
        assert client.get("other") == b"v"


@pytest.mark.either_io
def test_an_error_is_answered_and_not_kept(memcached, proxima):
    server = memcached()
    proxy = proxima(kept([server], pool={"timeout": "300ms", "eject": {"failures": 0}}, negative="60s"))
    server.kill()
    with proxy.raw() as client:
        assert client.ask(b"get k\r\n").startswith(b"SERVER_ERROR")
        server.start()
        server.set("k", "v")
        until(lambda: not client.ask(b"get k\r\n").startswith(b"SERVER_ERROR"), "the server is found again")
        assert client.get("k") == b"v"


@pytest.mark.parametrize("size", [70_000, HUGE])
def test_large_replies_are_kept_up_to_the_largest(cache, size):
    server, proxy, asked = cache(largest="2MiB")
    value = b"0123456789" * (size // 10)
    with clients(proxy, 6) as readers:
        readers[0].set("k", value)
        for reader in readers:
            assert reader.get("k") == value
        assert asked() == 1
        readers[2].set("k", value[::-1])
        for reader in readers:
            assert reader.get("k") == value[::-1]
            assert reader.ask(b"mg k v s\r\n").endswith(value[::-1] + b"\r\n")
        assert asked() == 2
        # One more that nobody reads holds up none of the others.
        readers[0].send(b"get k\r\n" * 20)
        for reader in readers[1:]:
            assert reader.get("k") == value[::-1]
        assert asked() == 0


def test_what_is_too_large_passes_and_nobody_waits_for_another(cache):
    server, proxy, asked = cache(largest="1KiB")
    values = {"a": b"x" * 2000, "b": b"y" * HUGE}
    with clients(proxy, 6) as readers:
        for key, value in values.items():
            server.set(key, value)
            asked()
            for reader in readers:
                assert reader.get(key) == value
            assert asked() == len(readers)
        for reader in readers:
            reader.send(b"get b\r\n")
        for reader in readers:
            assert reader.until(b"END\r\n").count(b"y") == HUGE


JOINING = 1000


class Miss:
    """A server that stands still, and a proxy whose clients have all asked for one key meanwhile."""

    def __init__(self, server, proxy, readers):
        self.server, self.proxy, self.readers = server, proxy, readers
        server.freeze()
        readers[0].send(b"get k\r\n")
        self.until_asked(1)
        for reader in readers[1:]:
            reader.send(b"get k\r\n")
        self.until_asked(len(readers))

    def until_asked(self, count):
        """The workers have read the requests of so many clients."""
        name = "requests_total"
        until(lambda: self.proxy.metric(name, command="get") >= count, f"{count} have asked")


@pytest.fixture
def missing(memcached, proxima):
    """Starts a server, a proxy and so many clients who miss one key."""

    def start(stack, value, **keys):
        server = memcached(item="4m")
        server.set("k", value)
        proxy = proxima(kept([server], pool={"timeout": "40s"}, largest="2MiB"))
        readers = [stack.enter_context(proxy.raw()) for _ in range(keys.get("count", JOINING))]
        return Asked(server), Miss(server, proxy, readers)

    return start


@pytest.mark.parametrize("size", [5, HUGE])
@pytest.mark.parametrize("first", ["waits", "leaves", "resets", "stalls"])
def test_all_who_miss_one_key_cause_one_request(missing, cleanup, first, size):
    value = b"v" * size
    count = JOINING if size < HUGE else 40
    asked, miss = missing(cleanup, value, count=count)
    readers = miss.readers
    if first == "leaves":
        readers[0].close()
    elif first == "resets":
        readers[0].abort()
    miss.server.thaw()
    # A first one that stalls takes nothing of what it is sent while the others are served.
    for reader in readers[1:]:
        assert reader.until(b"END\r\n") == b"VALUE k 0 %d\r\n%b\r\nEND\r\n" % (size, value)
    if first in ("waits", "stalls"):
        assert readers[0].until(b"END\r\n").count(b"v") == size
    assert asked() == 1
    with miss.proxy.raw() as client:
        client.set("k", "new")
        for reader in readers[1:]:
            assert reader.get("k") == b"new"
    assert asked() == 1, "one more after a change"


@pytest.mark.either_io
def test_who_waits_gets_the_error_once_and_the_next_asks_anew(memcached, proxima, cleanup):
    server = memcached()
    server.set("k", "v")
    pool = {"timeout": "1s", "eject": {"failures": 0}}
    proxy = proxima(kept([server], pool=pool))
    readers = [cleanup.enter_context(proxy.raw()) for _ in range(60)]
    Miss(server, proxy, readers)
    for reader in readers:
        assert reader.line().startswith(b"SERVER_ERROR")
    server.thaw()
    with proxy.raw() as client:
        until(lambda: client.ask(b"get k\r\n").startswith(b"VALUE"), "the server is asked anew")


def test_a_flush_that_is_due_later_is_seen_when_it_comes(cache):
    server, proxy, _ = cache()
    with proxy.raw() as client, proxy.raw(1) as plain:
        client.set("k", "v")
        assert client.get("k") == b"v"
        assert plain.ask(b"flush_all 2\r\n") == b"OK\r\n"
        assert client.get("k") == b"v"

        def is_flushed():
            is_gone = server.get("k") is None
            held = client.get("k")
            assert not (is_gone and held), "it is kept longer than the server had it"
            return is_gone

        until(is_flushed, "the flush has come")


def test_a_flush_that_is_due_later_is_seen_by_a_rule_that_is_switched_on_meanwhile(cache):
    server, proxy, _ = cache()
    with proxy.raw() as client, proxy.raw(1) as plain:
        client.set("k", "v")
        assert proxy.http("/near/off?rule=all", "POST")[0] == 200
        assert plain.ask(b"flush_all 2\r\n") == b"OK\r\n"
        assert proxy.http("/near/on?rule=all", "POST")[0] == 200

        def is_flushed():
            is_gone = server.get("k") is None
            held = client.get("k")
            assert not (is_gone and held), "it is kept longer than the server had it"
            return is_gone

        until(is_flushed, "the flush has come")


def test_a_change_reaches_who_reads_from_the_next_pool(memcached, proxima):
    servers = memcached.several(2)
    pools = {
        name: {"servers": [server.address], "timeout": "500ms"}
        for name, server in zip(["one", "two"], servers, strict=True)
    }
    route = {"failover": ["one", "two"]}
    proxy = proxima(config(near(route), pools, route, workers=4))
    with proxy.raw() as client, proxy.raw(1) as plain:
        client.set("k", "one")
        assert client.get("k") == b"one"
        servers[0].kill()
        assert client.get("k") == b"one", "it is kept"
        until(lambda: plain.ask(b"set k 0 0 3\r\ntwo\r\n") == b"STORED\r\n", "the next pool takes it")
        assert client.get("k") == client.get("k") == b"two"
        assert servers[1].get("k") == b"two"


@pytest.mark.either_io
def test_a_reload_empties_what_it_changes_and_nothing_else(memcached, proxima):
    server, more = memcached.several(2)
    rules = [{"name": "a", "prefix": "a:", "ttl": "60s"}, {"name": "b", "prefix": "b:", "ttl": "60s"}]
    made = kept([server], *rules)
    proxy = proxima(made)
    asked = Asked(server)

    def read():
        """How often the server is asked for both keys, by a client that reads each of them twice."""
        with proxy.raw() as client:
            for key in ["a:1", "b:1"] * 2:
                assert client.get(key) == b"v"
        return asked()

    with proxy.raw() as client:
        client.set("a:1", "v")
        client.set("b:1", "v")
    assert (read(), read()) == (2, 0)

    def reload(change):
        change(made)
        proxy.write(made)
        status, text = proxy.reload()
        assert status == 200, text

    ruled = made["listeners"][0]["route"]["near"]["rules"]
    reload(lambda made: made.update(limits={"clients": 5000}))
    assert read() == 0, "nothing of it has changed"
    reload(lambda made: ruled[0].update(ttl="50s"))
    assert (read(), read()) == (1, 0), "one rule has changed"
    reload(lambda made: made["listeners"][0]["route"]["near"].update(child={"failover": ["cache"]}))
    assert (read(), read()) == (2, 0), "what stands below has changed"
    reload(lambda made: made["listeners"][0].update(route="cache"))
    assert read() == 4, "without it, everything passes"
    with proxy.raw() as client:
        client.set("a:1", "v")
    asked()
    reload(lambda made: made["listeners"][0].update(route=near("cache", *ruled)))
    assert (read(), read()) == (2, 0), "what was kept before is gone"


@pytest.mark.either_io
def test_a_change_while_nothing_is_kept_ends_what_was_kept_before(memcached, proxima):
    server = memcached()
    made = kept([server])
    proxy = proxima(made)
    with proxy.raw() as client:
        client.set("k", "old")
        assert client.get("k") == b"old"
        for route, value in [("cache", b"new"), (made["listeners"][0]["route"], b"newer")]:
            made["listeners"][0]["route"] = route
            proxy.write(made)
            assert proxy.reload()[0] == 200
            assert client.get("k") == server.get("k")
            client.set("k", value)
            assert client.get("k") == value


@pytest.mark.either_io
def test_another_database_of_the_pool_empties_what_was_kept(redis_server, proxima):
    server = redis_server()
    made = kept_redis([server])
    proxy = proxima(made)
    with Connection(proxy.address) as client:
        client.ask("SET", "k", "zero")
        assert client.ask("GET", "k") == client.ask("GET", "k") == b"$4\r\nzero\r\n"
    made["pools"]["cache"]["database"] = 1
    proxy.write(made)
    assert proxy.reload()[0] == 200
    until(lambda: _get(proxy, "k") == b"$-1\r\n", "the other database is read")


def _get(proxy, key):
    with Connection(proxy.address) as client:
        return client.ask("GET", key)


READS = {
    "GET s": b"$5\r\nvalue\r\n",
    "STRLEN s": b":5\r\n",
    "GETRANGE s 1 3": b"$3\r\nalu\r\n",
    "HGET h f": b"$1\r\nv\r\n",
    "HGETALL h": b"*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
    "LRANGE l 0 -1": b"*2\r\n$1\r\na\r\n$1\r\nb\r\n",
    "SMEMBERS m": b"*1\r\n$1\r\na\r\n",
    "ZRANGE z 0 -1": b"*1\r\n$1\r\na\r\n",
    "TYPE l": b"+list\r\n",
}


def fill(server):
    for words in ["SET s value", "HSET h f v", "RPUSH l a b", "SADD m a", "ZADD z 1 a"]:
        server.ask(*words.split())


@pytest.mark.either_io
@pytest.mark.parametrize("version", [2, 3])
def test_replies_of_redis_are_kept_by_command_arguments_and_version(redis_cache, version):
    server, proxy = redis_cache()
    fill(server)
    with Connection(proxy.address) as client:
        client.ask("HELLO", version)
        first = {words: client.ask(*words.split()) for words in READS}
        before = {words: calls(server, words.split()[0].lower()) for words in READS}
        for words, answer in READS.items():
            expected = answer
            if version == 3:
                expected = {"HGETALL h": b"%1" + answer[2:], "SMEMBERS m": b"~1" + answer[2:]}.get(
                    words, answer
                )
            assert first[words] == client.ask(*words.lower().split()) == expected
        after = {words: calls(server, words.split()[0].lower()) for words in READS}
        assert before == after, "nothing of it is asked again"
        # Both versions have their own bytes.
        with Connection(proxy.address) as other:
            other.ask("HELLO", 5 - version)
            assert other.ask("HGETALL", "h")[:1] == (b"%" if version == 2 else b"*")
        client.ask("HSET", "h", "g", "w")
        assert b"w" in client.ask("HGETALL", "h")


def test_keys_of_an_mget_are_kept_as_those_of_a_get(redis_cache):
    server, proxy = redis_cache({"name": "some", "prefix": "k", "ttl": "60s"})
    with Connection(proxy.address) as client:
        for key in ["k1", "k2", "x"]:
            client.ask("SET", key, key)
        answer = b"*3\r\n$2\r\nk1\r\n$2\r\nk2\r\n$1\r\nx\r\n"
        for _ in range(3):
            assert client.ask("MGET", "k1", "k2", "x") == answer
        before = calls(server, "get") + calls(server, "mget")
        assert client.ask("MGET", "k1", "k2") == b"*2\r\n$2\r\nk1\r\n$2\r\nk2\r\n"
        assert client.ask("GET", "k1") == b"$2\r\nk1\r\n"
        assert calls(server, "get") + calls(server, "mget") == before, "all of it is kept"
        client.ask("SET", "k2", "new")
        assert client.ask("MGET", "k1", "k2", "x") == answer.replace(b"$2\r\nk2", b"$3\r\nnew")
        client.ask("DEL", "k1")
        client.ask("LPUSH", "k1", "a")
        assert client.ask("MGET", "k1", "k2")[:9] == b"*2\r\n$-1\r\n"
        assert client.ask("GET", "k1").startswith(b"-WRONGTYPE")


@pytest.mark.either_io
def test_errors_of_redis_are_never_kept(redis_cache):
    server, proxy = redis_cache(negative="60s")
    server.ask("LPUSH", "k", "a")
    with Connection(proxy.address) as client:
        for _ in range(2):
            assert client.ask("GET", "k").startswith(b"-WRONGTYPE")
        server.ask("DEL", "k")
        server.ask("SET", "k", "v")
        assert client.ask("GET", "k") == b"$1\r\nv\r\n"


@pytest.mark.either_io
def test_what_is_another_clients_own_passes(redis_server, proxima):
    server = redis_server(options=["--user", "guest", "on", ">secret", "~none:*", "&*", "+@all"])
    made = kept_redis([server])
    made["listeners"][0]["auth"] = "pass"
    proxy = proxima(made)
    with Connection(proxy.addresses[1]) as plain, Connection(proxy.address) as other:
        plain.ask("SET", "k", "zero")
        with Connection(proxy.address) as client:
            assert client.ask("GET", "k") == client.ask("GET", "k") == b"$4\r\nzero\r\n"
        assert other.ask("SELECT", "1") == b"+OK\r\n"
        for _ in range(2):
            assert other.ask("GET", "k") == b"$-1\r\n"
        other.ask("SET", "k", "one")
        for _ in range(2):
            assert other.ask("GET", "k") == b"$3\r\none\r\n"
        assert other.ask("SELECT", "0") == b"+OK\r\n"
        assert other.ask("GET", "k") == b"$4\r\nzero\r\n"
        # A user with fewer rights is refused what others may read.
        assert other.ask("AUTH", "guest", "secret") == b"+OK\r\n"
        assert other.ask("GET", "k").startswith(b"-NOPERM")


@pytest.mark.either_io
def test_who_has_not_logged_in_gets_nothing_that_is_kept(redis_server, proxima, tmp_path):
    server = redis_server(options=["--requirepass", "secret"])
    (tmp_path / "password").write_text("secret\n")
    made = kept_redis([server], pool={"password_file": str(tmp_path / "password")})
    made["listeners"][0]["auth"] = "pass"
    made["listeners"].append({**made["listeners"][0], "address": ports.address()})
    made["listeners"][0]["route"] = "again"
    made["listeners"][2]["route"] = "again"
    made["routes"] = {"again": near("cache")}
    del made["listeners"][2]["auth"]
    proxy = proxima(made)
    with Connection(proxy.addresses[2]) as trusted, Connection(proxy.address) as stranger:
        trusted.ask("SET", "k", "v")
        assert trusted.ask("GET", "k") == trusted.ask("GET", "k") == b"$1\r\nv\r\n"
        assert stranger.ask("GET", "k").startswith(b"-NOAUTH")
        assert stranger.ask("AUTH", "secret") == b"+OK\r\n"
        assert stranger.ask("GET", "k") == b"$1\r\nv\r\n"


def test_a_read_between_watch_and_exec_comes_from_the_server(redis_cache):
    server, proxy = redis_cache()
    with Connection(proxy.address) as client:
        client.ask("SET", "k", "1")
        assert client.ask("GET", "k") == b"$1\r\n1\r\n"
        # Another one changes it at the server, which the proxy does not see.
        server.ask("SET", "k", "2")
        assert client.ask("GET", "k") == b"$1\r\n1\r\n"
        assert client.ask("WATCH", "k") == b"+OK\r\n"
        assert client.ask("GET", "k") == b"$1\r\n2\r\n"
        client.send(array("MULTI") + array("SET", "k", "3") + array("EXEC"))
        assert [client.reply() for _ in range(3)] == [b"+OK\r\n", b"+QUEUED\r\n", b"*1\r\n+OK\r\n"]
        assert client.ask("GET", "k") == b"$1\r\n3\r\n"


@pytest.mark.parametrize("end", ["EXEC", "DISCARD", "a large answer"])
def test_a_transaction_holds_its_keys_until_its_end(redis_cache, end):
    server, proxy = redis_cache()
    server.ask("SET", "large", "x" * 300_000)
    with Connection(proxy.address) as client, Connection(proxy.address) as other:
        other.ask("SET", "k", "old")
        assert other.ask("GET", "k") == b"$3\r\nold\r\n"
        assert client.ask("MULTI") == b"+OK\r\n"
        assert client.ask("SET", "k", "new") == b"+QUEUED\r\n"
        if end == "a large answer":
            assert client.ask("GET", "large") == b"+QUEUED\r\n"
        before = calls(server, "get")
        assert other.ask("GET", "k") == other.ask("GET", "k") == b"$3\r\nold\r\n"
        assert calls(server, "get") == before + 2, "it is about to change, and passes"
        assert client.ask("DISCARD" if end == "DISCARD" else "EXEC")
        expected = b"$3\r\nold\r\n" if end == "DISCARD" else b"$3\r\nnew\r\n"
        assert other.ask("GET", "k") == expected
        before = calls(server, "get")
        assert other.ask("GET", "k") == expected
        assert calls(server, "get") == before, "it is kept again"


def test_who_has_a_connection_for_good_holds_no_key_for_good(redis_cache):
    """Its changes end with their answers, and those in a transaction with that of the transaction."""
    server, proxy = redis_cache()
    with Connection(proxy.address) as owner, Connection(proxy.address) as other:
        owner.ask("HELLO", 3)
        assert owner.ask("CLIENT", "TRACKING", "on") == b"+OK\r\n"

        def is_kept(value):
            assert other.ask("GET", "k") == b"$3\r\n%b\r\n" % value
            before = calls(server, "get")
            assert other.ask("GET", "k") == b"$3\r\n%b\r\n" % value
            return calls(server, "get") == before

        assert owner.ask("SET", "k", "one") == b"+OK\r\n"
        assert is_kept(b"one")
        assert owner.ask("MULTI") == b"+OK\r\n"
        assert owner.ask("SET", "k", "two") == b"+QUEUED\r\n"
        assert owner.ask("WATCH", "k").startswith(b"-ERR")
        assert not is_kept(b"one")
        assert owner.ask("EXEC").startswith(b"*1\r\n")
        assert is_kept(b"two")


def test_a_transaction_that_began_before_anything_was_kept_counts(redis_server, proxima):
    server = redis_server()
    made = kept_redis([server])
    route = made["listeners"][0]["route"]
    made["listeners"][0]["route"] = "cache"
    proxy = proxima(made)
    with Connection(proxy.address) as client, Connection(proxy.address) as other:
        client.ask("SET", "k", "old")
        assert client.ask("MULTI") == b"+OK\r\n"
        assert client.ask("SET", "k", "new") == b"+QUEUED\r\n"
        made["listeners"][0]["route"] = route
        proxy.write(made)
        assert proxy.reload()[0] == 200

        def is_kept():
            before = calls(server, "get")
            other.ask("GET", "k")
            other.ask("GET", "k")
            return calls(server, "get") <= before + 1

        until(is_kept, "the new route keeps replies")
        assert client.ask("EXEC") == b"*1\r\n+OK\r\n"
        assert other.ask("GET", "k") == b"$3\r\nnew\r\n"


@pytest.mark.either_io
def test_a_whole_transaction_and_its_flush_end_what_is_kept(redis_cache):
    _, proxy = redis_cache()
    with Connection(proxy.address) as client:
        for words, gone in [
            (["SET a 2", "SET b 2"], False),
            (["INCR c", "FLUSHALL"], True),
        ]:
            client.ask("MSET", "a", "1", "b", "1")
            assert client.ask("MGET", "a", "b") == b"*2\r\n$1\r\n1\r\n$1\r\n1\r\n"
            inner = b"".join(array(*line.split()) for line in words)
            client.send(array("MULTI") + inner + array("EXEC"))
            assert [client.reply()[:1] for _ in range(len(words) + 2)][-1] == b"*"
            expected = b"$-1\r\n" if gone else b"$1\r\n2\r\n"
            assert client.ask("MGET", "a", "b") == b"*2\r\n" + expected * 2


WRITES = [
    "FLUSHALL",
    "FLUSHDB",
    "DEL k",
    "RENAME k x",
    "COPY other k REPLACE",
    "EXPIRE k 0",
    "GETDEL k",
    "UNLINK k",
]


@pytest.mark.either_io
@pytest.mark.parametrize("words", WRITES)
def test_each_write_of_redis_ends_what_it_changes(redis_cache, words):
    server, proxy = redis_cache()
    with Connection(proxy.address) as client, Connection(proxy.addresses[1]) as plain:
        for changing in [client, plain]:
            client.ask("MSET", "k", "old", "other", "else")
            assert client.ask("GET", "k") == client.ask("GET", "k") == b"$3\r\nold\r\n"
            assert changing.ask(*words.split())[:1] != b"-"
            assert client.ask("GET", "k") == server.ask("GET", "k")


@pytest.mark.parametrize("scripts", ["everything", "keys"])
def test_scripts_change_everything_or_their_keys(redis_server, proxima, scripts):
    server = redis_server()
    proxy = proxima(kept_redis([server], top={"near": {"scripts": scripts}}))
    with Connection(proxy.address) as client:
        client.ask("MSET", "a", "1", "b", "1")
        assert client.ask("GET", "a") == client.ask("GET", "b") == b"$1\r\n1\r\n"
        assert client.ask("EVAL", "return redis.call('set', KEYS[1], '2')", "1", "a") == b"+OK\r\n"
        assert client.ask("GET", "a") == b"$1\r\n2\r\n"
        before = calls(server, "get")
        assert client.ask("GET", "b") == b"$1\r\n1\r\n"
        assert calls(server, "get") == before + (scripts == "everything")
        # A script that is given no keys may change any.
        assert client.ask("EVAL", "return redis.call('set', 'b', '3')", "0") == b"+OK\r\n"
        assert client.ask("GET", "b") == b"$1\r\n3\r\n"


@pytest.mark.either_io
def test_the_memory_is_what_the_file_says_after_a_reload_too(memcached, proxima):
    server = memcached()
    made = kept([server], top={"near": {"memory": "1MiB"}})
    proxy = proxima(made)
    asked = Asked(server)
    with proxy.raw() as client:

        def kept_of_all():
            for number in range(100):
                client.get(f"k{number}")
            asked()
            for number in range(100):
                client.get(f"k{number}")
            return 100 - asked()

        for number in range(100):
            client.set(f"k{number}", "v" * 50_000)
        assert kept_of_all() < 30
        made["near"]["memory"] = "64MiB"
        proxy.write(made)
        assert proxy.reload()[0] == 200
        until(lambda: kept_of_all() == 100, "there is room for all")


@pytest.mark.either_io
def test_clients_that_leave_at_any_time_leave_nothing_behind(cache):
    """After them, each key is kept again: no change and no fetch of theirs is counted any more."""
    server, proxy, asked = cache()
    lines = [b"get k%d", b"mg k%d v", b"set k%d 0 0 5\r\nvalue", b"delete k%d", b"gets k%d"]
    for number, line in itertools.product(range(40), lines):
        client = proxy.raw()
        client.send(line % (number % 4) + b"\r\n")
        client.close() if number % 2 else client.abort()
    with proxy.raw() as client:

        def are_kept():
            for number in range(4):
                # A delete may have come later than what was set here.
                if client.get(f"k{number}") is None:
                    client.set(f"k{number}", "v")
                    client.get(f"k{number}")
            asked()
            for number in range(4):
                assert client.get(f"k{number}") in (b"v", b"value", None)
            return asked() == 0

        until(are_kept, "all keys are kept")


def test_a_change_without_an_answer_ends_with_the_next_answer_of_its_server(cache):
    server, proxy, asked = cache()
    with proxy.raw() as client:
        assert client.ask(b"set k 0 0 3 noreply\r\nnew\r\nget other\r\n") == b"END\r\n"
        asked()
        for _ in range(3):
            assert client.ask(b"get k\r\n").startswith(b"VALUE k 0 3\r\n")
        assert asked() == 1, "it is kept again"


def test_a_flood_of_changes_without_answers_leaves_other_keys_in_the_near_cache(cache):
    server, proxy, asked = cache()
    server.set("hot", "value")
    flood = b"".join(b"set k%d 0 0 1 noreply\r\nx\r\n" % number for number in range(20_000))
    with proxy.raw() as client:
        client.ask(flood + b"get hot\r\n")
        client.ask(flood + b"get hot\r\n")
        asked()
        for _ in range(3):
            assert client.ask(b"get hot\r\n") == b"VALUE hot 0 5\r\nvalue\r\nEND\r\n"
        assert asked() <= 1
