"""The embedded store answers Redis byte for byte as a server does, in bounded memory."""

import random
import shlex
import threading

import pytest

from harness import ports, until
from harness.redis import Connection, array

LARGEST = 9223372036854775807

COMMANDS = f"""
GET a
SET a 1
GET a
SET a 2 NX
SET a 2 XX
SET none 2 XX
SET a 3 GET
SET fresh 3 GET
SET fresh 4 NX GET
SET fresh 4 XX GET
SET a 1 EX 100
TTL a
SET a 2 KEEPTTL
TTL a
SET a 2
TTL a
SET a 1 PX 100000 XX GET
SET a 1 EXAT 9999999999
EXPIRETIME a
PEXPIRETIME a
SET a 1 PXAT 9999999999123
EXPIRETIME a
PEXPIRETIME a
SET a 1 ex 10 EX 20
SET a 1 EX 10 PX 20
SET a 1 EX 10 KEEPTTL
SET a 1 KEEPTTL EX 10
SET a 1 EX
SET a 1 EX x
SET a 1 EX 0
SET a 1 EX -1
SET a 1 PX 0
SET a 1 EXAT 0
SET a 1 EX {LARGEST}
SET a 1 EX {LARGEST // 1000}
SET a 1 PX {LARGEST}
SET a 1 EX {LARGEST + 1}
SET a 1 NX XX
SET a 1 XX NX
SET a 1 NOPE
SET a 1 PERSIST
SET a
SET past 1 EXAT 1
GET past
SET past 1 PXAT 1
EXISTS past
SETNX a 1
SETNX n 1
SETEX s 100 v
TTL s
SETEX s 0 v
SETEX s -5 v
SETEX s x v
PSETEX s 100000 v
PSETEX s 0 v
GETSET a 9
GETSET gone 9
GETEX a
GETEX a EX 100
TTL a
GETEX a PERSIST
TTL a
GETEX a PX 100000
GETEX a EXAT 9999999999
GETEX a PXAT 9999999999001
PEXPIRETIME a
GETEX a EX 0
GETEX none EX 0
GETEX a EX x
GETEX a KEEPTTL
GETEX a PERSIST EX 1
GETEX a NOPE
GETEX a EXAT 1
GET a
GETDEL n
GETDEL n
APPEND ap abc
APPEND ap def
APPEND ap ""
STRLEN ap
STRLEN none
EXPIRE ap 100
APPEND ap g
TTL ap
GETRANGE ap 0 -1
GETRANGE ap 1 2
GETRANGE ap -3 -1
GETRANGE ap -1 -3
GETRANGE ap 5 1
GETRANGE ap 0 100
GETRANGE ap 100 200
GETRANGE ap -100 2
GETRANGE ap -100 -50
GETRANGE ap {LARGEST} {LARGEST}
GETRANGE ap {-LARGEST - 1} {LARGEST}
GETRANGE ap x 1
GETRANGE ap 1 x
GETRANGE ap 0 {LARGEST + 1}
GETRANGE none 0 -1
SUBSTR ap 1 2
SETRANGE ap 1 ZZ
GET ap
TTL ap
SETRANGE ap 10 Y
GET ap
SETRANGE new 3 x
GET new
SETRANGE none 5 ""
EXISTS none
SETRANGE ap 5 ""
SETRANGE ap -1 x
SETRANGE ap x x
SETRANGE ap 536870912 x
SETRANGE ap 536870911 xy
SETRANGE ap {LARGEST} x
SETRANGE ap {LARGEST + 1} x
INCR c
INCR c
INCRBY c 40
DECR c
DECRBY c 1
INCRBY c -5
DECRBY c -5
GET c
EXPIRE c 100
INCR c
TTL c
INCRBY c x
INCRBY c 1.5
INCRBY c {LARGEST + 1}
INCRBY c {LARGEST}
INCRBY top {LARGEST}
INCR top
INCRBY top 1
DECRBY bottom {LARGEST}
DECR bottom
DECR bottom
DECRBY bottom {-LARGEST - 1}
SET text abc
INCR text
SET float 1.5
INCR float
SET padded " 1"
INCR padded
SET zero 01
INCR zero
SET minus -0
INCR minus
SET plus +1
INCR plus
SET empty ""
INCR empty
GET empty
STRLEN empty
SET long 99999999999999999999
INCR long
MSET x 1 y 2
MSET x 1 y
MSET x
MGET x y none x
MSETNX x 1 z 2
MSETNX p 1 q 2
MSETNX p 1 q
MSETNX p 1 p 2
MGET p q
EXISTS x y none x
TOUCH x y none
DEL x none x
UNLINK y y
TYPE p
TYPE none
EXPIRE p 100
EXPIRE none 100
TTL p
EXPIRE p 200 NX
EXPIRE p 200 XX
EXPIRE p 100 GT
EXPIRE p 300 GT
EXPIRE p 400 LT
EXPIRE p 100 LT
EXPIRE p 200 XX GT
EXPIRE p 150 XX LT
EXPIRE p 100 NX GT
EXPIRE p 100 GT LT
EXPIRE p 100 NX XX
EXPIRE p 100 NOPE
EXPIRE p 100 NOPE ab
EXPIRE p x NOPE
EXPIRE p x
EXPIRE p {LARGEST}
EXPIRE p {LARGEST // 1000}
EXPIRE p {-LARGEST - 1}
EXPIRE p {LARGEST + 1}
PEXPIRE p {LARGEST}
PEXPIRE p 100000
PERSIST p
PERSIST p
PERSIST none
EXPIRE p 100 GT
EXPIRE p 100 LT
EXPIRE p 100 NX
TTL p
EXPIREAT p 9999999999
EXPIRETIME p
PEXPIREAT p 9999999999499
EXPIRETIME p
PEXPIREAT p 9999999999500
EXPIRETIME p
PEXPIRETIME p
EXPIREAT p {LARGEST // 1000 + 1}
PEXPIREAT p 5 NX
PEXPIREAT p {LARGEST} LT
EXPIRETIME none
PEXPIRETIME none
TTL none
PTTL none
PTTL q
EXPIRETIME q
EXPIRE q 0
EXISTS q
SET q 1
EXPIRE q -1
GET q
SET q 1
PEXPIREAT q 1
GET q
DBSIZE
SCAN x
SCAN 1.5
SCAN 0 COUNT 0
SCAN 0 COUNT -1
SCAN 0 COUNT x
SCAN 0 COUNT
SCAN 0 NOPE 1
SCAN 0 MATCH
FLUSHDB NOPE
FLUSHDB ASYNC SYNC
FLUSHDB ASYNC
DBSIZE
RANDOMKEY
SET only 1
RANDOMKEY
FLUSHALL
SCAN 0
GET
GET a b
GETRANGE a 0
TTL
PING
PING hello
ECHO x
NOPE a
SELECT 0
CLIENT GETNAME
QUIT
""".strip().splitlines()


