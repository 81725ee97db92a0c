"""A client gets through the proxy, byte for byte, the answers of memcached."""

import re

import pytest

from harness.load import Load
from harness.proxy import config

pytestmark = pytest.mark.either_io

LONG = b"k" * 250
TOO_LONG = b"k" * 251
BIG = b"b" * 2_000_000
"""A value that is larger than memcached's limit for an item."""

# All versions of memcached answer these lines alike. wire/captures/differ.tsv has the lines on which they
# differ.
REQUESTS = [
    # Storing commands.
    b"set k 5 0 5\r\nhello\r\n",
    b"set k 0 0 0\r\n\r\n",
    b"set k 4294967295 0 1\r\nx\r\n",
    b"set k 4294967296 0 1\r\nx\r\n",
    b"set crlf 0 0 6\r\n\r\nEND\r\r\n",
    b"set bin 0 0 4\r\n\x00\xff\r\n\r\n",
    b"set gone 0 -1 1\r\nx\r\n",
    b"set " + LONG + b" 0 0 1\r\nx\r\n",
    b"set k 0 0 1 word\r\nx\r\n",
    b"set  k  0  0  1\r\nx\r\n",
    b"set k 0 0 1 \r\nx\r\n",
    b"set k 0 0 1 noreply\r\nx\r\n",
    b"set k +7 +30 1\r\nx\r\n",
    b"get k\r\n",
    b"mg k t\r\n",
    b"set k 0 4294967396 1\r\nx\r\n",
    b"mg k t\r\n",
    b"set k 0 99999999999 1\r\nx\r\n",
    b"get k\r\n",
    b"set k 0 4294967295 1\r\nx\r\n",
    b"get k\r\n",
    b"set k 0 0 1\r\nx\r\n",
    b"mg k t\r\n",
    b"add k 0 0 1\r\ny\r\n",
    b"add fresh 0 0 1\r\ny\r\n",
    b"replace k 0 0 1\r\nz\r\n",
    b"replace absent 0 0 1\r\nz\r\n",
    b"append k 0 0 2\r\n12\r\n",
    b"append absent 0 0 1\r\nx\r\n",
    b"prepend k 0 0 2\r\n<<\r\n",
    b"prepend absent 0 0 1 noreply\r\nx\r\n",
    b"cas k 0 0 1 1\r\nx\r\n",
    b"cas absent 0 0 1 1\r\nx\r\n",
    b"cas k 0 0 1 1 noreply\r\nx\r\n",
    b"cas k 0 0 1 18446744073709551615\r\nx\r\n",
    # Storing commands that fail.
    b"set k 0 0 -1\r\n",
    b"set k 0 0 abc\r\n",
    b"set k 0 0 1\r\nxyzzy\r\n",
    b"set k 0 0 1 noreply\r\nxyzzy\r\n",
    b"set k 0 0 2000000\r\n" + BIG + b"\r\n",
    b"set k 0 0 2000000 noreply\r\n" + BIG + b"\r\n",
    b"get k\r\n",
    # Reading commands.
    b"set a 1 0 1\r\nA\r\n",
    b"set b 2 0 2\r\nBB\r\n",
    b"get a\r\n",
    b"get a \r\n",
    b"get  a\r\n",
    b"get a\n",
    b"get absent\r\n",
    b"get gone\r\n",
    b"get crlf\r\n",
    b"get bin\r\n",
    b"get a b\r\n",
    b"get b absent a\r\n",
    b"get a a a\r\n",
    b"get " + b" ".join(b"n%d" % n for n in range(200)) + b" a\r\n",
    b"gets a\r\n",
    b"gets a b absent\r\n",
    b"get " + LONG + b"\r\n",
    b"get " + TOO_LONG + b"\r\n",
    b"get a " + TOO_LONG + b"\r\n",
    b"gat 0 a\r\n",
    b"gat 100 a b\r\n",
    b"gats 100 a absent\r\n",
    b"gat -1 a\r\n",
    b"get a\r\n",
    b"gat zz b\r\n",
    # Changing commands.
    b"set n 0 0 2\r\n10\r\n",
    b"incr n 1\r\n",
    b"get n\r\n",
    b"set n 0 0 2\r\n10\r\n",
    b"incr n 18446744073709551615\r\n",
    b"decr n 100\r\n",
    b"decr n 1 noreply\r\n",
    b"incr n 5 noreply\r\n",
    b"incr absent 1\r\n",
    b"incr absent 1 noreply\r\n",
    b"incr n abc\r\n",
    b"incr n -1\r\n",
    b"incr b 1\r\n",
    b"touch b 0\r\n",
    b"touch absent 0\r\n",
    b"touch b 0 noreply\r\n",
    b"touch b zz\r\n",
    b"touch b zz noreply\r\n",
    b"delete n\r\n",
    b"delete n\r\n",
    b"delete n noreply\r\n",
    b"delete b 0\r\n",
    b"delete b 0 noreply\r\n",
    b"delete " + TOO_LONG + b"\r\n",
    # Meta commands.
    b"ms m 2\r\nhi\r\n",
    b"ms m 2 T0 F7 c k\r\nhi\r\n",
    b"ms m 2 I C1\r\nhi\r\n",
    b"ms m 2 q\r\nhi\r\n",
    b"ms m 2 ME\r\nhi\r\n",
    b"ms new 2 ME\r\nhi\r\n",
    b"ms m 1 MA\r\n!\r\n",
    b"ms m 1 MP\r\n>\r\n",
    b"ms m 1 MR\r\nr\r\n",
    b"ms absent 1 MR\r\nr\r\n",
    b"ms m 2 MX\r\nhi\r\n",
    b"mg m\r\n",
    b"mg m v\r\n",
    b"mg m v f c k s t O42\r\n",
    b"mg m v q\r\n",
    b"mg absent v q\r\n",
    b"mg absent v\r\n",
    b"mg absent v k O9\r\n",
    b"mg stub v N30 c\r\n",
    b"mg stub v N30 c\r\n",
    b"ms stub 1\r\nx\r\n",
    b"mg m T100 t v\r\n",
    b"mg aGk= b v k\r\n",
    b"ms aGk= 1 b\r\nx\r\n",
    b"mg aGk= b v k\r\n",
    b"mg hi v\r\n",
    b"ma count N0 J5 v\r\n",
    b"ma count v\r\n",
    b"ma count MD D3 v\r\n",
    b"ma count q\r\n",
    b"ma absent q\r\n",
    b"ma absent\r\n",
    b"ma m\r\n",
    b"md count q\r\n",
    b"md count\r\n",
    b"md m I T30\r\n",
    b"mg m v t\r\n",
    b"me m\r\n",
    b"me absent\r\n",
    b"mg !! b v\r\n",
    b"mg " + TOO_LONG + b" v\r\n",
    b"ms m\r\n",
    b"ms m abc\r\n",
    b"ms m S2\r\nhi\r\n",
    b"ms m 2\r\nhi!xyz\r\n",
    b"ms m 2 q\r\nhi!xyz\r\n",
    b"ms m 2000000\r\n" + BIG + b"\r\n",
    b"ms m 2000000 q\r\n" + BIG + b"\r\n",
    # Other commands, and lines that are none.
    b"verbosity 1\r\n",
    b"verbosity 1 noreply\r\n",
    b"config get cluster\r\n",
    b"bogus\r\n",
    b"GET a\r\n",
    b"geta\r\n",
    b"bogus a b c d e f g h i j k l m n o p q r s t u v w x y z\r\n",
    b"b" * 1500 + b"\r\n",
    b"flush_all 0 noreply\r\n",
    b"flush_all abc\r\n",
    b"set a 0 0 1\r\nA\r\n",
    b"get a\r\n",
    b"flush_all\r\n",
    b"get a k m\r\n",
]

