"""Every route × every way in which a request of Redis can travel. The routes are those of the reference, and
the ways are those of the table of commands, so that a new one fails here until its cells are said, in
`harness/redis_matrix.py`."""

import collections
import subprocess

import pytest
import yaml

from harness import ports, until
from harness.proxy import BINARY
from harness.redis import Connection, Redis, array
from harness.redis_matrix import (
    APART,
    BLOCKING,
    CHANNELS,
    CHILD,
    DISCARDED,
    EITHER,
    ELSEWHERE,
    EMPTY,
    ERROR,
    EXAMPLES,
    HITS,
    KEYLESS,
    LARGE,
    MEMCACHED,
    MISSES,
    NAMES,
    NAMING,
    NOT_BY_KEY,
    OWN,
    REFUSED,
    ROUTES,
    SCRIPTS,
    SERVED,
    STREAMED,
    TAGGED,
    TRANSACTIONS,
    UNSTEADY,
    WATCHED,
    WAYS,
    WHOLE,
    put,
    rule,
)

pytestmark = pytest.mark.either_io


def is_refused(name, reply, words=()):
    """Whether an error says which command is refused, by which route, and what would do."""
    command = words[0].upper().encode() if words else b""
    return (
        reply.startswith(b"-ERR ") and command in reply.upper() and b": " in reply and name.encode() in reply
    )


class Cell:
    """A proxy with one route, servers behind it, and a server that is asked without a proxy."""

    def __init__(self, name, servers, proxy):
        self.name, self.proxy = name, proxy
        self.one, self.other, self.direct, *self.many = [server.connect() for server in servers]
        # These answer before each of their children has: what is late would come behind a flush.
        early = proxy.addresses if name.startswith("all_") else ()
        self.early = [Connection(address) for address in early]

    def flush(self):
        for client in self.early:
            assert client.ask("FLUSHALL") == b"+OK\r\n"
        for server in (self.one, self.other, self.direct, *self.many):
            server.ask("FLUSHALL")

    def clients(self, version, number=0):
        """A client of the proxy, and one of the server."""
        found = Connection(self.proxy.addresses[number]), Connection(self.direct.address)
        for client in found:
            client.ask("HELLO", version)
        return found

    def blocks(self):
        """Whether any server lets a client wait."""
        servers = (self.one, self.other, self.direct, *self.many)
        return any(b"blocked_clients:0" not in server.ask("INFO", "clients") for server in servers)

    def apart(self, client):
        """Five keys, of which the first is at another server than the second, and than the third."""
        self.flush()
        places = {}
        for key in "abcdefghijklmnopqrst":
            client.ask("SET", key, 1)
            for number, server in enumerate(self.many):
                if any(server.ask("EXISTS", name) == b":1\r\n" for name in (key, f"p:{key}", f"{key}::1")):
                    places.setdefault(number, []).append(key)
        if len(places) < 2:
            return list("abcde")
        [first, *_], [second, third, *_] = sorted(places.values(), key=len)[:2]
        return [first, second, third, *(key for key in "abcde" if key not in (first, second, third))]

    def check(self, rule, found, expected, words=()):
        """What is wrong with these replies by this rule; nothing, if they are right."""
        # An error may name the key as the server has it.
        mine = lambda reply: reply.replace(b"'p:", b"'") if reply[:1] == b"-" else reply  # noqa: E731
        is_child = [mine(reply) for reply in found] == expected
        refusals = found[-1:] if len(found) > 1 else found
        is_refusal = all(is_refused(self.name, reply, words) for reply in refusals) or (
            found[-1:] and found[-1].startswith(b"-EXECABORT")
        )
        right = {
            CHILD: is_child,
            EMPTY: is_child,
            REFUSED: is_refusal,
            EITHER: is_child or is_refusal,
            ERROR: b"-ERR no way\r\n" in found
            and all(reply[:4] in (b"+OK\r", b"+QUE", b"-ERR", b"-EXE") for reply in found),
        }
        return [] if right[rule] else [(self.name, rule, words, found[:6], expected[:6])]


@pytest.fixture(scope="module")
def six():
    """Six servers, which all tests of this module use."""
    started = [Redis() for _ in range(6)]
    yield started
    for server in started:
        server.stop()


def configuration(name, servers):
    """Two listeners with this route: its child is a pool of one server, or of several."""
    one, other, _, *several = servers
    pool = lambda *members: {"protocol": "redis", "servers": [server.address for server in members]}  # noqa: E731
    many = {**pool(*several), "hash": {"algorithm": "ketama", "tag": "{}"}}
    routes = [put(ROUTES[name][0], child, one.address) for child in ("one", "many")]
    listeners = [{"address": ports.address(), "protocol": "redis", "route": route} for route in routes]
    return {
        "workers": 1,
        "listeners": listeners,
        "pools": {"one": pool(one), "other": pool(other), "many": many},
    }