def store(**keys):
    """A configuration with a listener for each protocol, both leading to the embedded store."""
    listeners = [
        {"address": ports.address(), "protocol": "redis", "route": "embedded"},
        {"address": ports.address(), "protocol": "memcached", "route": "embedded"},
    ]
    return {"workers": 2, "listeners": listeners, **keys}


def speak(connection, version):
    if version == 3:
        assert connection.ask("HELLO", 3).startswith(b"%7")
    return connection


def is_close(*replies):
    """Whether these are seconds that are left, which pass between two questions."""
    one, other = (int(reply[1:]) for reply in replies)
    return one > 0 and other > 0 and abs(one - other) < 60


@pytest.mark.either_io
@pytest.mark.parametrize("version", [2, 3], ids=["resp2", "resp3"])
def test_embedded_store_answers_every_command_byte_for_byte(redis_server, proxima, version):
    server, proxy = redis_server(), proxima(store())
    direct, near = (speak(each, version) for each in (server.connect(), Connection(proxy.address)))
    differ = []
    for line in COMMANDS:
        words = shlex.split(line)
        theirs, ours = direct.ask(*words), near.ask(*words)
        if line == "SCAN 0":
            # The cursor of an empty store may go on.
            theirs, ours = theirs[-4:], ours[-4:]
        if theirs != ours and not (words[0] == "TTL" and is_close(theirs, ours)):
            differ.append((line, theirs, ours))
    assert not differ


