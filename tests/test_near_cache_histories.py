"""Readers and writers with versions over four workers: a near cache returns nothing that is older than what
was acknowledged before the read began, whatever happens to servers, connections and clients."""

import itertools
import time

import pytest

from harness import SOAK
from harness.copies import PATIENT
from harness.histories import History, Refused, Write
from harness.near_cache import kept, kept_redis, near
from harness.proxy import config
from harness.redis import Connection, array

SECONDS = 180 if SOAK else 2.5
READERS, WRITERS = 16, 8
KEYS = 16

pytestmark = [pytest.mark.heavy, pytest.mark.verdict, pytest.mark.timeout(SECONDS + 60)]

LARGE = 150_000
"""Bytes of a value that is streamed."""


def _answer(client, expected):
    line = client.line()
    if line not in expected:
        raise Refused(line)
    return line


def change_memcached(client, name, version, removes):
    """Changes a key in one of the ways that memcached has."""
    if removes:
        word = f"delete {name}" if version % 2 else f"md {name}"
        client.send(word.encode() + b"\r\n")
        return _answer(client, [b"DELETED\r\n", b"NOT_FOUND\r\n", b"HD\r\n", b"NF\r\n"])
    padding = b"x" * (LARGE if version % 11 == 0 else 10)
    value = b"%d %b" % (version, padding)
    head = f"set {name} 0 0 {len(value)}" if version % 2 else f"ms {name} {len(value)}"
    client.send(head.encode() + b"\r\n" + value + b"\r\n")
    return _answer(client, [b"STORED\r\n", b"HD\r\n"])


def read_memcached(client, name):
    """Reads a version in one of the forms."""
    forms = [f"get {name}", f"mg {name} v", f"mg {name} s v q O7", f"mg {name} v k"]
    client.form = getattr(client, "form", 0) + 1
    line = forms[client.form % len(forms)]
    client.send(line.encode() + (b"\r\nmn\r\n" if " q" in line else b"\r\n"))
    head = client.line()
    if head.startswith(b"SERVER_ERROR"):
        raise Refused(head)
    if head in (b"END\r\n", b"MN\r\n") or head.startswith(b"EN"):
        return None
    is_get = head.startswith(b"VALUE")
    assert is_get or head.startswith(b"VA "), (line, head)
    value = client.exactly(int(head.split()[3 if is_get else 1]) + 2)
    end = b"END\r\n" if is_get else b"MN\r\n" if " q" in line else None
    if end:
        assert client.line() == end
    number, padding = value.split(b" ", 1)
    assert padding.strip(b"x") == b"\r\n", "the value is another's, or is cut off"
    return int(number)


def play(history, proxy, listeners, abandons=False, write=None):
    """Begins all clients: those that read at the first listener, and those that write at each of these."""
    write = write or Write(change_memcached)
    for number in range(WRITERS):
        listener = listeners[number % len(listeners)]
        mine = range(number, KEYS, WRITERS)
        history.run(history.write, lambda at=listener: proxy.raw(at), list(mine), write, abandons)
    for number in range(READERS):
        history.run(history.read, lambda: proxy.raw(0), number, read_memcached)
    # One more client comes and leaves in the middle of everything.
    history.run(come_and_go, history, proxy)


def come_and_go(history, proxy):
    for number in itertools.count():
        if history.is_over():
            return
        client = proxy.raw(0)
        client.send(b"".join(b"get k%d\r\n" % (number + more) for more in range(8)))
        time.sleep(0.005)
        client.abort() if number % 2 else client.close()


RULES = {"ttl": "300ms", "stale": "200ms", "negative": "100ms", "stale_on_error": "1s"}


@pytest.mark.parametrize("flushes", [False, True])
def test_a_pool_that_is_changed_by_all_ways(memcached, proxima, flushes):
    server = memcached(threads=2)
    renamed = {"modify_key": {"child": "cache", "ensure_prefix": "k"}}
    proxy = proxima(kept([server], pool={"timeout": PATIENT}, more=[renamed], **RULES))
    history = History(KEYS, SECONDS)
    play(history, proxy, [0, 1, 2])
    if flushes:
        history.run(history.flush, lambda: proxy.raw(1), flush_memcached, 0.05)
    history.check()


def flush_memcached(client):
    client.send(b"flush_all\r\n")
    _answer(client, [b"OK\r\n"])


def test_a_server_that_stands_still_now_and_then(memcached, proxima):
    """Changes are answered late, or given up, and are executed when the server goes on."""
    server = memcached(threads=2)
    pool = {"timeout": "150ms", "eject": {"failures": 0}}
    proxy = proxima(kept([server], pool=pool, **RULES))
    history = History(KEYS * 8, SECONDS)

    def stand_still():
        while not history.is_over():
            time.sleep(0.3)
            server.freeze()
            time.sleep(0.25)
            server.thaw()

    for number in range(WRITERS):
        mine = list(range(number, KEYS * 8, WRITERS))
        at = number % 2
        writing = Write(change_memcached)
        history.run(history.write, lambda at=at: proxy.raw(at), mine, writing, True)
    for number in range(READERS):
        history.run(history.read, lambda: proxy.raw(0), number, read_memcached)
    history.run(stand_still)
    history.check()
    assert history.errors > 0, "no connection was given up"


