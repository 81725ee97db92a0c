"""Replicated pools: writes go on without a lost copy, and no read returns a value that was replaced."""

import contextlib

import pytest

from harness import TRIES, until
from harness.copies import copies_of, copy_state, replicated, until_current, until_out
from harness.load import Load
from harness.proxy import config
from harness.relay import Relay


def test_a_write_reaches_every_copy_and_a_read_asks_one(servers, proxima):
    proxy = proxima(replicated(servers))
    with proxy.raw() as client:
        client.set("k", "v")
        assert copies_of(servers, "k") == [b"v"] * 3
        before = [server.stat("cmd_get") for server in servers]
        for _ in range(10):
            assert client.get("k") == b"v"
        assert [server.stat("cmd_get") - had for server, had in zip(servers, before)] == [10, 0, 0]
        assert client.ask(b"delete k\r\n") == b"DELETED\r\n"
        assert copies_of(servers, "k") == [None] * 3


@pytest.mark.parametrize("loss", ["killed", "frozen", "refusing"])
def test_a_lost_copy_stops_no_write(memcached, proxima, cleanup, loss):
    servers = memcached.several(3)
    relay = Relay(servers[0].address)
    cleanup.callback(relay.stop)
    copies = [relay, *servers[1:]]
    proxy = proxima(replicated(copies, timeout="1s"))
    with proxy.raw() as client:
        client.set("k", "0")
        {"killed": servers[0].kill, "frozen": servers[0].freeze, "refusing": relay.refuse}[loss]()
        # If each of them waited for a time-out, the loop would take longer than a test may.
        for number in range(1, 101):
            client.set("k", str(number))
            assert client.get("k") == b"%d" % number
        assert copies_of(servers[1:], "k") == [b"100"] * 2
    assert copy_state(proxy, relay) in ("leaving", "out")


def test_a_write_that_too_few_copies_took_is_refused_and_undone(servers, proxima):
    proxy = proxima(replicated(servers))
    with proxy.raw() as client:
        client.set("k", "old")
        for server in servers[:2]:
            server.kill()
        assert b"min_acks" in client.ask(b"set k 0 0 3\r\nnew\r\n")
        until(lambda: servers[2].get("k") is None, "it is undone where it landed")
        assert client.ask(b"get k\r\n").startswith(b"SERVER_ERROR ")
        for server in servers[:2]:
            server.start()
        until_current(proxy, *servers)
        assert client.get("k") is None
        client.set("k", "newer")
        assert copies_of(servers, "k") == [b"newer"] * 3


def test_a_refused_write_empties_no_copy_that_was_out_of_reach(servers, proxima):
    """Other proxies may write there meanwhile. A proxy that is cut off for a moment must not empty their
    caches."""
    proxy = proxima(replicated(servers))
    with proxy.raw() as client:
        client.set("k", "old")
        for server in servers:
            server.set("other", "good")
        for server in servers[1:]:
            server.freeze()
        assert b"min_acks" in client.ask(b"set k 0 0 3\r\nnew\r\n")
        for _ in range(3):
            assert b"min_acks" in client.ask(b"set l 0 0 3\r\nnew\r\n")
        for server in servers[1:]:
            server.thaw()
        until_current(proxy, *servers)
        assert copies_of(servers, "other") == [None, b"good", b"good"]
        assert copies_of(servers, "k") == [None] * 3


def test_with_min_acks_1_the_last_copy_serves_alone(servers, proxima):
    proxy = proxima(replicated(servers, {"min_acks": 1}))
    with proxy.raw() as client:
        for server in servers[:2]:
            server.kill()
        for number in range(10):
            client.set("k", str(number))
            assert client.get("k") == b"%d" % number


@pytest.mark.parametrize(
    "rejoin, repaired, other", [("repair", None, b"v"), ("flush", None, None), ("trust", b"new", b"v")]
)
def test_a_returned_copy_holds_nothing_old_unless_it_is_trusted(servers, proxima, rejoin, repaired, other):
    proxy = proxima(replicated(servers, {"rejoin": rejoin}))
    with proxy.raw() as client:
        client.set("k", "old")
        client.set("other", "v")
        servers[0].freeze()
        client.set("k", "new")
        assert client.get("k") == b"new"
        assert copies_of(servers[1:], "k") == [b"new"] * 2
        servers[0].thaw()
        until_current(proxy, servers[0])
        # The copy has executed the write that it was sent while it was frozen.
        assert copies_of(servers[:1], "k") == [repaired]
        assert copies_of(servers[:1], "other") == [other]
        assert client.get("k") == repaired


