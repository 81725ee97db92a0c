"""A near cache whose values come from an HTTP origin, for clients of both protocols."""

import threading
import time

import pytest

from harness import ports, until
from harness.origin import Origin, broken, endless, reply, silent, slow
from harness.raw import Raw
from harness.redis import Connection

pytestmark = pytest.mark.either_io


class Started:
    """A proxy in front of an origin: memcached at the first listener, Redis at the second."""

    def __init__(self, origin, proxy):
        self.origin = origin
        self.proxy = proxy
        self.memcached = Raw(proxy.addresses[0])
        self.redis = Connection(proxy.addresses[1])

    def get(self, key, client=None):
        """The reply to memcached's `get`."""
        client = client or self.memcached
        client.send(f"get {key}\r\n".encode())
        line = client.until(b"\r\n")
        while line.startswith(b"VALUE") and not line.endswith(b"\r\nEND\r\n"):
            line += client.until(b"END\r\n")
        return line

    def meta(self, line):
        self.memcached.send(line.encode() + b"\r\n")
        head = self.memcached.until(b"\r\n")
        return head + (self.memcached.until(b"\r\n") if head.startswith(b"VA") else b"")

    def line(self, line):
        self.memcached.send(line.encode() + b"\r\n")
        return self.memcached.until(b"\r\n")

    def count(self):
        return len(self.origin.requests)


@pytest.fixture
def start(proxima, cleanup):
    """Starts an origin that answers as a function decides, and a proxy in front of it."""

    def begin(answer, rule=None, path="/maps/{key}", workers=2, **keys):
        origin = Origin(answer)
        cleanup.callback(origin.stop)
        rules = [{"name": "all", "ttl": "60s", "jitter": 0, **(rule or {})}]
        near = {"origin": f"http://{origin.address}{path}", "rules": rules, **keys}
        listeners = [
            {"address": ports.address(), "route": "maps"},
            {"address": ports.address(), "route": "maps", "protocol": "redis"},
        ]
        proxy = proxima({"workers": workers, "listeners": listeners, "routes": {"maps": {"near": near}}})
        proxy.addresses = [listener["address"] for listener in listeners]
        return Started(origin, proxy)

    return begin


def value(body):
    return lambda _: reply(body)


def test_a_value_is_fetched_once_and_given_in_the_words_of_each_protocol(start):
    at = start(value(b"map 1"))
    assert at.get("osd") == b"VALUE osd 0 5\r\nmap 1\r\nEND\r\n"
    assert at.redis.ask("GET", "osd") == b"$5\r\nmap 1\r\n"
    assert at.redis.ask("MGET", "osd") == b"*1\r\n$5\r\nmap 1\r\n"
    assert at.meta("mg osd v") == b"VA 5\r\nmap 1\r\n"
    assert at.meta("mg osd s v f k O7") == b"VA 5 s5 f0 kosd O7\r\nmap 1\r\n"
    assert at.meta("mg b3Nk b k v") == b"VA 5 kb3Nk b\r\nmap 1\r\n"
    assert at.meta("mg osd") == b"HD\r\n"
    assert at.redis.ask("HELLO", 3).startswith(b"%")
    assert at.redis.ask("GET", "osd") == b"$5\r\nmap 1\r\n"
    assert at.origin.targets() == ["/maps/osd"]
    fields = at.origin.requests[0].fields
    assert fields["accept-encoding"] == "identity" and fields["host"] == at.origin.address


def test_several_keys_are_answers_of_their_own(start):
    at = start(lambda request: reply(request.target.encode()))
    assert at.redis.ask("MGET", "a", "b", "a") == (
        b"*3\r\n$7\r\n/maps/a\r\n$7\r\n/maps/b\r\n$7\r\n/maps/a\r\n"
    )
    at.memcached.send(b"get b c\r\n")
    assert at.memcached.until(b"END\r\n") == b"VALUE b 0 7\r\n/maps/b\r\nVALUE c 0 7\r\n/maps/c\r\nEND\r\n"
    at.memcached.send(b"get c c\r\n")
    assert at.memcached.until(b"END\r\n") == b"VALUE c 0 7\r\n/maps/c\r\n" * 2 + b"END\r\n"
    assert sorted(at.origin.targets()) == ["/maps/a", "/maps/b", "/maps/c"]
    assert at.redis.ask("DEL", "a", "a", "b", "x") == b":2\r\n"


def test_404_is_a_miss_and_kept_where_the_rule_says_so(start):
    def missing(_):
        return reply(b"none", "404 Not Found")

    at = start(missing)
    assert at.get("a") == b"END\r\n" and at.redis.ask("GET", "a") == b"$-1\r\n"
    assert at.meta("mg a v") == b"EN\r\n" and at.redis.ask("MGET", "a") == b"*1\r\n$-1\r\n"
    assert at.count() == 4 and at.origin.connections == 1
    at = start(missing, {"negative": "60s"})
    assert at.get("a") == b"END\r\n" and at.redis.ask("GET", "a") == b"$-1\r\n"
    assert at.count() == 1