def switch(history, proxy):
    """Switches the rule off and on again, as an operator may: nothing is counted while it is off."""
    while not history.is_over():
        for order in ("off", "on"):
            status, text = proxy.http(f"/near/{order}?rule=all", "POST")
            assert status == 200, text
            time.sleep(0.07)


def test_a_rule_that_is_switched_off_and_on(memcached, proxima):
    server = memcached(threads=2)
    proxy = proxima(kept([server], pool={"timeout": PATIENT}, **RULES))
    history = History(KEYS, SECONDS)
    play(history, proxy, [0, 1])
    history.run(lambda: switch(history, proxy))
    history.check()
    assert proxy.metric("near_hits_total") > 0


@pytest.mark.parametrize("switched", [False, True])
def test_copies_one_of_which_is_killed_and_one_frozen(memcached, proxima, switched):
    servers = memcached.several(3)
    pools = {
        "cache": {
            "servers": [server.address for server in servers],
            "replicated": True,
            "timeout": "300ms",
        }
    }
    proxy = proxima(config(near("cache", **RULES), pools, "cache", workers=4))
    # A repair removes keys.
    history = History(KEYS, SECONDS + 1, may_miss=True)
    play(history, proxy, [0, 1], write=Write(change_memcached, removing=0))

    def hurt():
        while not history.is_over():
            time.sleep(0.4)
            servers[1].kill()
            time.sleep(0.3)
            servers[1].start()
            time.sleep(0.4)
            servers[2].freeze()
            time.sleep(0.5)
            servers[2].thaw()

    history.run(hurt)
    if switched:
        history.run(lambda: switch(history, proxy))
    history.check()


def test_the_next_pool_takes_over(memcached, proxima):
    servers = memcached.several(2)
    pools = {
        name: {"servers": [server.address], "timeout": PATIENT}
        for name, server in zip(["one", "two"], servers, strict=True)
    }
    route = {"failover": ["one", "two"]}
    proxy = proxima(config(near(route, **RULES), pools, route, workers=4))
    history = History(KEYS, SECONDS, may_miss=True)
    play(history, proxy, [0, 1], abandons=True)
    history.run(lambda: (time.sleep(SECONDS / 2), servers[0].kill()))
    history.check()


def test_a_ttl_that_changes_under_load(memcached, proxima):
    server = memcached(threads=2)
    made = kept([server], pool={"timeout": PATIENT}, **RULES)
    proxy = proxima(made)
    history = History(KEYS, SECONDS)
    play(history, proxy, [0, 1])

    def reload():
        for ttl in itertools.cycle(["0s", "50ms", "10s", None]):
            if history.is_over():
                return
            route = "cache" if ttl is None else near("cache", **{**RULES, "ttl": ttl})
            made["listeners"][0]["route"] = route
            proxy.write(made)
            status, text = proxy.reload()
            assert status == 200, text
            time.sleep(0.1)

    history.run(reload)
    history.check()


def _redis(reply):
    if reply[:1] == b"-":
        raise Refused(reply)
    return reply


SCRIPT = """if ARGV[1] == '' then return redis.call('del', KEYS[1]) end
return redis.call('set', KEYS[1], ARGV[1])"""


def change_redis(client, name, version, removes):
    """Changes a key by a command, a transaction in one piece or step by step, under WATCH, or by a script."""
    words = ["DEL", name] if removes else ["SET", name, f"{version} x"]
    way = version % 5
    if way == 0:
        return _redis(client.ask(*words))
    if way == 1:
        client.send(array("MULTI") + array(*words) + array("EXEC"))
        return [_redis(client.reply()) for _ in range(3)]
    if way in (2, 3):
        if way == 3:
            _redis(client.ask("WATCH", name))
            _redis(client.ask("GET", name))
        _redis(client.ask("MULTI"))
        _redis(client.ask(*words))
        return _redis(client.ask("EXEC"))
    return _redis(client.ask("EVAL", SCRIPT, "1", name, "" if removes else f"{version} x"))


def read_redis(client, name):
    client.form = getattr(client, "form", 0) + 1
    words = [["GET", name], ["MGET", name, "other"], ["GETRANGE", name, "0", "-1"]][client.form % 3]
    reply = _redis(client.ask(*words))
    bulk = reply.split(b"\r\n")[2 if words[0] == "MGET" else 1]
    return int(bulk.split()[0]) if b" " in bulk else None


@pytest.mark.parametrize("scripts", ["everything", "keys"])
@pytest.mark.parametrize("flushes", [False, True])
def test_transactions_scripts_and_flushes_of_redis(redis_server, proxima, scripts, flushes):
    server = redis_server()
    pool = {"timeout": PATIENT}
    proxy = proxima(kept_redis([server], pool=pool, top={"near": {"scripts": scripts}}, **RULES))
    history = History(KEYS, SECONDS)
    writing = Write(change_redis, removing=9)
    for number in range(WRITERS):
        address = proxy.addresses[number % 2]
        mine = list(range(number, KEYS, WRITERS))
        history.run(history.write, lambda address=address: Connection(address), mine, writing)
    for number in range(READERS):
        history.run(history.read, lambda: Connection(proxy.addresses[0]), number, read_redis)
    if flushes:
        word = "FLUSHALL" if scripts == "keys" else "FLUSHDB"

        def flush(client):
            _redis(client.ask(word))

        history.run(history.flush, lambda: Connection(proxy.addresses[1]), flush, 0.05)
    history.check()
