"""Several proxies before one Galera cluster: only one that is alone may promise by its own clock."""

import contextlib
import copy
import functools
import json
import signal
import subprocess

import pytest

from harness import SOAK, freeze, galera_door, ports, until
from harness.galera import rows
from harness.galera_door import WHO
from harness.judge import BENCH
from harness.proxy import environment

pytestmark = [pytest.mark.either_io, pytest.mark.timeout(300)]

READS = 20_000 if SOAK else 1_000


@pytest.fixture
def beside(proxima, tmp_path):
    """Starts one more proxy before a cluster that has the tables."""
    folder = tmp_path / "beside"
    folder.mkdir()
    return functools.partial(galera_door.another, proxima, folder)


def others(door):
    return door.proxy.metric("pool_other_proxies", pool="db")


def is_alone(door):
    until(lambda: others(door) == 0, "it is known to be the only one")


def clocked(door):
    """Reads by the clock of the process. A `strict` one is none."""
    return door.proxy.metric("pool_reads_total", pool="db")


def explained(door):
    status, text = door.proxy.http("/explain?sql=SELECT%201")
    assert status == 200, text
    return text


def test_the_only_proxy_reads_causally_without_being_told(galera_alone, before):
    door = before(galera_alone, galera={"proxies": 1})
    is_alone(door)
    assert "reads are `causal`" in door.proxy.log() and "says `proxies: 1`" in door.proxy.log()
    assert "`causal`" in explained(door)
    assert "another proxy" not in explained(door)
    already = clocked(door)
    writer = door.writer()
    with door.connect() as writing, door.connect() as reading:
        for value in range(1, READS):
            writing.query(f"UPDATE t SET a = {value}")
            assert rows(reading, "SELECT a FROM t") == ((value,),)
        assert rows(reading, WHO)[0][0] != writer
    # A server that is late with its answer about others makes a read strict, and nothing worse.
    assert clocked(door) > already


@pytest.mark.parametrize("keys", [True, {"proxies": 1}], ids=["says nothing", "says the same"])
def test_a_second_proxy_makes_reads_strict_until_it_is_gone(galera_alone, before, beside, keys):
    route = {"route": {"consistency": {"child": "db", "level": "causal"}}}
    first = before(galera_alone, galera={"proxies": 1}, listeners=[{"consistency": "causal"}, route])
    is_alone(first)
    second = beside(galera_alone, galera=keys)
    until(lambda: others(first) == 1, "the first sees the second")
    assert keys is True or others(second) == 1, "the second has seen the first from the start"
    assert "`causal` reads are `strict` for now" in first.proxy.log()
    assert "a `causal` read is `strict` here: another proxy uses" in explained(first)
    already = clocked(first)
    with (
        second.connect() as writing,
        first.connect() as reading,
        first.connect(4) as listener,
        first.connect(5) as routed,
    ):
        for value in range(1, READS):
            writing.query(f"UPDATE t SET a = {value}")
            # However the word is said: by the pool's default, a hint, the session, the listener, or a route.
            match value % 5:
                case 0:
                    read = rows(reading, "SELECT a FROM t")
                case 1:
                    read = rows(reading, "/* proxima: consistency=causal */ SELECT a FROM t")
                case 2:
                    reading.query("SET @proxima_consistency = 'causal'")
                    read = rows(reading, "SELECT a FROM t")
                    reading.query("SET @proxima_consistency = DEFAULT")
                case 3:
                    read = rows(listener, "SELECT a FROM t")
                case 4:
                    read = rows(routed, "SELECT a FROM t")
            assert read == ((value,),)
        # What shows tables waits for nothing at a reader.
        writer = first.writer()
        with contextlib.ExitStack() as held:
            for node in galera_alone.nodes:
                if node.name != writer:
                    held.enter_context(node.held_back())
            writing.query("CREATE TABLE late (a INT)")
            assert len(rows(reading, "SHOW TABLES LIKE 'late'")) == 1
    assert clocked(first) == already, "no read has gone by the clock"
    second.proxy.kill()
    is_alone(first)
    with first.connect() as client:
        assert len(rows(client, "SELECT a FROM t")) == 1
    assert clocked(first) > already