def requests(way_of_hits):
    for command, examples in EXAMPLES.items():
        if SERVED.get(command, "here").split(":")[0] in NOT_BY_KEY | {"each"}:
            continue
        if way_of_hits and command in UNSTEADY:
            continue
        for words in examples:
            yield command, words


SETUP = (
    *(
        "SET k 5",
        "RPUSH l a b",
        "HSET h f 1 a 2",
        "ZADD z 1 a 2 b",
        "SADD a m n",
        "SADD b n o",
        "GEOADD g 1 2 a 3 4 b",
    ),
    *("XADD s 1-1 f v", "XGROUP CREATE s g 0"),
)


def by_command(cell, way, version):
    """Each command of the table, with nothing or with something there."""
    rules, wrong = ROUTES[cell.name][1], []
    client, direct = cell.clients(version)
    cell.flush()
    if way == HITS:
        for words in SETUP:
            words = words.split(" ")
            if rule(cell.name, way) == CHILD:
                client.ask(*words)
            direct.ask(*words)
        if cell.name.startswith("all_"):
            # What gathers refuse is there all the same.
            for server in (cell.one, cell.other):
                server.ask("XADD", "s", "1-1", "f", "v"), server.ask("XGROUP", "CREATE", "s", "g", 0)
    for command, words in requests(way == HITS):
        if command in rules.get("skipped", ()):
            continue
        is_refused = command in rules.get("refused", ()) and not (
            command in ("xread", "xreadgroup") and "BLOCK" not in words and command not in OWN | NAMING
        )
        if command == "xread" and "BLOCK" not in words and cell.name.startswith("all_"):
            is_refused = False
        if way == MISSES or rule(cell.name, way) == EMPTY:
            cell.flush()
        if is_refused and way == HITS:
            continue
        expected = [direct.ask(*words)]
        if expected[0].startswith((b"-ERR unknown ", b"-ERR wrong number ", b"-ERR syntax error")):
            continue
        expects = REFUSED if is_refused else rule(cell.name, way)
        expects = EITHER if command in rules.get("either", ()) else expects
        wrong += cell.check(expects, [client.ask(*words)], expected, words)
    return wrong


def several(cell, way, version):
    """Keys that a tag keeps together behind a pool of several servers, or that are apart."""
    client, direct = cell.clients(version, number=1)
    keys = ["{t}a", "{t}b", "{t}c"] if way == TAGGED else cell.apart(client)
    cell.flush()
    a, b, *_ = keys
    asked = [
        ("MSET", *(word for key in keys for word in (key, 1))),
        ("MGET", *keys, "none"),
        ("EXISTS", *keys),
    ]
    asked += [("TOUCH", *keys), ("DEL", *keys), ("DEL", *keys), ("SADD", a, "x", "y"), ("SADD", b, "y")]
    together = [
        ("SINTER", a, b),
        ("SUNIONSTORE", keys[2], a, b),
        ("RENAME", a, keys[2]),
        ("MSETNX", a, 1, b, 2),
    ]
    asked += together
    wrong = []
    for words in asked:
        expected, found = [direct.ask(*words)], [client.ask(*words)]
        is_apart = (
            way == APART and words in together and (rule(cell.name, way) == CHILD or cell.name == "all_async")
        )
        if is_apart:
            if not found[0].startswith(b"-CROSSSLOT '"):
                wrong.append((cell.name, way, words, found))
        else:
            if rule(cell.name, way) == EMPTY:
                cell.direct.ask("FLUSHALL")
                expected = [direct.ask(*words)]
                cell.direct.ask("FLUSHALL")
            wrong += cell.check(rule(cell.name, way), found, expected, words)
    return wrong


