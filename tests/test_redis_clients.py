"""redis-py, redis-cli and redis-benchmark with their defaults."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import threading

import pytest

from harness import until
from harness.building import build
from harness.near_cache import near
from harness.proxy import BINARY, ROOT, environment
from harness.redis import Connection, array, config

redis = pytest.importorskip("redis")

pytestmark = pytest.mark.either_io


@pytest.fixture(params=["one-server", "four-servers", "near-cache"])
def proxy(request, redis_server, proxima):
    settings = config(redis_server.several(1 if request.param == "one-server" else 4))
    if request.param == "near-cache":
        settings["listeners"][0]["route"] = near("redis", negative="60s")
    settings["pools"]["redis"]["hash"] = {"algorithm": "ketama", "tag": "{}"}
    return proxima(settings)


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def client(request, proxy):
    host, port = proxy.address.split(":")
    with redis.Redis(host=host, port=int(port), protocol=request.param, decode_responses=True) as client:
        yield client


def test_redis_py_reads_writes_and_pipelines(client):
    assert client.ping() and client.set("a", "1", ex=100) and client.get("a") == "1"
    assert client.mset({f"k{n}": n for n in range(50)})
    assert client.mget([f"k{n}" for n in range(50)]) == [str(n) for n in range(50)]
    client.hset("h", mapping={"f": "v", "g": "w"})
    assert client.hgetall("h") == {"f": "v", "g": "w"}
    client.zadd("z", {"a": 1.5, "b": 2})
    assert client.zrange("z", 0, -1, withscores=True)[0][1] == 1.5
    with client.pipeline(transaction=False) as pipeline:
        for n in range(100):
            pipeline.incr(f"n{n % 7}")
        assert sum(pipeline.execute()) > 100
    assert client.delete(*(f"k{n}" for n in range(50))) == 50
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        client.lpush("a", "x")


def test_redis_py_transacts_watches_and_retries(client):
    def double(pipeline):
        value = int(pipeline.get("{t}n") or 1)
        pipeline.multi()
        pipeline.set("{t}n", value * 2)
        pipeline.incr("{t}times")

    assert client.transaction(double, "{t}n") == [True, 1]
    with client.pipeline() as pipeline:
        pipeline.watch("{t}n")
        client.set("{t}n", 100)
        pipeline.multi()
        pipeline.set("{t}n", 0)
        with pytest.raises(redis.WatchError):
            pipeline.execute()
    assert client.get("{t}n") == "100"


def heard(channel):
    """The next message of a channel; confirmations are passed over."""
    return until(lambda: channel.get_message(ignore_subscribe_messages=True, timeout=1), "a message")["data"]


def test_redis_py_subscribes_and_blocks(client):
    with client.pubsub() as channel:
        channel.subscribe("news", "other")
        channel.psubscribe("p*")
        confirmed = 0
        while confirmed < 3:
            confirmed += channel.get_message(timeout=1) is not None
        client.publish("news", "hello")
        assert heard(channel) == "hello"
        client.publish("pattern", "there")
        assert heard(channel) == "there"
    push = threading.Timer(0.2, client.rpush, ("list", "x"))
    push.start()
    assert list(client.blpop("list", timeout=10)) == ["list", "x"]
    push.join()


def test_redis_py_scripts(client):
    script = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    assert [script(keys=[f"s{n}"], args=[n]) for n in range(10)] == list(range(10))


def run(name, proxy, *arguments, text=None):
    if not shutil.which(name):
        pytest.skip(f"{name} is missing: scripts/prepare.sh installs it")
    host, port = proxy.address.split(":")
    command = [name, "-h", host, "-p", port, *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)


def test_redis_cli_asks_and_pipes(proxy):
    assert run("redis-cli", proxy, "set", "a", "1").stdout == "OK\n"
    assert run("redis-cli", proxy, "-3", "hello").returncode == 0
    commands = "".join(f"SET key:{n} {n}\n" for n in range(1000))
    assert "errors: 0, replies: 1000" in run("redis-cli", proxy, "--pipe", text=commands).stdout
    assert run("redis-cli", proxy, "get", "key:999").stdout == "999\n"


def test_commands_are_told_as_a_server_tells_them(proxy, redis_server):
    asked = [[b"a", b"x"], [b"get"], [b"XREAD"], [b"client|id"], [b"mget", b"blpop", b"eval"]]

    def told(address):
        host, port = address.split(":")
        with redis.Redis(host=host, port=int(port)) as client:
            client.response_callbacks.clear()
            commands = {row[0]: row[1:6] for row in client.execute_command("COMMAND")}
            names = {*client.execute_command("COMMAND LIST")}
            assert client.execute_command("COMMAND COUNT") == len(commands)
            assert {*commands} == {name for name in names if b"|" not in name}
            infos = [client.execute_command("COMMAND INFO", *words) for words in asked]
            return commands, names, [[info and info[:6] for info in row] for row in infos]

    (ours, our_names, our_infos), (theirs, their_names, their_infos) = map(
        told, (proxy.address, redis_server().address)
    )
    assert theirs.keys() <= ours.keys() and their_names <= our_names
    without_flags = [
        [info and [info[0], info[1], *info[3:]] for info in row] for row in (*our_infos, *their_infos)
    ]
    assert without_flags[: len(asked)] == without_flags[len(asked) :]


def test_the_example_runs_as_it_stands(io, fixed_ports):
    page = (ROOT / "examples/redis-pool/README.md").read_text("utf-8")
    first, second = re.findall(r"(?:^    .*\n)+", page, re.MULTILINE)
    start, run = first.strip().rsplit("\n", 1)
    shell = {"shell": True, "cwd": ROOT, "capture_output": True, "text": True, "timeout": 60}
    shell["env"] = {**environment(), "PATH": f"{pathlib.Path(BINARY).parent}:{os.environ['PATH']}"}
    with fixed_ports, contextlib.ExitStack() as cleanup:
        for port in range(7101, 7105):
            stop = f"redis-cli -p {port} shutdown nosave"
            cleanup.callback(subprocess.run, stop, **shell)
        assert subprocess.run(start, **shell).returncode == 0
        words = [*run.split()[1:], "--io", io]
        proxy = subprocess.Popen([BINARY, *words], cwd=ROOT, stderr=subprocess.DEVNULL)
        cleanup.callback(proxy.wait, 20)
        cleanup.callback(proxy.terminate)
        # A reader types more slowly than a server starts.
        for port in [*range(7101, 7105), 6380]:
            ping = f"redis-cli -p {port} ping"
            until(lambda ping=ping: "PONG" in subprocess.run(ping, **shell).stdout, f"{port} serves")
        shown = subprocess.run(second, **shell)
    assert shown.returncode == 0 and shown.stdout.startswith("OK\n1\n2\n3\n4\n4\n"), shown


def test_redis_benchmark_finds_no_error(proxy):
    result = run("redis-benchmark", proxy, "-n", "2000", "-P", "16", "-q", "-t", "set,get,incr,lpush,mset")
    assert result.returncode == 0 and "rror" not in result.stdout + result.stderr, result.stdout


def test_redis_cli_scans_and_finds_the_biggest_keys(proxy):
    commands = "".join(f"SET key:{n} {n}\n" for n in range(500)) + "RPUSH biggest " + "x " * 50 + "\n"
    run("redis-cli", proxy, "--pipe", text=commands)
    found = run("redis-cli", proxy, "--scan").stdout.split()
    assert set(found) == {*(f"key:{n}" for n in range(500)), "biggest"}
    assert len(run("redis-cli", proxy, "--scan", "--pattern", "key:1*").stdout.split()) == 111
    result = run("redis-cli", proxy, "--bigkeys")
    assert result.returncode == 0 and "Sampled 501 keys" in result.stdout, result.stdout + result.stderr
    assert re.search(r"Biggest +list found .+biggest.+ has 50 items", result.stdout), result.stdout


NAMED = ["CLIENT SETINFO LIB-NAME lib", "CLIENT SETINFO LIB-VER 1.0"]
STARTS = {
    "redis-py-8": [["HELLO 3"], ["CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type x"], NAMED],
    "go-redis-2": [["hello 2"], ["select 0"], ["client maint_notifications on"], NAMED],
    "jedis": [NAMED],
    "jedis-3": [["HELLO 3 AUTH default any"], NAMED],
    "lettuce": [["HELLO 3"], NAMED, ["MULTI"], ["SET {k}a 1", "GET {k}a", "EXEC"]],
    "lettuce-2": [["PING"], ["SELECT 0"], NAMED],
    "node-redis": [["HELLO 3", *NAMED], ["QUIT"]],
    "glide": [["HELLO 3"], NAMED, ["INFO REPLICATION"]],
    "rueidis": [["HELLO 3", *NAMED], ["CLUSTER SHARDS"], ["PING"]],
    "redigo": [["SET a 1"], ["GET a"]],
    "redis-cli": [["COMMAND DOCS"], ["DBSIZE"], ["READONLY"], ["TYPE a", "TYPE b"], ["MEMORY USAGE none"]],
    "redis-cli-stat": [["CONFIG GET databases", "INFO"], ["PING"]],
    "redis-benchmark": [["CONFIG GET save", "CONFIG GET appendonly"]],
}
"""What libraries and programs send first; what stands together is sent in one piece."""
REFUSED = {
    "CLIENT MAINT_NOTIFICATIONS": b"-ERR unknown subcommand ",
    "CLUSTER SHARDS": b"-ERR This instance has cluster support disabled\r\n",
    "READONLY": b"-ERR This instance has cluster support disabled\r\n",
}
"""What servers refuse as well: clients know these texts."""


@pytest.mark.parametrize("start", STARTS)
def test_the_first_words_of_libraries_are_answered_as_they_expect(proxy, start):
    with Connection(proxy.address) as client:
        for piece in STARTS[start]:
            client.send(b"".join(array(*line.split()) for line in piece))
            for line in piece:
                reply = client.reply()
                refusal = REFUSED.get(" ".join(line.upper().split()[:2]))
                assert reply.startswith(refusal or (b"+", b":", b"$", b"*", b"%", b"_", b"=")), (line, reply)
                assert not line.startswith("INFO ") or b"role:master" in reply


def test_a_library_that_caches_with_the_servers_help_reads(redis_server, proxima):
    with Connection(proxima(config([redis_server()])).address) as client:
        for piece, told in (
            (["HELLO 3", "CLIENT TRACKING ON OPTIN", *NAMED], b"+OK\r\n"),
            (["CLIENT CACHING YES", "MULTI", "PTTL k", "GET k", "EXEC"], b"*2\r\n:-2\r\n_\r\n"),
        ):
            client.send(b"".join(array(*line.split()) for line in piece))
            assert [client.reply() for _ in piece][-1] == told


def test_go_redis_connects_pipelines_transacts_subscribes_and_blocks(proxy):
    program = build("go-redis", ["go", "build", "-o", "go-redis", "."], "go-redis")
    done = subprocess.run([program, proxy.address], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_ioredis_connects_pipelines_transacts_subscribes_and_blocks(proxy):
    install = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"]
    program = build("ioredis", install, "node_modules").parent / "main.js"
    done = subprocess.run(
        ["node", program, proxy.address.split(":")[1]], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
