"""Slow requests are kept with the times of their steps: which server was waited for, and what else."""

import contextlib
import json
import signal
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import freeze, until
from harness.copies import replicated, until_current
from harness.galera_door import WHO
from harness.mysql_raw import EXECUTE, PREPARE, Connection
from harness.proxy import config
from harness.split import PASSWORDS, connect, made, rows, wait_for_members
from harness.watching import Watcher

pytestmark = pytest.mark.either_io

OVER = {"over": "100ms", "keys": "plain"}
LATE = 0.3
"""Seconds for which a server is late: a request that waits for it is slow."""


@contextlib.contextmanager
def late(server, seconds=LATE):
    """What is asked of this server meanwhile is answered after these seconds."""
    freeze(server.process)
    timer = threading.Timer(seconds, lambda: server.process.send_signal(signal.SIGCONT))
    timer.start()
    try:
        yield
    finally:
        timer.join()


def slow(proxy, query=""):
    """What /slow says."""
    status, text = proxy.http(f"/slow{query}")
    assert status == 200, text
    return json.loads(text)


def all_of(proxy, count):
    """The slow requests, the oldest first, once there are so many."""
    until(lambda: slow(proxy)["count"] >= count, f"{count} requests are slow")
    found = slow(proxy)["requests"]
    assert len(found) == count, found
    return found[::-1]


def the_only_one(proxy):
    """The slow request, once there is one."""
    [found] = all_of(proxy, 1)
    return found


def servers_of(found):
    """The steps of a request that were answers: the server, and how that has ended."""
    return [(step["server"], step["outcome"]) for step in found["steps"] if step["waited_for"] == "answer"]


def covered(found):
    """The microseconds of a request in which it has waited for a step that is told."""
    return max(step["from_us"] + step["us"] for step in found["steps"])


def test_a_slow_request_is_kept_with_the_server_that_it_has_waited_for(memcached, proxima):
    server = memcached()
    proxy = proxima(config("cache", {"cache": {"servers": [server.address]}}, slow_requests=OVER))
    client = proxy.raw()
    for key in (b"fast", b"faster"):
        assert client.ask(b"get %s\r\n" % key) == b"END\r\n"
    with late(server):
        assert client.ask(b"get slow\r\n") == b"END\r\n"
    found = the_only_one(proxy)
    assert (found["command"], found["key"], found["class"], found["outcome"]) == (
        "get",
        "slow",
        "read",
        "notfound",
    )
    assert (found["client"], found["listener"]) == ("127.0.0.1", proxy.address)
    assert found["us"] >= 100_000 and abs(time.time() * 1000 - found["at_ms"]) < 60_000
    [step] = found["steps"]
    assert (step["pool"], step["server"], step["outcome"]) == ("cache", server.address, "notfound")
    assert step["from_us"] == 0 and step["us"] == found["us"]
    said = slow(proxy)
    assert (said["over_us"], said["keep"], said["keys"]) == (100_000, 200, "plain")
    assert (said["count"], said["missed"]) == (1, 0)
    assert proxy.metric("slow_requests_total") == 1
    [line] = [line for line in proxy.log().splitlines() if "a request was slow" in line]
    assert 'key="slow"' in line and f"cache/{server.address}" in line


def test_a_failover_tells_which_server_did_not_answer_and_which_did(memcached, proxima):
    first, second = memcached(), memcached()
    pools = {
        "first": {"servers": [first.address], "timeout": "150ms"},
        "second": {"servers": [second.address]},
    }
    proxy = proxima(config({"failover": ["first", "second"]}, pools, slow_requests=OVER))
    client = proxy.raw()
    second.set("k", b"v")
    with late(first, 1):
        assert client.get("k") == b"v"
    found = the_only_one(proxy)
    assert servers_of(found) == [(first.address, "timeout"), (second.address, "found")]
    failed, answered = found["steps"]
    assert failed["pool"] == "first" and failed["why"] and failed["us"] >= 150_000
    assert answered["from_us"] == failed["us"] and covered(found) == found["us"]


@pytest.mark.parametrize("keys", ["hidden", "hashed", "plain"])
def test_keys_are_told_as_the_configuration_says(memcached, proxima, keys):
    server = memcached()
    options = {"over": "1us", "keys": keys}
    proxy = proxima(config("cache", {"cache": {"servers": [server.address]}}, slow_requests=options))
    client = proxy.raw()
    for key in (b"secret-key", b"other-key", b"secret-key"):
        assert client.ask(b"set %s 0 0 12\r\nsecret-value\r\n" % key) == b"STORED\r\n"
    told = [each.get("key") for each in all_of(proxy, 3)]
    match keys:
        case "hidden":
            assert told == [None] * 3
        case "hashed":
            assert told[0] == told[2] != told[1] and told[0].startswith("#")
        case "plain":
            assert told == ["secret-key", "other-key", "secret-key"]
    everything = proxy.http("/slow")[1] + proxy.log()
    assert ("secret-key" in everything) == (keys == "plain") and "secret-value" not in everything


