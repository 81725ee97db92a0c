"""A client gets through the proxy, byte for byte, the answers of Redis."""

import shlex

import pytest

from harness import corpus
from harness.redis import Connection, array, config

pytestmark = pytest.mark.either_io

COMMANDS = """
SET a 1
GET a
GET none
INCR a
INCRBY a 5
INCRBYFLOAT a 0.5
DECR a
APPEND a xyz
STRLEN a
GETRANGE a 0 -1
SETRANGE a 1 q
SET a 1 EX 100 NX GET
SETNX a 2
SETEX b 100 v
PSETEX b 100000 v
GETEX b PERSIST
GETDEL b
GETSET a 3
MSET {x}x 1 {x}y 2
MSETNX {x}x 1 {x}z 2
MGET {x}x {x}none {x}y
SETBIT bits 7 1
GETBIT bits 7
BITCOUNT bits
BITPOS bits 1
BITFIELD bits GET u8 0 INCRBY u8 0 1
BITOP AND {bits}d {bits}a {bits}b
LCS {x}x {x}y
SUBSTR a 0 0
EXISTS a
EXISTS a a none
DEL none
UNLINK none
TOUCH a
TYPE a
TTL a
PTTL none
EXPIRE a 100
EXPIRE a 100 NX
EXPIREAT a 9999999999
EXPIRETIME a
PEXPIRETIME a
PERSIST a
OBJECT ENCODING a
OBJECT REFCOUNT a
OBJECT IDLETIME none
DUMP none
RENAME {x}x {x}w
RENAMENX {x}w {x}y
COPY {x}y {x}c
LPUSH l a b c
RPUSH l d
LPUSHX none a
LRANGE l 0 -1
LLEN l
LINDEX l 1
LINSERT l BEFORE a z
LSET l 0 q
LREM l 1 q
LTRIM l 0 10
LPOS l a
LPOP l
LPOP none
LPOP l 2
RPOP l 5
RPOP none 1
LMOVE {l}a {l}b LEFT RIGHT
RPOPLPUSH {l}a {l}b
LMPOP 1 l LEFT
BLPOP none 0.01
BLMOVE {l}a {l}b LEFT RIGHT 0.01
BRPOPLPUSH {l}a {l}b 0.01
BLMPOP 0.01 1 none LEFT
SADD s a b c
SADD s a
SCARD s
SISMEMBER s a
SMISMEMBER s a z
SREM s c
SMOVE {s}a {s}b m
SINTER {s}a {s}b
SINTERCARD 2 {s}a {s}b
SUNIONSTORE {s}d {s}a {s}b
SDIFF {s}a {s}b
SREM s b
SSCAN s 0 COUNT 100
SPOP none
SRANDMEMBER none
HSET h f v g w
HSETNX h f x
HGET h f
HGET h none
HMGET h f none
HMSET h i 1
HGETALL h
HGETALL none
HKEYS h
HVALS h
HLEN h
HSTRLEN h f
HEXISTS h f
HINCRBY h i 2
HINCRBYFLOAT h i 0.25
HDEL h i none
HSCAN h 0 COUNT 100
HRANDFIELD none
ZADD z 1 a 2.5 b inf c
ZADD z INCR 1 a
ZADD z XX CH 3 b
ZSCORE z a
ZSCORE z none
ZMSCORE z a none
ZINCRBY z 1 a
ZCARD z
ZCOUNT z -inf +inf
ZRANGE z 0 -1
ZRANGE z 0 -1 WITHSCORES
ZRANGE z 0 -1 REV WITHSCORES
ZRANGE z (1 +inf BYSCORE LIMIT 0 2
ZRANGEBYSCORE z -inf +inf WITHSCORES
ZREVRANGE z 0 0 WITHSCORES
ZRANGEBYLEX z - +
ZLEXCOUNT z - +
ZRANK z a
ZREVRANK z none
ZRANGESTORE {z}d {z}s 0 -1
ZUNION 2 {z}a {z}b WITHSCORES
ZINTERCARD 2 {z}a {z}b
ZDIFFSTORE {z}d 2 {z}a {z}b
ZREM z c
ZREMRANGEBYRANK z 0 0
ZREMRANGEBYSCORE z 0 1
ZPOPMIN z
ZPOPMAX z 2
ZPOPMIN none
BZPOPMIN none 0.01
BZMPOP 0.01 1 none MIN
ZMPOP 1 none MIN
ZSCAN z 0
ZRANDMEMBER none
GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
GEOPOS g Palermo none
GEODIST g Palermo Catania km
GEOHASH g Palermo
GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC WITHCOORD WITHDIST
GEORADIUS g 15 37 200 km COUNT 1
XADD st 1-1 f v
XADD st 2-1 f v g w
XADD st 1-1 f v
XLEN st
XRANGE st - +
XREVRANGE st + - COUNT 1
XREAD COUNT 2 STREAMS st 0
XREAD STREAMS st $
XREAD BLOCK 10 STREAMS st $
XGROUP CREATE st grp 0
XREADGROUP GROUP grp me COUNT 1 STREAMS st >
XPENDING st grp
XACK st grp 1-1
XINFO STREAM st
XINFO GROUPS st
XTRIM st MAXLEN 1
XDEL st 2-1
XAUTOCLAIM st grp me 0 0
PFADD hll a b
PFCOUNT hll
PFMERGE {hll}d {hll}a
SORT l
SORT {l}q ALPHA STORE {l}r
EVAL "return {1,2,{3,'four',{5,false}},redis.status_reply('fine')}" 0
EVAL "return redis.call('GET',KEYS[1])" 1 a
EVAL "return redis.error_reply('MYERR of my own')" 0
EVAL "redis.setresp(3); return {double=3.5}" 0
EVAL "redis.setresp(3); return {map={a=1}}" 0
EVAL "redis.setresp(3); return {set={a=true}}" 0
EVAL "redis.setresp(3); return {big_number='12345678901234567890123'}" 0
EVAL "redis.setresp(3); return {verbatim_string={string='text',format='txt'}}" 0
EVAL "redis.setresp(3); return true" 0
EVAL_RO "return 1" 0
EVALSHA 0000000000000000000000000000000000000000 0
SCRIPT LOAD "return 1"
SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db x
SCRIPT FLUSH
FUNCTION LIST
FCALL none 0
MEMORY USAGE none
DBSIZE
PUBLISH channel message
PUBSUB CHANNELS
PUBSUB NUMPAT
CONFIG GET maxmemory
LATENCY LATEST
SLOWLOG RESET
ACL WHOAMI
MODULE LIST
ROLE
KEYS none*
PING
PING hello
ECHO ""
SELECT 0
CLIENT GETNAME
CLIENT SETNAME me
CLIENT GETNAME
CLIENT SETNAME "a b"
CLIENT NO-EVICT on
READONLY
READWRITE
ASKING
CLUSTER INFO
CLUSTER SLOTS
UNWATCH
EXEC
DISCARD
LPUSH a x
GET
GET a b
SET a
SET a 1 PX
SET a 1 NX XX
NOPE a b
NOPE
CLIENT NOPE
CLIENT
OBJECT NOPE a
SELECT 99
SELECT x
AUTH x
AUTH a b c
HELLO 4
HELLO x
HELLO 3 nonsense
BLPOP a -1
BLPOP a x
EVAL "return 1" x
EVAL "return 1" 5 a
INCR l
HGET a f
EXPIRE a x
LRANGE l a b
COMMAND GETKEYS MSET a 1 b 2
COMMAND INFO nope
COMMAND LIST FILTERBY PATTERN XINFO|STR*
COMMAND LIST FILTERBY MODULE json
COMMAND LIST FILTERBY ACLCAT nope
COMMAND LIST FILTERBY KIND x
COMMAND LIST FILTERBY
CLIENT NO-EVICT on
CLIENT NO-EVICT xx
FLUSHDB
FLUSHALL ASYNC
""".strip().splitlines()