CLOSING = [
    b"quit\r\n",
    b"quit noreply\r\n",
    b"x" * 100_000,
    b"get a\r\nquit\r\nget a\r\n",
]
"""Requests after which memcached closes the connection."""


def small(requests):
    return [request for request in requests if len(request) < 10_000]


@pytest.fixture
def pair(memcached, proxima):
    """A client of memcached, and one of the proxy in front of another memcached with the same history."""
    direct, behind = memcached.several(2)
    proxy = proxima(config("cache", {"cache": [behind.address]}, workers=1))
    with direct.raw() as first, proxy.raw() as second:
        yield first, second


def differences(requests, direct, send):
    """The requests to which `send` gets another answer than memcached gives, each with both answers."""
    found = {}
    for request in requests:
        expected, got = direct.ask(request), send(request)
        if got != expected:
            found[request[:200]] = (got[:200], expected[:200])
    return found


def test_every_request_is_answered_as_memcached_answers_it(pair):
    direct, proxied = pair
    assert differences(REQUESTS, direct, proxied.ask) == {}


def test_requests_sent_byte_by_byte_are_answered_as_by_memcached(pair):
    direct, proxied = pair

    def drip(request):
        for byte in request:
            proxied.send(bytes([byte]))
        return proxied.ask(b"")

    assert differences(small(REQUESTS), direct, drip) == {}