def test_the_log_has_one_line_with_a_reason_for_each_change_of_a_copy(servers, proxima):
    made = replicated(servers)
    made["pools"]["cache"]["eject"] = {"failures": 1}
    proxy = proxima(made)
    with proxy.raw() as client:
        client.set("k", "old")
        servers[0].freeze()
        client.set("k", "new")
        servers[0].thaw()
        until_current(proxy, servers[0])
    until(lambda: "state=current" in proxy.log(), "it is logged")
    of = f"pool=cache member={servers[0].address}"
    told = [line.split(None, 1)[1] for line in proxy.log().splitlines() if of in line]
    assert told == [
        f"WARN ejected {of} address={servers[0].address} reason=timeout",
        f'WARN copy {of} state=leaving why="timeout"',
        f'INFO copy {of} state=out why="no worker reads it any more; it missed 1 key"',
        f'INFO up again {of} address={servers[0].address} reason="it has answered a probe"',
        f'INFO copy {of} state=joining why="it answers; it missed 1 key"',
        f'INFO copy {of} state=opening why="repaired: 1 key deleted"',
        f'INFO copy {of} state=current why="every worker writes to it, and nothing is left to repair"',
    ]


def test_with_rejoin_wait_a_copy_stays_out_until_it_is_restarted(servers, proxima):
    proxy = proxima(replicated(servers, {"rejoin": "wait"}))
    with proxy.raw() as client:
        client.set("k", "old")
        servers[0].freeze()
        client.set("k", "new")
        servers[0].thaw()
        until(
            lambda: "rejoin: wait" in proxy.member(servers[0].address)["copy"]["why"],
            "it says what it waits for",
        )
        assert client.get("k") == b"new"
        servers[0].kill()
        servers[0].start()
        until_current(proxy, servers[0])
        assert client.get("k") is None


@pytest.mark.parametrize("rejoin", ["repair", "flush"])
def test_a_copy_that_restarted_empty_is_not_flushed(memcached, proxima, rejoin):
    servers = memcached.several(3)
    proxy = proxima(replicated(servers, {"rejoin": rejoin}))
    with proxy.raw() as client:
        client.set("k", "old")
        servers[0].kill()
        client.set("k", "new")
        # A server reports its age in whole seconds.
        missed = servers[1].stat("time")
        until(lambda: servers[1].stat("time") > missed + 4, "its life begins clearly after what it missed")
        servers[0].start()
        until_current(proxy, servers[0])
        assert client.get("k") is None
    assert servers[0].stat("cmd_flush") == 0


@pytest.mark.parametrize("writes", [100, 1])
@pytest.mark.parametrize("threads", [1, 4])
def test_a_thawed_copy_is_not_read_before_repair(memcached, proxima, cleanup, threads, writes):
    """A thawed copy executes the writes that it was sent, after newer writes have gone elsewhere.

    The proxy tries to repair a copy that fails often less and less frequently, so each try has a first copy
    of its own.
    """
    others = memcached.several(2, threads=threads)
    for _ in range(TRIES // 20):
        firsts = memcached.several(20, threads=threads)
        names = [f"pool{number}" for number in range(20)]
        pools = {
            name: {
                "servers": [each.address for each in (first, *others)],
                "timeout": "100ms",
                "replicated": True,
            }
            for name, first in zip(names, firsts)
        }
        proxy = proxima(config(*names[:1], pools, *names[1:]))
        for number, first in enumerate(firsts):
            key = f"k{number}"
            with proxy.raw(number) as writer, proxy.raw(number) as reader:
                writer.set(key, "old")
                first.freeze()
                last = b"%d" % writes
                for version in range(1, writes + 1):
                    value = b"%d" % version
                    writer.send(b"set %b 0 0 %d\r\n%b\r\n" % (key.encode(), len(value), value))
                for _ in range(writes):
                    assert writer.line() == b"STORED\r\n"
                assert reader.get(key) == last
                first.thaw()
                while copy_state(proxy, first) != "current":
                    assert reader.get(key) in (last, None)
                assert first.get(key) is None
                for _ in range(20):
                    assert reader.get(key) is None
        for first in firsts:
            first.stop()
        proxy.kill()


def test_writes_queued_in_a_frozen_copys_kernel_are_never_read(servers, proxima):
    """The kernel of a frozen copy takes connections and bytes."""
    proxy = proxima(replicated(servers, workers=4))
    keys = [f"k{number}" for number in range(16)]
    for server in servers:
        for key in keys:
            server.set(key, "0")
    servers[0].freeze()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(proxy.raw()) for _ in keys]
        for version in ("1", "2", "3"):
            for client, key in zip(clients, keys):
                client.send(f"set {key} 0 0 1\r\n{version}\r\n".encode())
            for client in clients:
                assert client.line() == b"STORED\r\n"
        servers[0].thaw()
        while copy_state(proxy, servers[0]) != "current":
            assert all(client.get(key) in (b"3", None) for client, key in zip(clients, keys))
        assert copies_of(servers[1:], "k0") == [b"3"] * 2
        assert {servers[0].get(key) for key in keys} <= {b"3", None}
        assert all(client.get(key) in (b"3", None) for client in clients for key in keys)