PIPELINES = [
    ["SET k 1", "GET k", "INCR k", "NOPE", "MGET {k}a {k}b", "BLPOP none 0.01", "GET k", "DBSIZE"],
    ["MULTI", "SET t 1", "INCR t", "LPUSH t x", "GET none", "EXEC", "GET t"],
    ["MULTI", "EXEC"],
    ["MULTI", "NOPE", "SET t 1", "EXEC"],
    ["MULTI", "GET", "EXEC", "GET t"],
    ["MULTI", "SET t 1", "DISCARD", "GET t"],
    ["WATCH t", "GET t", "MULTI", "SET t 6", "EXEC", "GET t"],
    ["WATCH t", "SET t 7", "MULTI", "SET t 8", "EXEC", "GET t"],
    ["WATCH t", "UNWATCH", "SET t 7", "MULTI", "SET t 8", "EXEC", "GET t"],
    ["WATCH t", "SET t 7", "MULTI", "EXEC"],
    ["MULTI", "PING", "ECHO x", "SET t 1", "BLPOP none 0", "EXEC"],
    ["MULTI", "SET t 1", "WATCH t", "EXEC"],
    ["MULTI", "SET t 1", "RESET", "GET t"],
    ["MULTI", "SET t 1", "EXEC x", "EXEC", "GET t"],
    ["WATCH t", "MULTI", "UNWATCH", "SET t 1", "EXEC"],
    ["MULTI", "SET t 1", "MULTI", "INCR t", "GET t", "EXEC", "EXEC", "GET t"],
    ["MULTI", "MULTI", "INCR t", "EXEC", "GET t"],
    ["WATCH t", "MULTI", "MULTI", "INCR t", "EXEC", "MULTI", "INCR t", "EXEC"],
    ["MULTI", "COMMAND COUNT", "COMMAND INFO get", "SET t 1", "EXEC"],
]