def test_two_pools_of_one_process_with_the_same_servers_are_two_clocks(galera_alone, before):
    door = before(galera_alone, galera={"proxies": 1})
    is_alone(door)
    made = door.proxy.config
    alone = copy.deepcopy(made)
    made["pools"]["twin"] = made["pools"]["db"]
    made["listeners"].append({**made["listeners"][0], "address": ports.address(), "route": "twin"})
    door.proxy.write(made)
    assert door.proxy.reload()[0] == 200
    until(lambda: others(door) == 1, "they see each other")
    door.proxy.write(alone)
    assert door.proxy.reload()[0] == 200
    is_alone(door)


def test_a_proxy_that_was_frozen_trusts_nothing_from_before(galera_alone, before, beside):
    """Its locks have ended meanwhile, so that the other one took itself for the only one and wrote."""
    first = before(galera_alone, galera={"proxies": 1})
    second = beside(galera_alone, galera={"proxies": 1})
    with second.connect() as reading:
        assert len(rows(reading, "SELECT a FROM t")) == 1
        freeze(second.proxy.process)
        try:
            is_alone(first)
            with first.connect() as writing:
                writing.query("UPDATE t SET a = 1")
        finally:
            second.proxy.signal(signal.SIGCONT)
        assert rows(reading, "SELECT a FROM t") == ((1,),)
    until(lambda: others(first) == 1, "each sees the other again")


def test_three_proxies_all_know_that_they_are_not_alone(galera_alone, before, proxima, tmp_path):
    doors = [before(galera_alone, galera={"proxies": 1})]
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        doors.append(galera_door.another(proxima, folder, galera_alone, galera={"proxies": 1}))
    # Whoever has the second lock gets the first one, and somebody else the second.
    while len(doors) > 1:
        until(lambda: all(others(door) == 1 for door in doors), "they see each other")
        doors.pop(0).proxy.kill()
    is_alone(doors[0])


def test_a_client_with_the_lock_costs_time_and_no_promise(galera_alone, before):
    """The names are no secret: a client that takes them makes reads strict."""
    door = before(galera_alone, galera={"proxies": 1})
    is_alone(door)
    with door.connect() as client, door.connect() as other:
        assert rows(client, "SELECT GET_LOCK('proxima.second', 0)") == ((1,),)
        until(lambda: others(door) == 1, "it is taken for a proxy")
        client.query("UPDATE t SET a = 7")
        assert rows(other, "SELECT a FROM t") == ((7,),)
    is_alone(door)


@pytest.mark.parametrize("word", ["strict", "causal"])
def test_the_clock_of_one_proxy_does_not_count_the_writes_of_another(galera, before, beside, word):
    """What `causal` does not promise, and why `strict` is the default."""
    listeners = [{"consistency": word}]
    bench = ("app", "secret")
    name, password = bench
    galera.nodes[0].run(
        "CREATE DATABASE IF NOT EXISTS proxima_bench",
        f"CREATE USER IF NOT EXISTS {name} IDENTIFIED BY '{password}'",
        f"GRANT ALL ON proxima_bench.* TO {name}",
    )
    doors = [make(galera, listeners=listeners, users=[bench]) for make in (before, beside)]
    write, read = (door.proxy.addresses[4] for door in doors)
    command = [BENCH, "stale", "--protocol", "mysql", "--write", write, "--read", read]
    command += ["--quiet", "--json", "-", "--pause", "0s", "--timeout", "30s", "--duration", "5s"]
    stale = reads = 0
    while reads < READS or (word == "causal" and stale == 0):
        run = subprocess.run(command, capture_output=True, text=True, env=environment())
        assert run.returncode in (0, 1), run.stdout + run.stderr
        said = json.loads(run.stdout)
        stale += said["stale_reads"]
        reads += said["hits"] + said["misses"]
    print(f"{word}: {stale} of {reads} reads were stale through two proxies")
    assert (stale > 0) == (word == "causal")