def test_a_write_to_all_copies_tells_which_copy_was_late(memcached, proxima):
    servers = [memcached(), memcached()]
    proxy = proxima({**replicated(servers, timeout="5s"), "slow_requests": OVER})
    client = proxy.raw()
    until_current(proxy, *servers)
    with late(servers[1]):
        client.set("k", "v")
    found = the_only_one(proxy)
    times = {step["server"]: step["us"] for step in found["steps"]}
    assert times[servers[0].address] < times[servers[1].address] == found["us"]


def test_a_value_that_leaves_in_pieces_is_slow_until_its_first_byte(memcached, proxima):
    server = memcached()
    proxy = proxima(config("cache", {"cache": {"servers": [server.address]}}, slow_requests=OVER))
    server.set("large", b"v" * 500_000)
    client = proxy.raw()
    with late(server):
        client.send(b"get large\r\n")
        assert client.until(b"END\r\n").endswith(b"vv\r\nEND\r\n")
    found = the_only_one(proxy)
    assert servers_of(found) == [(server.address, "found")] and found["key"] == "large"


def test_a_request_that_a_route_holds_back_tells_the_route(memcached, proxima):
    server = memcached()
    route = {"outstanding_limit": {"child": "cache", "requests": 1}}
    pools = {"cache": {"servers": [server.address], "timeout": "5s"}}
    proxy = proxima(config(route, pools, workers=1, slow_requests=OVER))
    with late(server), contextlib.closing(proxy.raw()) as first, contextlib.closing(proxy.raw()) as second:
        first.send(b"get a\r\n")
        until(lambda: proxy.member(server.address)["waiting"] == 1, "the first one waits")
        second.send(b"get b\r\n")
        assert first.until(b"END\r\n") == second.until(b"END\r\n") == b"END\r\n"
    by_key = {each["key"]: each for each in all_of(proxy, 2)}
    held, answered = by_key["b"]["steps"]
    assert (held["waited_for"], held["route"]) == ("route", "outstanding_limit")
    assert (answered["server"], answered["from_us"]) == (server.address, held["us"])
    assert servers_of(by_key["a"]) == [(server.address, "notfound")]


def test_a_statement_is_told_without_its_values(mysql_pair, proxima, tmp_path):
    writer, reader = mysql_pair
    proxy = proxima(made(tmp_path, writer, reader, slow_requests={"over": "100ms", "keys": "hidden"}))
    wait_for_members(proxy, writer, reader)
    with connect(proxy.address) as client:
        rows(client, "SELECT 'quick secret'")
        rows(client, "SELECT 'secret', /* secret */ SLEEP(0.15)")
    found = the_only_one(proxy)
    assert found["statement"] == "SELECT ?, SLEEP(?)"
    assert servers_of(found)[-1] == (reader.address, "found")
    assert "secret" not in proxy.http("/slow")[1] + proxy.log()


def test_a_prepared_statement_is_told_by_its_text(mysql_pair, proxima, tmp_path):
    writer, reader = mysql_pair
    proxy = proxima(made(tmp_path, writer, reader, slow_requests=OVER))
    wait_for_members(proxy, writer, reader)
    with Connection(proxy.address, password=PASSWORDS["app"]) as client:
        client.ask(PREPARE, b"SELECT SLEEP(0.15), 'secret'")
        client.ask(EXECUTE, struct.pack("<IBI", 1, 0, 1))
    found = the_only_one(proxy)
    assert (found["command"], found["statement"]) == ("execute", "SELECT SLEEP(?), ?")


def test_a_statement_that_waits_for_a_connection_says_so(mysql_pair, proxima, tmp_path):
    writer, reader = mysql_pair
    made_ = made(tmp_path, writer, reader, workers=1, slow_requests=OVER)
    made_["pools"]["readers"]["dedicated"] = {"max": 1}
    proxy = proxima(made_)
    wait_for_members(proxy, writer, reader)
    with connect(proxy.address) as one, connect(proxy.address) as other, ThreadPoolExecutor(1) as threads:
        rows(other, "SELECT 1")
        first = threads.submit(rows, one, "SELECT SLEEP(0.5), 1")
        until(lambda: proxy.member(reader.address)["waiting"] == 1, "the first one runs")
        rows(other, "SELECT 2, 3")
        first.result()
    # On a busy machine other statements may be slow as well.
    [waited] = [each for each in slow(proxy)["requests"] if each["statement"] == "SELECT ?, ..."]
    assert [step["waited_for"] for step in waited["steps"]] == ["connection", "answer"]
    assert waited["steps"][0]["us"] >= 100_000