def test_embedded_store_and_server_agree_on_random_commands(redis_server, proxima):
    server, proxy = redis_server(), proxima(store())
    direct, near = server.connect(), Connection(proxy.address)
    dice = random.Random(7)
    keys = ["a", "b", "c", "d"]
    numbers = ["0", "1", "-1", "7", "-7", "100", "536870911", str(LARGEST), str(-LARGEST - 1), "x", ""]
    values = ["", "1", "-3", "x" * 300, str(LARGEST), "a\r\nb\0"]
    seconds = ["9999999999", "8888888888", "1", "-1", "0", "x"]
    moments = [("EX", number) for number in seconds] + [("PX", "9999999999001"), ("PX", "1"), ("PX", "x")]
    shapes = [
        lambda key: ["SET", key, dice.choice(values)],
        lambda key: [
            "SET",
            key,
            dice.choice(values),
            *dice.sample(["NX", "XX", "GET", "KEEPTTL"], dice.randint(0, 3)),
        ],
        lambda key: ["SET", key, dice.choice(values), (moment := dice.choice(moments))[0] + "AT", moment[1]],
        lambda key: ["GETEX", key, *dice.choice([[], ["PERSIST"], ["EXAT", dice.choice(seconds)]])],
        lambda key: [dice.choice(["GET", "GETDEL", "STRLEN", "TYPE", "PERSIST", "EXPIRETIME"]), key],
        lambda key: [dice.choice(["INCR", "DECR", "PEXPIRETIME"]), key],
        lambda key: [dice.choice(["INCRBY", "DECRBY"]), key, dice.choice(numbers)],
        lambda key: [dice.choice(["GETRANGE", "SUBSTR"]), key, dice.choice(numbers), dice.choice(numbers)],
        lambda key: [
            "SETRANGE",
            key,
            dice.choice(["0", "3", "400", "-1", "x", "536870912"]),
            dice.choice(values),
        ],
        lambda key: ["APPEND", key, dice.choice(values)],
        lambda key: [
            {"EX": "EXPIREAT", "PX": "PEXPIREAT"}[(moment := dice.choice(moments))[0]],
            key,
            moment[1],
            *dice.sample(["NX", "XX", "GT", "LT"], dice.randint(0, 2)),
        ],
        lambda key: [dice.choice(["DEL", "EXISTS", "TOUCH", "UNLINK", "MGET"]), key, dice.choice(keys), key],
        lambda key: [dice.choice(["MSET", "MSETNX"]), key, dice.choice(values), dice.choice(keys), "2"],
    ]
    for _ in range(60):
        requests = [dice.choice(shapes)(dice.choice(keys)) for _ in range(100)]
        for connection in (direct, near):
            connection.send(b"".join(array(*words) for words in requests))
        replies = [(words, direct.reply(), near.reply()) for words in requests]
        differ = [each for each in replies if each[1] != each[2]]
        assert not differ[:3]


def test_a_key_is_gone_when_its_time_is_over(proxima):
    proxy = proxima(store())
    near = Connection(proxy.address)
    near.ask("SET", "k", "v", "PX", "150")
    assert near.ask("GET", "k") == b"$1\r\nv\r\n"
    assert 0 < int(near.ask("PTTL", "k")[1:]) <= 150
    until(lambda: near.ask("GET", "k") == b"$-1\r\n", "the key has expired")
    assert near.ask("TTL", "k") == b":-2\r\n"
    assert near.ask("SET", "k", "w", "NX") == b"+OK\r\n"


def test_a_value_is_stored_only_over_its_equal(proxima):
    near = Connection(proxima(store()).address)
    assert near.ask("SET", "k", "v", "IFEQ", "old") == b"$-1\r\n"
    near.ask("SET", "k", "old")
    assert near.ask("SET", "k", "v", "IFEQ", "other") == b"$-1\r\n"
    assert near.ask("SET", "k", "v", "IFEQ", "old", "GET", "EX", "10") == b"$3\r\nold\r\n"
    assert near.ask("GET", "k") == b"$1\r\nv\r\n"
    assert near.ask("SET", "k", "v", "IFEQ", "v", "NX") == b"-ERR syntax error\r\n"


def scan(connection, *options):
    """All keys of a walk, in the order of their coming."""
    cursor, found = "0", []
    while True:
        head, *lines = connection.ask("SCAN", cursor, *options).split(b"\r\n")
        assert head == b"*2"
        cursor, found = lines[1].decode(), found + lines[4::2]
        if cursor == "0":
            return found


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["COUNT", "1000"],
        ["COUNT", str(LARGEST)],
        ["MATCH", "k1*"],
        ["MATCH", "*[13579]"],
        ["MATCH", "k?"],
        ["MATCH", "[^k]*"],
        ["MATCH", r"\k5", "COUNT", "3"],
        ["TYPE", "string"],
        ["TYPE", "hash"],
    ],
    ids=" ".join,
)
def test_a_walk_finds_what_a_server_finds(redis_server, proxima, options):
    server, proxy = redis_server(), proxima(store())
    direct, near = server.connect(), Connection(proxy.address)
    for connection in (direct, near):
        connection.ask("MSET", *(word for number in range(300) for word in (f"k{number}", number)))
        connection.ask("MSET", "other", 1, "[x]", 2)
    assert sorted(set(scan(near, *options))) == sorted(set(scan(direct, *options)))