def keyless(cell, way, version):
    """Questions are answered by where reads go, and what clears everything spares a shadow."""
    client, _ = cell.clients(version)
    if rule(cell.name, way) in (EMPTY, ERROR):
        cell.flush()
        direct = cell.clients(version)[1]
        asked = [("DBSIZE",), ("KEYS", "*"), ("SCAN", 0), ("RANDOMKEY",)]
        wrong = [
            cell.check(rule(cell.name, way), [client.ask(*words)], [direct.ask(*words)], words)
            for words in asked
        ]
        return sum(wrong, [])
    wrong = []
    pools = [[cell.one], cell.many][: 1 if cell.name == "member" else 2]
    for number, behind in enumerate(pools):
        cell.flush()
        cell.other.ask("SET", "other's", 1)
        client, _ = cell.clients(version, number)
        for key in "abcdef":
            client.ask("SET", key, 1)
        stored = {
            key for server in behind for key in server.ask("KEYS", "*").split(b"\r\n") if key[:1] not in b"*$"
        }
        found, cursor = set(), b"0"
        while True:
            reply = client.ask("SCAN", cursor, "COUNT", 100).split(b"\r\n")
            cursor = reply[2]
            found |= {line for line in reply[3:] if line[:1] not in b"*$"}
            if cursor == b"0":
                break
        listed = client.ask("KEYS", "*").split(b"\r\n")
        listed = [key for key in listed if key[:1] not in b"*$"]
        drawn = client.ask("RANDOMKEY").split(b"\r\n")[1]
        if (client.ask("DBSIZE"), found, sorted(listed), drawn in stored) != (
            b":%d\r\n" % len(stored),
            stored,
            sorted(stored),
            True,
        ):
            wrong.append((cell.name, number, client.ask("DBSIZE"), found, listed, drawn, stored))
        if client.ask("FLUSHALL") != b"+OK\r\n" or any(
            server.ask("DBSIZE") != b":0\r\n" for server in behind
        ):
            wrong.append((cell.name, number, "not flushed"))
        if cell.name == "shadow" and cell.other.ask("EXISTS", "other's") != b":1\r\n":
            wrong.append((cell.name, number, "a shadow was flushed"))
    return wrong


def transaction(cell, way, version):
    """Commands that depend on each other, whose replies show whether they were executed as one."""
    wrong = []
    for number in (0, 1):
        client, direct = cell.clients(version, number)
        cell.flush()
        inner = [("SET", "{t}k", 1), ("INCR", "{t}k"), ("MGET", "{t}k", "{t}none"), ("PING",)]
        inner += [("EXPIRE", "{t}k", 100), ("DEL", "{t}k", "{t}x"), ("SET", "{t}after", 7)]
        if rule(cell.name, way) == EMPTY:
            inner = [
                ("GET", "{t}k"),
                ("SET", "{t}after", 7),
                ("MGET", "{t}k", "{t}none"),
                ("HGETALL", "{t}h"),
            ]
        replies = []
        for connection in (direct, client):
            if way == WHOLE:
                connection.send(b"".join(array(*words) for words in [("MULTI",), *inner, ("EXEC",)]))
                replies.append([connection.reply() for _ in range(len(inner) + 2)])
                continue
            asked = [("WATCH", "{t}k"), ("GET", "{t}k")] * (way == WATCHED)
            asked += [("MULTI",), *inner, ("DISCARD" if way == DISCARDED else "EXEC",)]
            replies.append([connection.ask(*words) for words in asked])
        expects = rule(cell.name, way)
        is_refused = expects == REFUSED
        # Whatever was answered, the client goes on, and nothing was executed by halves.
        after = client.ask("GET", "{t}after")
        servers = [cell.one, cell.other, *cell.many]
        executed = sum(
            server.ask("EXISTS", "{t}after", "p:{t}after", "{t}after::1") != b":0\r\n" for server in servers
        )
        if is_refused and not (any(reply.startswith(b"-ERR ") for reply in replies[1]) and executed == 0):
            wrong.append((cell.name, way, version, number, replies[1], executed))
        if expects == CHILD and way != DISCARDED and (executed < 1 or after != b"$1\r\n7\r\n"):
            wrong.append((cell.name, way, version, number, "not executed", after))
        if not is_refused:
            wrong += cell.check(expects, replies[1], replies[0], ())
    return wrong


def blocking(cell, way, version):
    """A command that waits: for nothing, for what is there, and for what comes meanwhile."""
    client, direct = cell.clients(version)
    cell.flush()
    if rule(cell.name, way) in (REFUSED, ERROR):
        words = ("BLPOP", "l", 1)
        return cell.check(rule(cell.name, way), [client.ask(*words)], [], words)
    wrong = []
    for words in (("BLMOVE", "l", "l2", "LEFT", "RIGHT", 0.01), ("BLPOP", "l", 0.01)):
        expects = (
            REFUSED if words[0].lower() in ROUTES[cell.name][1].get("refused", ()) else rule(cell.name, way)
        )
        wrong += cell.check(expects, [client.ask(*words)], [direct.ask(*words)], words)
    if rule(cell.name, way) != CHILD:
        return wrong
    pusher, _ = cell.clients(version)
    replies = []
    for connection, other in ((direct, cell.direct), (client, pusher)):
        connection.send(array("BLMOVE", "l", "l2", "LEFT", "RIGHT", 5))
        until(cell.blocks, "a server lets the client wait")
        other.ask("RPUSH", "l", "x")
        replies.append([connection.reply()])
    return wrong + cell.check(CHILD, replies[1], replies[0])