def test_reads_under_load_are_never_stale_while_copies_come_and_go(servers, proxima):
    proxy = proxima(replicated(servers, timeout="500ms"))
    with Load(proxy.address, clients=50, rate=1000, tolerant=True) as load:
        for leave, come in ((servers[0].freeze, servers[0].thaw), (servers[1].kill, servers[1].start)):
            load.after(300)
            leave()
            load.after(300)
            come()
            until_current(proxy, *servers)
            load.after(300)
    # Reads that went to the frozen copy ended with a time-out. Two of three copies go on, so no write is
    # refused.
    assert load.refused == 0


def test_a_copy_that_refuses_its_flush_stays_out_and_the_reason_is_shown(memcached, proxima):
    servers = [memcached(options=["-F"]), *memcached.several(2)]
    proxy = proxima(replicated(servers, {"rejoin": "flush"}))
    with proxy.raw() as client:
        client.set("k", "old")
        servers[0].freeze()
        client.set("k", "new")
        servers[0].thaw()
        until(lambda: "flush" in proxy.member(servers[0].address)["copy"]["why"], "/members says why")
        assert copy_state(proxy, servers[0]) != "current"
        assert client.get("k") == b"new"


def test_a_new_copy_is_flushed_before_it_is_read(memcached, proxima, tmp_path):
    """The new copy is the nearest, and holds old values."""
    hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    nearest, *servers = [memcached(host=host) for host in ("127.0.0.4", *hosts)]
    file = tmp_path / "servers"

    def list_servers(*listed):
        new = tmp_path / "servers.new"
        new.write_text("".join(f"{server.address}\n" for server in listed))
        new.rename(file)

    list_servers(*servers)
    pools = {"cache": {"file": str(file), "timeout": "200ms", "replicated": {"grace": "0s"}}}
    proxy = proxima(config("cache", pools), "--node-address", "127.0.0.4")
    with Load(proxy.address, rate=300, tolerant=True) as load, proxy.raw() as client:
        for value in ("first", "second"):
            nearest.set("k", "old")
            client.set("k", value)
            list_servers(*servers, nearest)
            until(lambda: any(row["member"] == nearest.address for row in rows(proxy)), "it is known")
            while copy_state(proxy, nearest) != "current":
                assert client.get("k") in (value.encode(), None)
            assert client.get("k") is None
            load.after(200)
            reads = nearest.stat("cmd_get")
            client.set("k", "last")
            assert client.get("k") == b"last"
            assert nearest.stat("cmd_get") > reads
            # The copy leaves and is added again in the next round, when its values are old.
            list_servers(*servers)
            until(lambda: all(row["member"] != nearest.address for row in rows(proxy)), "it is let go")
            load.after(200)
    assert load.errors == []


def rows(proxy):
    return [labels for labels, _ in proxy.metrics()["proxima_member_up"]]


def test_a_quiet_write_that_a_copy_misses_is_repaired_too(servers, proxima):
    proxy = proxima(replicated(servers))
    with proxy.raw() as client:
        client.set("k", "old")
        servers[0].freeze()
        client.send(b"set k 0 0 3 noreply\r\nnew\r\nms k 5 q\r\nnewer\r\n")
        until_out(proxy, servers[0])
        assert client.get("k") == b"newer"
        servers[0].thaw()
        while copy_state(proxy, servers[0]) != "current":
            assert client.get("k") in (b"newer", None)
        assert client.get("k") is None