@pytest.mark.parametrize("status", ["500 Oh", "204 None", "302 Found", "206 Part", "304 Same", "401 No"])
def test_another_status_is_an_error_that_is_kept_for_a_second(start, status):
    at = start(lambda _: reply(b"", status, "location: /maps/b"))
    for _ in range(5):
        assert at.get("a").startswith(b"SERVER_ERROR") and status[:3].encode() in at.get("a")
        assert at.redis.ask("GET", "a").startswith(b"-")
    assert at.count() == 1
    time.sleep(1.1)
    at.origin.answer = value(b"well")
    assert at.get("a") == b"VALUE a 0 4\r\nwell\r\nEND\r\n" and at.count() == 2


def test_an_old_value_stands_for_an_error_and_the_origin_is_left_alone(start):
    at = start(value(b"old"), {"ttl": "200ms", "stale_on_error": "60s"})
    assert b"old" in at.get("a")
    at.origin.answer = lambda _: reply(b"", "500 Oh")
    time.sleep(0.3)
    for _ in range(5):
        assert b"old" in at.get("a")
    assert at.count() == 2


def test_an_entity_tag_renews_what_is_kept(start):
    def tagged(request):
        if request.fields.get("if-none-match") == '"7"':
            return b'HTTP/1.1 304 Not Modified\r\netag: "7"\r\n\r\n'
        return reply(b"seven", "200 OK", 'etag: "7"')

    at = start(tagged, {"ttl": "200ms"})
    for _ in range(4):
        assert at.get("a") == b"VALUE a 0 5\r\nseven\r\nEND\r\n"
        assert at.redis.ask("GET", "a") == b"$5\r\nseven\r\n"
        time.sleep(0.25)
    tags = [request.fields.get("if-none-match") for request in at.origin.requests]
    assert tags == [None, '"7"', '"7"', '"7"']
    at.origin.answer = lambda _: reply(b"eight", "200 OK", 'etag: "8"')
    assert b"eight" in at.get("a") and b"eight" in at.get("a")
    assert at.line("delete a") == b"DELETED\r\n"
    assert b"eight" in at.get("a")
    assert at.origin.requests[-1].fields.get("if-none-match") is None
    # Another version is not confirmed.
    at.origin.answer = lambda _: b'HTTP/1.1 304 Not Modified\r\netag: "9"\r\n\r\n'
    time.sleep(0.25)
    assert at.get("a").startswith(b"SERVER_ERROR")


@pytest.mark.parametrize(
    ("fields", "is_kept"),
    [
        ([], True),
        (["cache-control: max-age=60"], True),
        (["cache-control: max-age=60", "age: 90"], False),
        (["cache-control: max-age=0"], False),
        (["cache-control: no-store"], False),
        (["cache-control: private"], False),
        (["cache-control: no-cache"], False),
        (["cache-control: s-maxage=0, max-age=60"], False),
        (["vary: accept"], False),
        (["expires: 0"], False),
    ],
)
def test_fields_say_whether_a_value_is_kept(start, fields, is_kept):
    at = start(lambda _: reply(b"x", "200 OK", *fields))
    assert all(b"x" in at.get("a") for _ in range(3))
    assert at.count() == (1 if is_kept else 3)


def test_a_stale_value_is_given_while_one_request_renews_it_unless_the_origin_forbids_that(start):
    at = start(value(b"one"), {"ttl": "100ms", "stale": "60s"})
    assert b"one" in at.get("a")
    at.origin.answer = value(b"two")
    time.sleep(0.2)
    assert b"one" in at.get("a")
    until(lambda: b"two" in at.get("a"), "the value is renewed")
    at.origin.answer = lambda _: reply(b"three", "200 OK", "cache-control: must-revalidate")
    time.sleep(0.2)
    at.get("a")
    until(lambda: b"three" in at.get("a"), "the value is renewed")
    at.origin.answer = value(b"four")
    time.sleep(0.2)
    assert b"four" in at.get("a")