def test_a_write_that_an_order_holds_back_says_that_it_waits_for_its_pool(galera, before):
    door = before(galera)
    door.proxy.write({**door.proxy.config, "slow_requests": OVER})
    assert door.proxy.reload()[0] == 200
    with door.connect() as client, ThreadPoolExecutor(1) as threads:
        until(lambda: door.in_use() == 0, "no session has a connection")
        assert door.proxy.http("/orders/hold?pool=db&for=2s", "POST")[0] == 200
        waiting = threads.submit(client.query, "UPDATE t SET a = 7 WHERE id = 1")
        time.sleep(LATE)
        assert door.proxy.http("/orders/hold?pool=db", "DELETE")[0] == 200
        waiting.result()
    [found] = [each for each in slow(door.proxy)["requests"] if "UPDATE" in each.get("statement", "")]
    assert found["statement"] == "UPDATE t SET a = ? WHERE id = ?"
    assert found["steps"][0]["waited_for"] == "pool" and found["steps"][0]["us"] >= 100_000
    assert servers_of(found)[-1][1] == "ok"


@pytest.mark.parametrize("consistency", ["strict", "session"])
def test_the_server_of_a_read_is_the_one_that_has_answered_and_is_asked_once(galera, before, consistency):
    """Readers are asked in turn and counted: whoever looks takes no turn, and is no read."""
    door = before(galera, galera={"consistency": consistency})
    door.proxy.write({**door.proxy.config, "slow_requests": OVER})
    assert door.proxy.reload()[0] == 200
    addresses = {node.name: node.address for node in galera.nodes}
    with Watcher(door.proxy, "/watch?with=samples") as watcher, door.connect() as client:
        watcher.until(lambda now: "edges" in now, "requests are sampled")
        counted = door.proxy.metric("pool_reads_total")
        names = [rows(client, WHO.replace("VALUE FROM", "VALUE, SLEEP(0.12) FROM"))[0][0] for _ in range(6)]
        # A strict read waits at its server, and is not counted.
        more = len(names) if consistency == "session" else 0
        assert door.proxy.metric("pool_reads_total") == counted + more
    reads = [each for each in slow(door.proxy)["requests"][::-1] if "SLEEP" in each.get("statement", "")]
    assert [servers_of(each) for each in reads] == [[(addresses[name], "found")] for name in names]


def test_only_the_last_ones_are_kept_and_more_than_before_after_a_reload(memcached, proxima):
    server = memcached()
    made_ = config(
        "cache", {"cache": {"servers": [server.address]}}, slow_requests={"over": "1us", "keep": 3}
    )
    proxy = proxima(made_)
    client = proxy.raw()

    def ask(count):
        for _ in range(count):
            assert client.ask(b"get k\r\n") == b"END\r\n"

    ask(5)
    numbers = [each["number"] for each in slow(proxy)["requests"]]
    assert numbers == [5, 4, 3]
    assert [each["number"] for each in slow(proxy, "?after=4")["requests"]] == [5]
    assert [each["number"] for each in slow(proxy, "?limit=2")["requests"]] == [5, 4]
    proxy.write({**made_, "slow_requests": {"over": "1us", "keep": 5}})
    assert proxy.reload()[0] == 200
    ask(5)
    assert len(slow(proxy)["requests"]) == 5
    # Without the key nothing is timed any more, and what was kept is still told.
    proxy.write({key: value for key, value in made_.items() if key != "slow_requests"})
    assert proxy.reload()[0] == 200
    ask(5)
    said = slow(proxy)
    assert (said["count"], len(said["requests"])) == (10, 5) and "over_us" not in said
    assert "proxima_slow_requests" not in proxy.http("/metrics")[1]


def test_a_flood_of_slow_requests_is_ten_lines_a_second_in_the_log(memcached, proxima):
    server = memcached()
    proxy = proxima(config("cache", {"cache": {"servers": [server.address]}}, slow_requests="1us"))
    client = proxy.raw()
    begun = time.time()
    client.send(b"get k\r\n" * 5000)
    client.until(b"END\r\n" * 5000)
    # Of so many in a tenth of a second some are not timed.
    until(lambda: slow(proxy)["count"] >= 500, "they are counted")
    lines = [line for line in proxy.log().splitlines() if "a request was slow" in line]
    assert 10 <= len(lines) <= 10 * (time.time() - begun + 2)


def test_a_question_that_is_not_known_is_refused(memcached, proxima):
    proxy = proxima(config("cache", {"cache": {"servers": [memcached().address]}}))
    assert proxy.http("/slow?over=1s") == (400, "there is no `over` here; known are after, limit\n")
    assert slow(proxy)["requests"] == []