def test_requests_sent_as_one_pipeline_are_answered_as_by_memcached(pair):
    direct, proxied = pair
    # memcached forgets replies that it has not sent yet when a later key of a get is bad. The proxy does not
    # imitate that.
    requests = [request for request in small(REQUESTS) if request != b"get a " + TOO_LONG + b"\r\n"]
    everything = b"".join(requests) + b"mg end-of-all k\r\n" + b"quit\r\n"
    direct.send(everything)
    proxied.send(everything)
    assert proxied.rest() == direct.rest()


@pytest.mark.parametrize("request_", CLOSING, ids=lambda request: repr(request[:12]))
def test_the_connection_is_closed_where_memcached_closes_it(pair, request_):
    direct, proxied = pair
    for client in pair:
        client.set("a", "1")
    direct.send(request_)
    proxied.send(request_)
    assert proxied.rest() == direct.rest()


def test_values_around_the_sizes_of_buffers_come_back_unchanged(pair):
    _, proxied = pair
    changed = []
    for size in (0, 1, 4095, 4096, 16383, 16384, 65_400, 65_535, 65_536, 65_537, 131_072, 1_000_000):
        value = (bytes(range(256)) * (size // 256 + 1))[:size]
        proxied.set("sized", value)
        if proxied.get("sized") != value:
            changed.append(size)
    assert changed == []


def test_a_noop_is_answered_in_order(pair):
    for client in pair:
        client.send(b"mg absent v\r\nmn\r\nset a 0 0 1\r\n1\r\nmn x\r\n")
        assert client.until(b"STORED\r\nMN\r\n") == b"EN\r\nMN\r\nSTORED\r\nMN\r\n"


def test_a_delete_of_a_key_named_noreply_gets_an_error(pair, embedded):
    """Not every memcached answers a `delete` of this key, while its client waits for an answer."""
    for client in (pair[1], embedded().raw()):
        client.set("noreply", "1")
        assert client.ask(b"delete noreply\r\n").startswith(b"CLIENT_ERROR ")
        assert client.ask(b"delete noreply 0\r\n") == b"DELETED\r\n"


def test_version_names_a_memcached_version_and_proxima(pair):
    _, proxied = pair
    answer = proxied.ask(b"version\r\n")
    # Libraries choose commands by this number. It is that of a memcached with the commands that the proxy
    # serves.
    number = re.fullmatch(rb"VERSION (\d+)\.(\d+)\.\d+ proxima\b.*\r\n", answer)
    assert number and tuple(map(int, number.groups())) >= (1, 6), answer


QUIET = [
    b"set k 0 zz 1 noreply\r\nx\r\n",
    b"set k 0 0 1 noreply\r\nxyzzy\r\n",
    b"set big 0 0 2000000 noreply\r\n" + BIG + b"\r\n",
    b"incr text 1 noreply\r\n",
    b"incr k abc noreply\r\n",
    b"delete k 1 noreply\r\n",
    b"cas k 0 0 1 1 noreply\r\nx\r\n",
    b"touch k zz noreply\r\n",
    b"flush_all zz noreply\r\n",
    b"ms k 1 q\r\nxyzzy\r\n",
    b"ms k 2000000 q\r\n" + BIG + b"\r\n",
    b"ma text q\r\n",
    b"md absent q\r\n",
    b"mg absent v q\r\n",
]


def test_failing_quiet_requests_shift_no_other_clients_replies(memcached, proxima):
    server = memcached()
    proxy = proxima(config("cache", {"cache": [server.address]}, workers=1))
    with Load(proxy.address, rate=600) as load, proxy.raw() as rude:
        rude.set("text", "no number")
        for _ in range(5):
            for request in QUIET:
                rude.send(request)
            load.after(50)
        # The rude client's own replies are not shifted either: the errors about its mistakes end here.
        rude.ask(b"")
        assert rude.get("text") == b"no number"


def test_the_embedded_store_answers_as_memcached_answers(memcached, embedded):
    # Item ids and `me` show a store's internals, and sizes its limits. The store's own tests cover them.
    own = (b"me ", b"gets", b"gats", b"mg stub", b"ms stub")
    table = [request for request in small(REQUESTS) if not request.startswith(own) and b" c " not in request]
    with memcached().raw() as direct, embedded().raw() as proxied:
        assert differences(table, direct, proxied.ask) == {}