def test_chunks_and_a_word_before_the_reply(start):
    def chunked(sock):
        sock.sendall(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")
        sock.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
        time.sleep(0.05)
        sock.sendall(b"2;x=y\r\nde\r\n0\r\ntrailer: x\r\n\r\n")

    at = start(lambda _: chunked)
    assert at.get("a") == b"VALUE a 0 5\r\nabcde\r\nEND\r\n"


def head(*fields):
    return "\r\n".join(["HTTP/1.1 200 OK", *fields, "", ""]).encode()


HOSTILE = {
    "lying length": broken(head("content-length: 100"), b"short"),
    "break in a chunk": broken(head("transfer-encoding: chunked"), b"64\r\nshort"),
    "break between chunks": broken(head("transfer-encoding: chunked"), b"1\r\na\r\n"),
    "no length at all": broken(head(), b"all?"),
    "two lengths": broken(head("content-length: 1", "content-length: 2"), b"ab"),
    "10 GiB": broken(head("content-length: 10737418240"), b"x" * 65536),
    "endless": endless,
    "slow": slow,
    "silent": silent,
    "100 KiB of fields": broken(
        head(*[f"x-{i}: {'y' * 1000}" for i in range(100)], "content-length: 1"), b"a"
    ),
    "one field of 100 KiB": broken(head(f"x: {'y' * 102400}", "content-length: 1"), b"a"),
    "1000 fields": broken(head(*[f"x-{i}: y" for i in range(1000)], "content-length: 1"), b"a"),
    "no HTTP": broken(b"SSH-2.0-x\r\n", b""),
    "nothing": broken(b"", b""),
    "packed": broken(head("content-encoding: gzip", "content-length: 1"), b"a"),
    "upgrade": broken(b"HTTP/1.1 101 Switch\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", b""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_origin_is_an_error_and_delays_nobody(start, name):
    def answer(request):
        return HOSTILE[name] if request.target == "/maps/bad" else reply(b"good")

    at = start(answer, timeout="500ms", workers=1)
    before = at.proxy.memory()
    done = []

    def ask():
        with Raw(at.proxy.addresses[0]) as client:
            begin = time.monotonic()
            done.append((at.get("bad", client), time.monotonic() - begin))

    threads = [threading.Thread(target=ask) for _ in range(5)]
    [thread.start() for thread in threads]
    slowest, number = 0, 0
    while any(thread.is_alive() for thread in threads) or number < 10:
        begin = time.monotonic()
        assert b"good" in at.get(f"good-{number}")
        slowest, number = max(slowest, time.monotonic() - begin), number + 1
    assert len(done) == 5 and all(answer.startswith(b"SERVER_ERROR") for answer, _ in done), done
    assert max(took for _, took in done) < 2 and slowest < 1
    assert at.redis.ask("GET", "bad").startswith(b"-")
    assert at.origin.targets().count("/maps/bad") <= 2
    assert at.proxy.memory() < before + (64 << 20)
    assert b"good" in at.get("good-0")


def test_a_value_above_the_rules_size_is_an_error(start):
    at = start(value(b"x" * 2000), {"largest": "2000B"})
    assert len(at.get("a")) > 2000
    at.origin.answer = value(b"x" * 2001)
    assert at.get("b").startswith(b"SERVER_ERROR") and at.redis.ask("GET", "b").startswith(b"-")


def test_a_large_value_is_served_whole(start):
    body = bytes(range(256)) * 6000
    at = start(value(body), {"largest": "4MiB"})
    for _ in range(2):
        reply = at.redis.ask("GET", "a")
        assert reply == b"$%d\r\n%s\r\n" % (len(body), body)
    assert at.count() == 1


def test_who_misses_one_key_causes_one_request(start):
    def late(_):
        time.sleep(0.3)
        return reply(b"once")

    at = start(late, workers=4, timeout="5s")
    clients = [Raw(at.proxy.addresses[0]) for _ in range(300)]
    for client in clients:
        client.send(b"get a\r\n")
    clients[0].abort()
    for client in clients[1:]:
        assert client.until(b"END\r\n") == b"VALUE a 0 4\r\nonce\r\nEND\r\n"
        client.close()
    assert at.count() == 1
    at.origin.answer = value(b"again")
    assert at.redis.ask("DEL", "a") == b":1\r\n"
    assert b"again" in at.get("a") and at.count() == 2


def test_a_delete_says_whether_there_was_a_value_and_the_next_read_renews(start):
    at = start(value(b"one"), {"negative": "60s"})
    assert at.line("delete a") == b"NOT_FOUND\r\n" and at.redis.ask("DEL", "a") == b":0\r\n"
    assert at.line("md a") == b"NF\r\n"
    for drop, answer in [
        (lambda: at.line("delete a"), b"DELETED\r\n"),
        (lambda: at.redis.ask("DEL", "a"), b":1\r\n"),
        (lambda: at.redis.ask("UNLINK", "a", "b"), b":1\r\n"),
        (lambda: at.line("md a k O1"), b"HD ka O1\r\n"),
    ]:
        before = at.count()
        assert b"one" in at.get("a") and b"one" in at.get("a")
        assert drop() == answer
        assert at.count() == before + 1
    at.get("a")
    at.get("b")
    assert at.redis.ask("DEL", "a", "b", "c") == b":2\r\n"
    at.origin.answer = lambda _: reply(b"", "404 None")
    assert at.get("a") == b"END\r\n" and at.line("delete a") == b"NOT_FOUND\r\n"


def test_a_drop_during_a_fetch_refuses_it(start):
    go = threading.Event()

    def first(_):
        go.wait(5)
        return reply(b"old")

    at = start(first, timeout="10s")
    with Raw(at.proxy.addresses[0]) as reader:
        reader.send(b"get a\r\n")
        until(lambda: at.count() == 1, "the origin is asked")
        assert at.line("delete a") == b"NOT_FOUND\r\n"
        at.origin.answer = value(b"new")
        assert b"new" in at.get("a")
        go.set()
        assert b"old" in reader.until(b"END\r\n")
    assert b"new" in at.get("a") and at.redis.ask("GET", "a") == b"$3\r\nnew\r\n"
    assert at.count() == 2


def test_what_no_value_answers_is_refused(start):
    at = start(value(b"1"))
    for line in [
        "set a 0 0 1\r\nx",
        "incr a 1",
        "touch a 1",
        "gets a",
        "gat 1 a",
        "mg a c",
        "ms a 1\r\nx",
        "md a I",
    ]:
        assert at.line(line).startswith(b"SERVER_ERROR"), line
    for words in [
        ("SET", "a", "x"),
        ("INCR", "a"),
        ("HGET", "a", "b"),
        ("EXPIRE", "a", "1"),
        ("HDEL", "a", "b"),
    ]:
        assert at.redis.ask(*words).startswith(b"-ERR") and b"origin" in at.redis.ask(*words), words
    assert at.get("b") == b"VALUE b 0 1\r\n1\r\nEND\r\n"
    assert at.count() == 1


def test_keys_are_escaped(start):
    at = start(lambda request: reply(request.target.encode()))
    for key, target in [
        ("a/../b", "/maps/a%2F..%2Fb"),
        ("a?b#c@d%2e", "/maps/a%3Fb%23c%40d%252e"),
        ("..%2f", "/maps/..%252f"),
    ]:
        assert target.encode() in at.get(key)
    assert at.redis.ask("GET", b"\0\r\n \xff") == b"$21\r\n/maps/%00%0D%0A%20%FF\r\n"
    before = at.count()
    for key in (".", ".."):
        assert at.get(key).startswith(b"CLIENT_ERROR") and at.redis.ask("GET", key).startswith(b"-ERR")
    assert at.redis.ask("GET", "x" * 10000).startswith(b"-ERR")
    assert at.count() == before


def test_an_origin_that_is_away_is_an_error_and_is_asked_again(start):
    at = start(value(b"x"))
    at.origin.stop()
    assert at.get("a").startswith(b"SERVER_ERROR") and at.redis.ask("GET", "a").startswith(b"-")


def test_a_connection_that_the_origin_has_closed_costs_no_error(start):
    def once(sock):
        sock.sendall(reply(b"x"))

    at = start(lambda _: once, {"ttl": "0s"})
    for number in range(20):
        assert b"x" in at.get(f"a{number}")
    assert at.count() == 20


def test_more_requests_than_the_limit_wait_for_their_turn(start):
    under_way, most, lock = [0], [0], threading.Lock()

    def counted(_):
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.02)
        with lock:
            under_way[0] -= 1
        return reply(b"x")

    at = start(counted, requests=4, timeout="10s")
    clients = [Raw(at.proxy.addresses[0]) for _ in range(40)]
    for number, client in enumerate(clients):
        client.send(f"get a{number}\r\n".encode())
    for client in clients:
        assert b"x" in client.until(b"END\r\n")
    assert most[0] <= 4 and at.count() == 40 and at.origin.connections <= 4


def test_explain_says_where_a_value_is_fetched(start):
    at = start(value(b"x"), path="/maps/{key}?token=secret")
    told = at.proxy.explain("a%40b")
    assert "a miss" in told and f"GET http://{at.origin.address}/maps/a%40b?token=…" in told
    assert "secret" not in told
    at.get("a")
    assert "a hit by rule all, 1 bytes" in at.proxy.explain("a")
    assert "dropped" in at.proxy.explain("a", "delete")
    assert "serve" in at.proxy.explain("a", "set") and "no URL" in at.proxy.explain("..")


@pytest.mark.parametrize("order", ["key=osd", "prefix=os", "all=1"])
def test_an_operators_drop_has_the_origin_asked_again(start, order):
    at = start(lambda request: reply(b"map %d" % at.count()))
    first = at.get("osd")
    assert at.get("osd") == first and at.count() == 1
    status, text = at.proxy.http(f"/near/drop?rule=all&{order}", "POST")
    assert status == 200 and '"dropped":1' in text, text
    assert at.get("osd") != first and at.count() == 2
    assert at.redis.ask("GET", "osd") == b"$5\r\nmap 2\r\n" and at.count() == 2
