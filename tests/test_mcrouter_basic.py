"""Plain commands through mcrouter's door and a pool of one server: values, expiry times, large values."""

import time

import pytest

from harness import PATIENCE, until

pytestmark = pytest.mark.either_io

STORED, MISS = b"STORED\r\n", b"END\r\n"


@pytest.fixture
def server(memcached):
    return memcached(item="8m", memory=128)


@pytest.fixture
def client(server, routed):
    with routed("PoolRoute|A", {"A": [server]}).raw() as client:
        yield client


def hit(value, flags=0):
    return b"VALUE k %d %d\r\n%b\r\nEND\r\n" % (flags, len(value), value)


def test_values_flags_and_conditions_are_those_of_the_server(client):
    assert client.ask(b"get k\r\n") == MISS
    assert client.ask(b"replace k 0 0 1\r\nx\r\n") == b"NOT_STORED\r\n"
    assert client.ask(b"add k 17 0 1\r\nx\r\n") == STORED
    assert client.ask(b"add k 0 0 1\r\ny\r\n") == b"NOT_STORED\r\n"
    assert client.ask(b"get k\r\n") == hit(b"x", 17)
    assert client.ask(b"replace k 18 0 0\r\n\r\n") == STORED
    assert client.ask(b"get k\r\n") == hit(b"", 18)
    assert client.ask(b"get a k b k\r\n") == b"VALUE k 18 0\r\n\r\n" * 2 + MISS


def test_cas_stores_for_the_newest_token_alone(client):
    assert client.ask(b"cas k 0 0 1 1\r\nx\r\n") == b"NOT_FOUND\r\n"
    client.set("k", "1")
    token = client.ask(b"gets k\r\n").split()[4]
    client.set("k", "2")
    assert client.ask(b"cas k 0 0 1 %b\r\n3\r\n" % token) == b"EXISTS\r\n"
    token = client.ask(b"gats 0 k\r\n").split()[4]
    assert client.ask(b"cas k 0 0 1 %b\r\n3\r\n" % token) == STORED
    assert client.get("k") == b"3"


def test_append_and_prepend_change_what_is_there(client):
    for command in (b"append", b"prepend"):
        assert client.ask(b"%b k 0 0 1\r\nx\r\n" % command) == b"NOT_STORED\r\n"
    client.set("k", "b", flags=5)
    assert client.ask(b"append k 9 0 2\r\nc\n\r\n") == STORED
    assert client.ask(b"prepend k 9 0 1\r\na\r\n") == STORED
    assert client.ask(b"get k\r\n") == hit(b"abc\n", 5)


NOW = [0, 1000, -1, -1000, 2_000_000_000, "past"]


@pytest.mark.parametrize("ttl", NOW)
def test_expiry_is_passed_on_as_it_is(client, ttl):
    seconds = int(time.time()) - 100 if ttl == "past" else ttl
    is_gone = ttl == "past" or ttl < 0
    after = MISS if is_gone else hit(b"x")
    for command in (b"set", b"add"):
        assert client.ask(b"%b k 0 %d 1\r\nx\r\n" % (command, seconds)) == STORED
        assert client.ask(b"get k\r\n") == after
        client.ask(b"delete k\r\n")
    client.set("k", "y")
    assert client.ask(b"replace k 0 %d 1\r\nx\r\n" % seconds) == STORED
    assert client.ask(b"get k\r\n") == after
    for command, answer in ((b"touch k %d", b"TOUCHED\r\n"), (b"gat %d k", hit(b"x"))):
        client.set("k", "x")
        assert client.ask((command + b"\r\n") % seconds) == answer
        assert client.ask(b"get k\r\n") == after
    if is_gone:
        assert client.ask(b"touch k %d\r\n" % seconds) == b"NOT_FOUND\r\n"
        assert client.ask(b"gat %d k\r\n" % seconds) == MISS


def test_expiry_of_a_second_ends_and_may_be_taken_back(client):
    for key in "abc":
        client.set(key, "x", ttl=1)
    assert client.ask(b"touch b 0\r\n") == b"TOUCHED\r\n"
    assert client.ask(b"gat 100 c\r\n").startswith(b"VALUE c ")
    until(lambda: client.get("a") is None, "the value expires")
    time.sleep(1)
    assert client.get("b") == client.get("c") == b"x"


def test_delete_and_sums_answer_as_the_server(client):
    assert client.ask(b"delete k\r\n") == b"NOT_FOUND\r\n"
    for command in (b"incr", b"decr"):
        assert client.ask(b"%b k 1\r\n" % command) == b"NOT_FOUND\r\n"
    client.set("k", "10")
    assert client.ask(b"incr k 5\r\n") == b"15\r\n"
    assert client.ask(b"decr k 16\r\n") == b"0\r\n"
    assert client.ask(b"delete k\r\n") == b"DELETED\r\n"
    assert client.ask(b"get k\r\n") == MISS
    client.set("k", "1")
    # Old clients send a time of 0.
    assert client.ask(b"delete k 0\r\n") == b"DELETED\r\n"


def test_noreply_is_silent_and_done(client, server):
    client.send(b"set k 0 0 1 noreply\r\n1\r\nadd k 0 0 1 noreply\r\n2\r\nappend k 0 0 1 noreply\r\n3\r\n")
    client.send(b"incr k 1 noreply\r\ntouch k 0 noreply\r\n")
    assert client.ask(b"") == b""
    assert client.get("k") == b"14"
    client.send(b"delete k noreply\r\n")
    assert client.get("k") is None
    assert server.get("k") is None


def test_value_of_two_megabytes_is_stored_and_read(client):
    value = bytes(range(256)) * (8 << 10)
    client.set("k", value, flags=3)
    client.sock.settimeout(PATIENCE)
    assert client.ask(b"get k\r\n") == hit(value, 3)
    assert client.ask(b"append k 0 0 1\r\nx\r\n") == STORED
    assert client.get("k") == value + b"x"


def test_version_is_mcrouters_and_quit_closes(client):
    client.send(b"version\r\n")
    assert client.line() == b"VERSION 1.0.0 mcrouter\r\n"
    client.send(b"quit\r\n")
    assert client.rest() == b""


def port(server):
    return server.address.rsplit(":", 1)[1]


def test_port_of_a_pool_replaces_that_of_its_servers(memcached, routed):
    server = memcached()
    for name in ("127.0.0.1", "127.0.0.1:1"):
        for number in (int(port(server)), "%PORT%"):
            pool = {"servers": [name], "port_override": number}
            with routed("PoolRoute|A", {"A": pool}, f"--config-params=PORT:{port(server)}").raw() as client:
                client.set("k", name)
            assert server.get("k") == name.encode()


def test_carbon_router_name_is_accepted(memcached, routed):
    with routed("PoolRoute|A", {"A": [memcached()]}, "--carbon-router-name", "Memcache").raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