def test_keys_that_stay_are_found_by_a_walk_while_others_come_and_go(proxima):
    near = Connection(proxima(store()).address)
    stay = {b"stay%d" % number for number in range(1000)}
    near.ask("MSET", *(word for key in stay for word in (key, 1)))
    cursor, found, round_ = "0", [], 0
    while True:
        _, _, cursor, _, *keys = near.ask("SCAN", cursor, "COUNT", "20").split(b"\r\n")
        found += keys[1::2]
        if cursor == b"0":
            break
        round_ += 1
        near.ask("MSET", *(word for number in range(100) for word in (f"go{round_}-{number}", 1)))
        near.ask("DEL", *(f"go{round_ - 1}-{number}" for number in range(100)))
    assert stay <= set(found)


def test_keys_of_the_two_protocols_are_apart(proxima):
    proxy = proxima(store())
    near, other = Connection(proxy.addresses[0]), proxy.raw(1)
    assert near.ask("SET", "k", "redis") == b"+OK\r\n"
    assert other.get("k") is None
    other.set("k", "memcached")
    assert near.ask("GET", "k") == b"$5\r\nredis\r\n"
    assert near.ask("DBSIZE") == b":1\r\n"
    assert scan(near) == [b"k"]
    near.ask("FLUSHALL")
    assert near.ask("DBSIZE") == b":0\r\n"
    assert other.get("k") == b"memcached"
    near.ask("SET", "k", "again")
    assert other.ask(b"flush_all\r\n") == b"OK\r\n"
    assert other.get("k") is None
    assert near.ask("GET", "k") == b"$5\r\nagain\r\n"


def test_both_protocols_share_one_limit_of_memory(proxima):
    limit = 8 << 20
    proxy = proxima(store(embedded={"memory": limit}))
    near, other = Connection(proxy.addresses[0]), proxy.raw(1)
    value = b"v" * 10_000
    for number in range(800):
        other.set(f"m{number}", value)
    for number in range(6400):
        near.send(array("SET", f"r{number}", value, "EX", "1000"))
    assert {near.reply() for _ in range(6400)} == {b"+OK\r\n"}
    assert proxy.metric("embedded_bytes") <= limit
    assert int(near.ask("DBSIZE")[1:]) * len(value) <= limit
    assert near.ask("GET", "r6399") == b"$10000\r\n" + value + b"\r\n"


def test_what_the_store_cannot_take_is_refused_and_changes_nothing(proxima):
    proxy = proxima(store())
    near = Connection(proxy.address)
    too_large = b"-ERR object too large for cache\r\n"
    near.ask("SET", "k", "small", "EX", "1000")
    for words in (
        ("SET", "k", b"x" * (1 << 20)),
        ("SET", "k", b"x" * (5 << 20)),
        ("SET", "k", b"x" * (5 << 20), "EX", "10"),
        ("SETEX", "k", "10", b"x" * (5 << 20)),
        ("SETRANGE", "k", str(1 << 20), "x"),
        ("SETRANGE", "k", "536870000", "x"),
        ("APPEND", "k", b"x" * (1 << 20)),
        ("MSET", "other", "1", "k", b"x" * (1 << 20)),
        ("SET", b"y" * (1 << 20), "v"),
    ):
        assert near.ask(*words) == too_large, words[0]
        assert near.ask("ECHO", "next") == b"$4\r\nnext\r\n"
    assert near.ask("MGET", "k", "other") == b"*2\r\n$5\r\nsmall\r\n$-1\r\n"
    assert is_close(near.ask("TTL", "k"), b":1000\r\n")
    assert proxy.memory("VmHWM") < 200 << 20


@pytest.mark.parametrize("size", [65_536, 70_000, 1_000_000])
def test_a_value_of_many_packets_is_stored_whole_with_its_options(proxima, size):
    near = Connection(proxima(store()).address)
    value = random.Random(size).randbytes(size)
    assert near.ask("SET", "k", value, "EX", "1000", "NX") == b"+OK\r\n"
    assert near.ask("GET", "k") == b"$%d\r\n%s\r\n" % (size, value)
    assert is_close(near.ask("TTL", "k"), b":1000\r\n")
    assert near.ask("SET", "k", value, "NX") == b"$-1\r\n"