def channels(cell, way, version):
    """A message comes once to who has subscribed, by name or by pattern."""
    wrong = []
    for number in (0, 1):
        client, _ = cell.clients(version, number)
        other, _ = cell.clients(version, number)
        for verb, name in (("SUBSCRIBE", "c"), ("PSUBSCRIBE", "c*")):
            found = client.ask(verb, name)
            if rule(cell.name, way) in (REFUSED, ERROR):
                if not found.startswith(b"-ERR "):
                    wrong.append((cell.name, verb, found))
                continue
            other.ask("PUBLISH", "c", "hello"), other.ask("PUBLISH", "c", "again")
            for text in (b"hello", b"again"):
                message = client.reply()
                if not (b"message" in message and text in message):
                    wrong.append((cell.name, version, number, verb, message))
            client.ask(f"{verb[:-9]}UNSUBSCRIBE", name)
    return wrong


def scripts(cell, way, version):
    client, direct = cell.clients(version)
    cell.flush()
    script = "redis.call('SET', KEYS[1], ARGV[1]) return {redis.call('GET', KEYS[1]), ARGV[1]}"
    # What a script answers without a server is what it answers that finds nothing.
    script = "return redis.call('GET', KEYS[1])" if rule(cell.name, way) == EMPTY else script
    words = ("EVAL", script, 1, "k", "v")
    return cell.check(rule(cell.name, way), [client.ask(*words)], [direct.ask(*words)], words[:1])


def has_arrived(cell, number, length):
    """Whether each child has a value of this length, not only the one that has answered for all."""
    children = ([cell.one], cell.many)[number], [cell.other]
    return all(any(server.ask("STRLEN", "k") == length for server in child) for child in children)


def streamed(cell, way, version):
    wrong = []
    for number in (0, 1):
        client, direct = cell.clients(version, number)
        cell.flush()
        asked = [
            ("SET", "k", LARGE),
            ("GET", "k"),
            ("STRLEN", "k"),
            ("APPEND", "k", LARGE),
            ("GETRANGE", "k", 1, 100),
            ("SETRANGE", "k", 7, LARGE),
        ]
        for words in asked:
            expected, found = [direct.ask(*words)], [client.ask(*words)]
            if rule(cell.name, way) == EMPTY:
                cell.direct.ask("FLUSHALL")
                expected = [direct.ask(*words)]
            if not (ok := not cell.check(rule(cell.name, way), found, expected, words[:2])):
                wrong.append((cell.name, version, words[0], found[0][:80], expected[0][:80], ok))
            if cell.name == "all_fastest":
                # What is large has a connection of its own, which the next request may overtake.
                length = direct.ask("STRLEN", "k")
                until(lambda: has_arrived(cell, number, length), "the slower child has it as well")
    return wrong


CHECKS = {
    **dict.fromkeys((MISSES, HITS), by_command),
    **dict.fromkeys((TAGGED, APART), several),
    **dict.fromkeys(TRANSACTIONS, transaction),
    KEYLESS: keyless,
    BLOCKING: blocking,
    CHANNELS: channels,
    SCRIPTS: scripts,
    STREAMED: streamed,
}


def test_every_route_of_the_reference_has_its_cells(capsys):
    assert sorted(ROUTES) == sorted(NAMES)
    assert set(CHECKS) == set(WAYS)
    cells = collections.Counter(rule(name, way) for name in ROUTES for way in WAYS)
    with capsys.disabled():
        print("\ncells of the matrix by rule, each in RESP2 and RESP3:", dict(cells.most_common()))
    assert sum(cells.values()) == len(NAMES) * len(WAYS)


def test_every_command_by_keys_is_in_the_matrix():
    by_keys = {name for name, served in SERVED.items() if served.split(":")[0] not in NOT_BY_KEY | {"each"}}
    assert by_keys <= set(EXAMPLES), by_keys - set(EXAMPLES)


def with_rule(*rules):
    return [name for name in ROUTES if rule(name, MISSES) in rules]


@pytest.mark.parametrize("name", with_rule(CHILD, EMPTY, ERROR))
def test_a_route_gives_what_its_child_gives_or_says_why_not(name, six, proxima):
    proxy = proxima(configuration(name, six))
    cell, wrong = Cell(name, six, proxy), []
    for version in (2, 3):
        for way, check in CHECKS.items():
            if rule(name, way) != ELSEWHERE:
                wrong += check(cell, way, version)
    assert not wrong, "\n".join(map(repr, wrong[:25]))
    until(lambda: proxy.metric("dedicated_lanes") == 0, "lanes of clients that left are given back")


@pytest.mark.parametrize("name", with_rule(MEMCACHED))
def test_a_route_for_memcached_alone_is_refused_for_redis(name, six, tmp_path):
    file = tmp_path / "proxima.yaml"
    file.write_text(yaml.safe_dump(configuration(name, six)))
    checked = subprocess.run([BINARY, "check", file], capture_output=True, text=True)
    assert checked.returncode != 0 and f"`{name}` serves memcached alone" in checked.stderr + checked.stdout