BIG = 1 << 20


def test_streamed_values_reach_every_copy_like_small_ones(memcached, proxima):
    servers = memcached.several(3, item="8m", memory=256)
    proxy = proxima(replicated(servers, timeout="5s", limits={"value_size": "8MiB"}))
    old, more = b"o" * BIG, b"m" * BIG
    with proxy.raw() as client, proxy.raw() as bystander:
        client.set("set", old)
        assert copies_of(servers, "set") == [old] * 3
        assert client.ask(b"add add 0 0 %d\r\n%b\r\n" % (BIG, old)) == b"STORED\r\n"
        assert client.ask(b"add add 0 0 %d\r\n%b\r\n" % (BIG, more)) == b"NOT_STORED\r\n"
        assert client.ask(b"append set 0 0 %d\r\n%b\r\n" % (BIG, more)) == b"STORED\r\n"
        for key, value in (("add", old), ("set", old + more)):
            held = copies_of(servers, key)
            assert set(held) <= {value, None} and value in held
            assert bystander.get(key) in (value, None)
        version = client.ask(b"gets set\r\n").split(maxsplit=5)[4]
        swap = b"cas set 0 0 %d %b\r\n%b\r\n" % (BIG, version, old)
        assert client.ask(swap) == b"STORED\r\n" and client.ask(swap) == b"EXISTS\r\n"
        touched = client.ask(b"gats 100 set\r\n")
        assert (
            old in touched and bystander.ask(b"mg set c\r\n") == b"HD c%b\r\n" % touched.split(maxsplit=5)[4]
        )
        servers[0].freeze()
        client.set("set", more)
        assert bystander.get("set") == more
        servers[0].thaw()
        until_current(proxy, servers[0])
        assert bystander.get("set") in (more, None)
        assert servers[0].get("set") in (more, None)


def test_a_client_that_leaves_in_mid_upload_leaves_equal_copies(memcached, proxima):
    servers = memcached.several(3, item="8m", memory=256)
    proxy = proxima(replicated(servers, limits={"value_size": "8MiB"}))
    with proxy.raw() as staying:
        for number in range(20):
            staying.set("k", f"old{number}")
            staying.set("n", "10")
            leaving = proxy.raw()
            leaving.send(b"incr n 1\r\n" + b"set k 0 0 %d\r\n" % BIG + b"x" * (BIG // 2))
            leaving.abort()
            until(lambda: proxy.metric("clients") == 1, "it has left")
            until(lambda: proxy.metric("requests_in_flight") == 0, "nothing is under way")
            assert len({copy for copy in copies_of(servers, "k") if copy is not None}) <= 1
            assert {copy for copy in copies_of(servers, "n") if copy is not None} <= {b"10", b"11"}
            assert staying.get("k") in (f"old{number}".encode(), None)
        until_current(proxy, *servers)
        staying.set("k", "new")
        assert copies_of(servers, "k") == [b"new"] * 3


@pytest.mark.parametrize("request_", [b"flush_all", b"flush_all noreply"])
@pytest.mark.parametrize("loss", ["frozen", "killed"])
def test_a_flush_that_a_copy_misses_is_repaired(servers, proxima, loss, request_):
    proxy = proxima(replicated(servers, {"rejoin": "repair"}))
    lost = servers[0]
    with proxy.raw() as client:
        client.set("k", "old")
        lost.freeze() if loss == "frozen" else lost.kill()
        client.send(request_ + b"\r\n")
        if request_ == b"flush_all":
            assert client.line() == b"OK\r\n"
        # A second flush meets a copy that is out.
        until_out(proxy, lost)
        assert client.ask(b"flush_all\r\n") == b"OK\r\n"
        assert client.get("k") is None
        lost.thaw() if loss == "frozen" else lost.start()
        until_current(proxy, *servers)
        assert copies_of(servers, "k") == [None] * 3
        client.set("k", "new")
        assert copies_of(servers, "k") == [b"new"] * 3


def test_a_flush_that_too_few_copies_took_is_refused(servers, proxima):
    proxy = proxima(replicated(servers))
    with proxy.raw() as client:
        client.set("k", "old")
        for server in servers[:2]:
            server.kill()
        assert b"min_acks" in client.ask(b"flush_all\r\n")
        for server in servers[:2]:
            server.start()
        until_current(proxy, *servers)
        assert client.get("k") is None