def test_a_request_of_many_keys_is_served_and_its_reply_bounded(proxima):
    proxy = proxima(store(limits={"value_size": 4 << 20}))
    near = Connection(proxy.address)
    keys = [f"key:{number}" for number in range(50_000)]
    assert near.ask("MSET", *(word for key in keys for word in (key, "v"))) == b"+OK\r\n"
    assert near.ask("EXISTS", *keys) == b":50000\r\n"
    assert near.ask("MGET", *keys) == b"*50000\r\n" + b"$1\r\nv\r\n" * 50_000
    assert near.ask("DEL", *keys) == b":50000\r\n"
    near.ask("SET", "large", b"x" * 1_000_000)
    assert near.ask("MGET", *["large"] * 1000) == b"-ERR out of memory for the reply\r\n"
    assert near.ask("PING") == b"+PONG\r\n"
    assert near.ask("MSETNX", *keys).startswith(b"-ERR the embedded store takes an MSETNX")
    assert proxy.memory("VmHWM") < 300 << 20


def test_every_other_command_is_refused_by_its_name(proxima):
    near = Connection(proxima(store()).address)
    near.send(array("COMMAND"))
    near.reply()
    names = near.ask("COMMAND", "LIST").split(b"\r\n")[2::2]
    assert len(names) > 240
    answered = []
    for name in map(bytes.decode, names):
        if name in ("quit", "reset"):
            continue
        reply = near.ask(name, *["1"] * 3)
        # Nothing else is answered, and nothing is due.
        assert near.ask("ECHO", name) == b"$%d\r\n%s\r\n" % (len(name), name.encode())
        if f"{name.upper()} is not served".encode() not in reply and b"wrong number" not in reply:
            answered.append(name)
    refused = {
        "lpush",
        "hset",
        "sadd",
        "zadd",
        "eval",
        "blpop",
        "subscribe",
        "publish",
        "watch",
        "rename",
        "incrbyfloat",
    }
    assert not refused & set(answered)
    assert {"set", "exists", "mget", "getrange"} <= set(answered)
    assert near.ask("LPUSH", "k", "v") == (
        b"-ERR LPUSH is not served by the embedded store, which has strings and their expiry\r\n"
    )


def test_a_transaction_is_refused_with_a_reply_for_each_of_its_commands(proxima):
    near = Connection(proxima(store()).address)
    requests = [("MULTI",), ("SET", "k", "1"), ("INCR", "k"), ("EXEC",)]
    for at_once in (True, False):
        if at_once:
            near.send(b"".join(array(*words) for words in requests))
        for words in requests:
            reply = near.reply() if at_once else near.ask(*words)
            assert b"MULTI" not in words or reply.startswith(b"-ERR MULTI is not served")
        assert near.ask("PING") == b"+PONG\r\n"
    near.ask("DEL", "k")


def test_workers_count_together_and_one_of_many_takes_a_lock(proxima):
    proxy = proxima({**store(), "workers": 4})
    won = []

    def work(number):
        with Connection(proxy.address) as near:
            for turn in range(50):
                near.send(array("INCR", "sum") * 20)
                for _ in range(20):
                    near.reply()
                if near.ask("MSETNX", f"a{turn}", number, f"b{turn}", number) == b":1\r\n":
                    won.append(turn)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Connection(proxy.address) as near:
        assert near.ask("GET", "sum") == b"$5\r\n12000\r\n"
        assert sorted(won) == list(range(50))
        for turn in range(50):
            _, one, _, other = near.ask("MGET", f"a{turn}", f"b{turn}").split(b"\r\n")[1:5]
            assert one == other


def test_a_client_library_works_with_the_embedded_store(proxima):
    redis = pytest.importorskip("redis")
    host, port = proxima(store()).address.rsplit(":", 1)
    for protocol in (2, 3):
        client = redis.Redis(host, int(port), protocol=protocol, decode_responses=True)
        client.flushdb()
        assert client.set("k", "v", ex=100, nx=True) is True
        with client.pipeline(transaction=False) as pipe:
            assert pipe.get("k").incr("n").mget("k", "n", "none").execute() == ["v", 1, ["v", "1", None]]
        assert sorted(client.scan_iter("*")) == ["k", "n"]
        assert client.info()["role"] == "master"
        with pytest.raises(redis.ResponseError, match="LPUSH is not served by the embedded store"):
            client.lpush("list", "x")
        client.close()