def both(redis_server, proxima):
    """A connection to a server itself, and one through the proxy to another."""
    direct, behind = redis_server.several(2)
    proxy = proxima(config([behind]))
    return direct.connect(), Connection(proxy.address)


@pytest.mark.parametrize("version", [2, 3], ids=["resp2", "resp3"])
def test_commands_of_all_types_are_answered_byte_for_byte(redis_server, proxima, version):
    direct, through = both(redis_server, proxima)
    for connection in (direct, through):
        if version == 3:
            assert connection.ask("HELLO", 3).startswith(b"%7")
    differ = []
    for line in COMMANDS:
        words = shlex.split(line)
        theirs, ours = direct.ask(*words), through.ask(*words)
        if theirs != ours:
            differ.append((line, theirs, ours))
    assert not differ


@pytest.mark.parametrize("version", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("at_once", [True, False], ids=["at-once", "step-by-step"])
def test_pipelines_and_transactions_are_answered_byte_for_byte(redis_server, proxima, version, at_once):
    direct, through = both(redis_server, proxima)
    for connection in (direct, through):
        if version == 3:
            connection.ask("HELLO", 3)
    differ = []
    for lines in PIPELINES:
        requests = [array(*shlex.split(line)) for line in lines]
        heard = []
        for connection in (direct, through):
            replies = []
            if at_once:
                connection.send(b"".join(requests))
            for request in requests:
                if not at_once:
                    connection.send(request)
                replies.append(connection.reply())
            heard.append(replies)
        if heard[0] != heard[1]:
            differ.append((lines, *heard))
    assert not differ


def test_what_the_table_refuses_is_refused_with_its_reason(redis_server, proxima):
    with Connection(proxima(config([redis_server()])).address) as client:
        for name, arity, _flags, _specs, served in corpus.rows():
            if served != "refused":
                continue
            words = name.upper().split("|")
            filling = ["1"] * (abs(arity) - len(words))
            for sent in (array(*words, *filling), array("MULTI") + array(*words, *filling) + array("EXEC")):
                client.send(sent)
                replies = [client.reply() for _ in range(sent.count(b"*"))]
                told = replies[len(replies) // 2]
                assert told.startswith(b"-ERR " + " ".join(words).encode() + b" is not served"), (words, told)
        assert client.ask("PING") == b"+PONG\r\n"


@pytest.mark.parametrize(
    "line",
    [
        b"ping\r\n",
        b"ping\n",
        b"set a 'b c'\r\nget a\r\n",
        b'set a "\\x41\\n"\r\nget  a \r\n',
        b"\r\n \r\n*0\r\n*-3\r\nping\r\n",
        b"nope x\r\n",
        b"mget {a}1 {a}2\r\nping\r\n",
        b"quit\r\nping\r\n",
    ],
)
def test_inline_commands_are_answered_as_by_the_server(redis_server, proxima, line):
    direct, through = both(redis_server, proxima)
    end = b"" if b"quit" in line else array("QUIT")
    for connection in (direct, through):
        connection.send(line + end)
    assert through.rest() == direct.rest()


@pytest.mark.parametrize(
    "bad",
    [
        b"*abc\r\n",
        b"*01\r\n",
        b"*2147483648\r\n",
        b"*1\r\n$-1\r\n",
        b"*1\r\n$536870913\r\n",
        b"*1\r\nGET\r\n",
        b'set a "b\r\n',
        b"x" * 65537,
        b"POST / HTTP/1.1\r\n",
        b"Host: x\r\n",
    ],
    ids=lambda bad: bad[:20].decode(),
)
def test_what_closes_a_connection_is_answered_by_the_proxy_and_harms_nobody(redis_server, proxima, bad):
    direct, through = both(redis_server, proxima)
    other = Connection(through.address)
    assert other.ask("SET", "k", "v") == b"+OK\r\n"
    for connection in (direct, through):
        assert connection.ask("PING") == b"+PONG\r\n"
        connection.send(bad)
    assert through.rest() == direct.rest()
    assert other.ask("GET", "k") == b"$1\r\nv\r\n"


def test_a_value_without_its_end_never_reaches_the_server(redis_server, proxima):
    server = redis_server()
    proxy = proxima(config([server]))
    for value in (b"PING", b"v" * 300_000):
        with Connection(proxy.address) as client:
            client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%sxx" % (len(value), value))
            assert client.rest() == b"-ERR Protocol error: invalid CRLF in request\r\n"
    assert server.ask("EXISTS", "k") == b":0\r\n"


def test_150_mib_pass_each_way_in_bounded_memory(redis_server, proxima):
    proxy = proxima(config([redis_server()], limits={"value_size": "200MiB"}))
    piece, count = bytes(range(256)) * 4096, 150
    before = proxy.memory()
    with Connection(proxy.address) as client:
        client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % (len(piece) * count))
        for _ in range(count):
            client.send(piece)
        client.send(b"\r\n")
        assert client.reply() == b"+OK\r\n"
        client.send(array("GET", "k") + array("ECHO", "next"))
        assert client.take(12) == b"$%d\r\n" % (len(piece) * count)
        assert all(client.take(len(piece)) == piece for _ in range(count))
        assert client.take(2) == b"\r\n" and client.reply() == b"$4\r\nnext\r\n"
    assert proxy.memory("VmHWM") - before < 16 << 20


@pytest.mark.parametrize("size", [60_000, 70_000, 5_000_000])
def test_large_values_pass_in_any_command_and_position(redis_server, proxima, size):
    server = redis_server()
    proxy = proxima(config([server]))
    value = bytes(range(256)) * (size // 256)
    with Connection(proxy.address) as client:
        for words in (
            ("SET", "k", value),
            ("SET", "k", value, "EX", "100", "GET"),
            ("SET", "k", value, "NX"),
            ("HSET", "h", "f", value, "g", value),
            ("MSET", "{k}1", value, "{k}2", value),
            ("MGET", "{k}1", "{k}2", "none"),
            ("RPUSH", "l", value, "x", value),
            ("LRANGE", "l", "0", "-1"),
            ("HGETALL", "h"),
            ("EVAL", "return ARGV[1]", "1", "k", value),
            ("GET", "k"),
            ("TTL", "none"),
        ):
            client.send(array(*words) + array("ECHO", "next"))
            ours, follows = client.reply(), client.reply()
            assert follows == b"$4\r\nnext\r\n"
            if words[0] in ("MGET", "LRANGE", "HGETALL", "GET", "TTL"):
                assert ours == server.ask(*words), words[0]
            else:
                assert not ours.startswith(b"-"), (words[0], ours[:100])
