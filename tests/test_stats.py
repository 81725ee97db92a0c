"""`stats` and the embedded store's dump, as tools, exporters and client libraries ask for them."""

import re
import shutil
import subprocess
import threading

import memcache
import pytest
from pymemcache.client.base import Client

from harness import PATIENCE, freeze, until
from harness.copies import replicated
from harness.proxy import config
from harness.raw import Closed

TOOL = "/usr/share/memcached/scripts/memcached-tool"

SUBJECTS = ("", "settings", "items", "slabs", "sizes", "conns")


@pytest.fixture
def one(memcached, proxima):
    """A proxy in front of one server."""
    server = memcached()
    proxy = proxima(config("cache", {"cache": [server.address]}))
    proxy.server = server
    return proxy


@pytest.fixture
def several(memcached, proxima):
    """A proxy in front of three servers."""
    servers = memcached.several(3)
    return proxima(config("cache", {"cache": [server.address for server in servers]}))


@pytest.fixture(params=["embedded", "one", "several"])
def program(request, io):
    """A program with each kind of listener."""
    found = request.getfixturevalue(request.param)
    return found() if request.param == "embedded" else found


def tool(address, *arguments):
    """The output of memcached-tool. It reads until the END of each answer, and for ever if there is none."""
    ran = subprocess.run(
        ["perl", TOOL, address, *arguments], capture_output=True, text=True, timeout=PATIENCE
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def dump(client, which="all"):
    client.send(f"lru_crawler metadump {which}\r\n".encode())
    *lines, end = client.until(b"END\r\n").split(b"\n")[:-1]
    assert end == b"END\r"
    return lines


def as_an_exporter(client):
    """The stats as memcached_exporter reads them: a name with colons is a slab's, and some lines must be
    complete."""
    stats = {}
    for subject in ("", "slabs", "items"):
        client.send(f"stats {subject}".strip().encode() + b"\r\n")
        for line in client.until(b"END\r\n").decode().splitlines()[:-1]:
            words = line.split(" ")
            if len(words) == 3 and words[0] == "STAT":
                *place, name = words[1].split(":")
                slab = int(place[-1]) if place else None
                stats[slab, name] = words[2]
    client.send(b"stats settings\r\n")
    for line in client.until(b"END\r\n").decode().splitlines()[:-1]:
        words = line.split(" ")
        assert len(words) in (3, 4), line
        stats["settings", words[1]] = words[2]
    return stats


@pytest.mark.parametrize("mode", ["stats", "settings", "sizes", "display"])
def test_memcached_tool_gets_an_answer_in_every_mode(program, mode):
    with program.raw() as client:
        client.set("k", "v")
    assert tool(program.address, mode)


def test_memcached_tool_shows_the_embedded_store(embedded):
    program = embedded()
    with program.raw() as client:
        client.set("plain", "1" * 100)
        client.set("per%cent", "2", flags=5, ttl=1000)
    stats = tool(program.address, "stats")
    assert re.search(r"^ *cmd_set +2$", stats, re.M) and re.search(r"^ *curr_items +2$", stats, re.M)
    assert re.search(r"^ *maxconns +10000$", tool(program.address, "settings"), re.M)
    assert "sizes_status" in tool(program.address, "sizes")
    head, row = tool(program.address, "display").splitlines()
    columns = dict(zip(head.split()[1:], row.split()[1:]))
    assert (columns["Count"], columns["Full?"], columns["Evicted"], columns["OOM"]) == ("2", "no", "0", "0")
    keys = tool(program.address, "keys")
    assert len(keys.splitlines()) == 2 and "key=per%25cent " in keys
    added = tool(program.address, "dump")
    assert f"add plain 0 0 100\n{'1' * 100}\n" in added and re.search(
        r"^add per%cent 5 \d{10} 1$", added, re.M
    )


def test_client_libraries_read_stats_as_dictionaries(program):
    with program.raw() as client:
        client.set("k", "v")
    host, port = program.address.split(":")
    pymemcache = Client((host, int(port)), timeout=PATIENCE)
    python_memcached = memcache.Client([program.address], socket_timeout=PATIENCE)
    for subject in SUBJECTS:
        rows = pymemcache.stats(*filter(None, [subject]))
        assert isinstance(rows, dict)
        [(_, same)] = python_memcached.get_stats(subject or None)
        assert {name.encode() for name in same} == rows.keys() or subject == "conns"
    assert pymemcache.stats()[b"threads"] > 0
    assert python_memcached.get_slab_stats()
    # The connections still serve requests.
    assert pymemcache.get("k") == b"v" and python_memcached.get("k") == b"v"


@pytest.mark.skipif(not shutil.which("memcstat"), reason="libmemcached's tools are not installed")
def test_memcstat_reads_the_statistics(program):
    ran = subprocess.run(
        ["memcstat", f"--servers={program.address}"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert ran.returncode == 0 and "get_hits" in ran.stdout, ran.stdout + ran.stderr


def test_exporters_find_the_stats_that_they_need(program):
    with program.raw() as client:
        client.set("k", "v")
        client.get("k")
        client.get("absent")
        stats = as_an_exporter(client)
    needed = ["cmd_set", "cas_misses", "cas_hits", "cas_badval", "uptime", "time", "version", "cmd_flush"]
    assert not [name for name in needed if (None, name) not in stats]
    assert (stats[None, "cmd_set"], stats[None, "get_hits"], stats[None, "get_misses"]) == ("1", "1", "1")
    for name in (
        "bytes_read",
        "bytes_written",
        "curr_connections",
        "max_connections",
        "rejected_connections",
    ):
        assert float(stats[None, name]) >= 0
    assert int(stats["settings", "maxconns"]) > 0
    for slab in {place for place, _ in stats if isinstance(place, int)}:
        assert float(stats[slab, "number"]) > 0 and stats[slab, "cmd_set"] and stats[slab, "cas_badval"]


def test_stats_counts_are_those_of_all_workers(several):
    # The kernel chooses the worker of each connection by a hash. All eight go to one of two workers once in
    # 128 times.
    clients = [several.raw() for _ in range(8)]
    while {client.stats()["worker"] for client in clients} != {"0", "1"}:
        clients[0].close()
        clients = [*clients[1:], several.raw()]
    for client in clients:
        client.set("k", "v")
        assert client.ask(b"get k\r\n" * 10 + b"incr absent 1\r\n").endswith(b"NOT_FOUND\r\n")
    expected = {"cmd_set": 8, "cmd_get": 80, "get_hits": 80, "incr_misses": 8}
    # A worker publishes its counts 20 times a second.
    for client in clients:
        until(
            lambda: (
                {name: int(value) for name, value in client.stats().items() if name in expected} == expected
            ),
            "every connection tells the same",
        )


def test_stats_counts_of_an_idle_worker_are_not_lost(several):
    for _ in range(10):
        with several.raw() as client:
            client.set("k", "v")
    with several.raw() as client:
        until(lambda: client.stats()["cmd_set"] == "10", "none is lost")


def test_stats_reset_resets_stats_and_not_metrics(several):
    with several.raw() as client:
        client.set("k", "v")
        assert client.stats()["cmd_set"] == "1"
        assert client.ask(b"stats reset\r\n") == b"RESET\r\n"
        assert client.stats()["cmd_set"] == "0"
        client.set("k", "v")
        assert client.stats()["cmd_set"] == "1"
    assert several.metric("requests_total", command="set") == 2


def test_stats_of_items_slabs_and_settings_are_those_of_the_only_server(one):
    with one.raw() as client, one.server.raw() as direct:
        client.set("k", "v")
        for subject in ("slabs", "items", "sizes", "settings"):

            def is_the_same(subject=subject):
                told, own = client.stats(subject), direct.stats(subject)
                assert told.keys() == own.keys() and told
                # An item's age grows between the two answers.
                return {name for name in told if told[name] != own[name]} <= {"items:1:age"}

            # After a moment the server itself moves the item from one of its lists to another.
            until(is_the_same, f"stats {subject} are those of the server")
        assert client.stats("settings")["tcpport"] == one.server.address.split(":")[1]
        # Stats that come from the server keep their order among other requests to it.
        replies = client.ask(b"get k\r\nstats settings\r\nget k\r\nstats slabs\r\nget absent\r\n")
        hit = b"VALUE k 0 1\r\nv\r\nEND\r\n"
        assert replies.startswith(hit + b"STAT maxbytes ") and replies.count(hit) == 2
        assert replies.endswith(b"END\r\nEND\r\n") and replies.count(b"END\r\n") == 5


def test_stats_of_items_and_slabs_are_empty_before_several_servers(several):
    with several.raw() as client:
        for subject in ("items", "slabs", "sizes"):
            assert client.ask(f"stats {subject}\r\n".encode()) == b"END\r\n"
        settings = client.stats("settings")
    assert (settings["maxconns"], settings["num_threads"]) == ("10000", "2")


def test_stats_of_a_silent_server_are_a_time_out(memcached, proxima):
    server = memcached()
    proxy = proxima(config("cache", {"cache": {"servers": [server.address], "timeout": "200ms"}}))
    with proxy.raw() as client:
        client.set("k", "v")
        server.freeze()
        assert client.ask(b"stats items\r\n") == f"SERVER_ERROR {server.address}: timeout\r\n".encode()
        assert client.stats()["pid"] == str(proxy.process.pid)


@pytest.mark.parametrize("servers", ["one", "several"])
def test_unknown_stats_subjects_and_crawlers_are_refused(request, io, servers):
    with request.getfixturevalue(servers).raw() as client:
        subjects = [b"nonsense", b"detail on", b"cachedump 1 0", b"items x", b"sizes_enable"]
        replies = {subject: client.ask(b"stats " + subject + b"\r\n") for subject in subjects}
        assert replies == dict.fromkeys(subjects, b"CLIENT_ERROR bad stats command\r\n")
        client.ask(b"stats settings\nget k\r\n")
        arguments = [b"metadump all", b"enable", b""]
        replies = {words: client.ask(b"lru_crawler " + words + b"\r\n") for words in arguments}
        assert replies == dict.fromkeys(arguments, b"CLIENT_ERROR lru crawler disabled\r\n")


def test_stats_conns_lists_the_connections_of_every_listener(program):
    clients = [program.raw() for _ in range(3)]
    for client in clients:
        client.ask(b"get k\r\n")
    rows = clients[0].stats("conns")
    own = {f"tcp:127.0.0.1:{client.sock.getsockname()[1]}" for client in clients}
    listed = {name: value for name, value in rows.items() if name.endswith(":addr")}
    assert own | {f"tcp:{program.address}"} == set(listed.values())
    assert (
        sum(value == f"tcp:{program.address}" for name, value in rows.items() if "listen_addr" in name) == 3
    )
    gone = clients.pop()
    name = f"tcp:127.0.0.1:{gone.sock.getsockname()[1]}"
    gone.close()
    until(lambda: name not in clients[0].stats("conns").values(), "it is listed no more")


def test_a_proxy_is_not_trusted_as_a_copy(several, memcached, proxima):
    """Behind a proxy, writes may still be under way though it lists no connection of ours. It cannot be
    trusted like a server."""
    server = memcached()
    outer = proxima(replicated([server, several], {"min_acks": 1}))
    with several.raw() as client:
        assert "total_items" not in client.stats()
    with outer.raw() as client:
        client.set("k", "v")
        freeze(several.process)
        try:
            client.set("k", "w")
            until(lambda: outer.member(several.address)["copy"]["state"] == "out", "it missed a write")
        finally:
            several.signal(18)
        until(lambda: outer.metric("copy_setbacks_total") > 0, "a repair was tried and failed")
        assert outer.member(several.address)["copy"]["state"] != "current"


def test_dump_of_the_embedded_store_has_every_key_once(embedded):
    program = embedded("--workers", "2")
    keys = {f"key{number}" for number in range(30_000)}
    with program.raw() as client:
        for key in keys:
            client.send(f"set {key} 0 0 1 noreply\r\nv\r\n".encode())
        client.ask(b"")
        assert client.ask(b"ms YSBi 1 b\r\nv\r\n") == b"HD\r\n"
        client.set("dies", "v", ttl=-1)
        lines = dump(client)
        row = re.compile(rb"key=(\S+) exp=-1 la=\d{10} cas=\d+ fetch=(?:yes|no) cls=1 size=\d+")
        dumped = [row.fullmatch(line)[1].decode() for line in lines]
        assert len(dumped) == len(set(dumped)) and set(dumped) == keys | {"a%20b"}
        # The connection still serves requests.
        assert client.get("key1") == b"v"
        assert b"key=key1 " in b"\n".join(dump(client, "1")) and dump(client, "2,3") == []
        for bad, reply in (
            (b"metadump", b"ERROR\r\n"),
            (b"metadump all x", b"ERROR\r\n"),
            (b"sleep 5", b"ERROR\r\n"),
            (b"metadump 64", b"BADCLASS invalid class id\r\n"),
            (b"metadump 1,x", b"BADCLASS invalid class id\r\n"),
        ):
            assert client.ask(b"lru_crawler " + bad + b"\r\n") == reply


def test_dump_is_answered_in_its_turn(embedded):
    with embedded().raw() as client:
        client.set("k", "v")
        client.send(b"get k\r\nlru_crawler metadump all\r\nget k\r\nlru_crawler metadump 2\r\nget absent\r\n")
        hit = b"VALUE k 0 1\r\nv\r\nEND\r\n"
        assert client.exactly(len(hit)) == hit
        assert client.until(b"END\r\n").startswith(b"key=k ")
        assert client.exactly(len(hit) + 10) == hit + b"END\r\nEND\r\n"
        client.finish()
        assert client.rest() == b""


def test_dump_is_complete_while_other_keys_come_and_go(embedded):
    program = embedded("--workers", "2")
    fixed = {f"fixed{number}" for number in range(3000)}
    stop = threading.Event()

    def churn():
        with program.raw() as client:
            number = 0
            while not stop.is_set():
                # The tables grow meanwhile, and shrink again.
                for _ in range(2000):
                    number += 1
                    client.send(
                        b"set other%d 0 0 1 noreply\r\nv\r\ndelete other%d noreply\r\n"
                        % (number, number - 5000)
                    )
                client.ask(b"")

    with program.raw() as client:
        for key in fixed:
            client.set(key, "v")
        thread = threading.Thread(target=churn)
        thread.start()
        try:
            for _ in range(5):
                dumped = {line.split()[0].removeprefix(b"key=").decode() for line in dump(client)}
                assert fixed <= dumped
        finally:
            stop.set()
            thread.join()


def test_dump_waits_for_its_reader_in_bounded_memory(embedded):
    program = embedded("--workers", "1")
    with program.raw() as slow, program.raw() as other:
        for number in range(100_000):
            slow.send(b"set a_key_of_some_length_%d 0 0 1 noreply\r\nv\r\n" % number)
        slow.ask(b"")
        before = program.memory()
        slow.send(b"lru_crawler metadump all\r\n" * 20)
        for number in range(200):
            # The only worker serves another client meanwhile.
            other.set(f"x{number}", "v")
        assert program.memory() < before + (16 << 20)
        for _ in range(20):
            assert slow.until(b"END\r\n").count(b"\n") > 100_000
        # A half-closed client still gets the whole dump.
        with program.raw() as silent:
            silent.send(b"lru_crawler metadump all\r\n")
            silent.finish()
            assert silent.rest().count(b"\n") > 100_000
        # A client that leaves in the middle leaves nothing behind.
        slow.send(b"lru_crawler metadump all\r\n")
        slow.until(b"\n")
        slow.abort()
        until(lambda: program.metric("clients") == 1, "it is gone")
        assert other.get("x1") == b"v"


def test_dump_ends_before_a_drained_client_is_closed(embedded):
    program = embedded("--workers", "1")
    with program.raw() as client:
        for number in range(100_000):
            client.send(b"set a_key_of_some_length_%d 0 0 1 noreply\r\nv\r\n" % number)
        client.ask(b"")
        client.send(b"lru_crawler metadump all\r\n")
        client.until(b"\n")
        program.signal(15)
        # These are all lines but the first, and END.
        assert client.until(b"END\r\n").count(b"\n") == 100_000
        with pytest.raises(Closed):
            client.line()
    assert program.wait() == 0
