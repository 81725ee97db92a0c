"""mcrouter's front door: the well-known node-local set-up runs unchanged and behaves as its users expect."""

import json
import pathlib
import threading

import pytest

from harness import ports, until
from harness.copies import until_current, until_out
from harness.load import Load
from harness.mcrouter import Router, node_local
from harness.proxy import BINARY
from harness.relay import Relay

pytestmark = pytest.mark.either_io

HOSTS = [f"127.0.0.{number}" for number in range(1, 9)]


@pytest.fixture
def mcrouter(cleanup, io, tmp_path):
    def start(text, *arguments, **options):
        router = Router(text, tmp_path, io, *arguments, **options)
        cleanup.callback(router.stop)
        return router

    return start


@pytest.fixture
def servers(memcached):
    return [memcached(host=host) for host in HOSTS]


@pytest.fixture
def symlink(tmp_path):
    """A link to the program, called `mcrouter`."""
    link = tmp_path / "mcrouter"
    link.symlink_to(pathlib.Path(BINARY).resolve())
    return str(link)


def test_the_node_local_set_up_reads_locally_and_writes_to_all_eight(servers, mcrouter, symlink):
    for router in (mcrouter(node_local(servers)), mcrouter(node_local(servers), program=[symlink])):
        before = [server.stat("cmd_get") for server in servers]
        with router.raw() as client:
            client.set("k", "v")
            assert client.ask(b"add a 0 0 1\r\n1\r\n") == b"STORED\r\n"
            assert client.ask(b"add a 0 0 1\r\n1\r\n") == b"NOT_STORED\r\n"
            for _ in range(50):
                assert client.get("k") == b"v"
            assert [server.stat("cmd_get") - had for server, had in zip(servers, before)] == [50] + [0] * 7
            assert [server.get("a") for server in servers] == [b"1"] * 8
            assert client.ask(b"delete a\r\n") == b"DELETED\r\n"
            assert [server.get("a") for server in servers] == [None] * 8


def test_an_operation_without_a_policy_gets_the_default_reply(servers, mcrouter):
    with mcrouter(node_local(servers)).raw() as client:
        client.set("n", "1")
        assert client.ask(b"incr n 1\r\n") == b"NOT_FOUND\r\n"
        assert client.ask(b"touch n 0\r\n") == b"NOT_FOUND\r\n"
        assert servers[0].get("n") == b"1"


@pytest.mark.parametrize("loss", ["frozen", "killed"])
def test_a_lost_node_fails_the_writes_and_no_read(servers, mcrouter, loss):
    router = mcrouter(node_local(servers), "--server-timeout=200", "--probe-timeout-initial=100")
    lost = servers[5]
    with router.raw() as client:
        client.set("k", "v")
        lost.freeze() if loss == "frozen" else lost.kill()
        answers = set()
        for _ in range(5):
            answers.add(client.ask(b"set k 0 0 1\r\nw\r\n").partition(lost.address.encode())[0])
            assert client.get("k") == b"w"
        # Users of mcrouter look for these beginnings.
        broken = (
            b"SERVER_ERROR Reply timeout\r\n" if loss == "frozen" else b"SERVER_ERROR AsyncSocketException: "
        )
        assert answers == {broken, b"SERVER_ERROR Server unavailable. Reason: "}
        if loss == "frozen":
            lost.thaw()
        else:
            lost.start()
        until(lambda: client.ask(b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n", "writes succeed again")
    assert [server.get("k") for server in servers] == [b"x"] * 8


@pytest.mark.parametrize("loss", ["frozen", "killed"])
def test_reads_fail_over_when_the_nodes_own_server_is_lost(servers, mcrouter, loss):
    router = mcrouter(node_local(servers), "-t", "200", "-r", "100")
    with router.raw() as client:
        client.set("k", "v")
        servers[0].freeze() if loss == "frozen" else servers[0].kill()
        for _ in range(50):
            assert client.get("k") == b"v"
        # Reads return to the own server without a flush, as mcrouter never flushes.
        if loss == "frozen":
            servers[0].thaw()
        else:
            servers[0].start()
        gets = servers[0].stat("cmd_get")

        def local_again():
            client.get("k")
            return servers[0].stat("cmd_get") > gets

        until(local_again, "reads are local again")
    assert [server.stat("cmd_flush") for server in servers] == [0] * 8


def test_a_configuration_rewritten_all_the_time_is_followed_without_errors(servers, mcrouter):
    router = mcrouter(node_local(servers))
    done = threading.Event()
    current = [node_local(servers)]

    def rewrite():
        while not done.wait(0.1):
            router.write(current[0])

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        with Load(router.address) as load:
            load.after(500)
            current[0] = node_local(servers[:3])
            with router.raw() as client:

                def only_three_have_it():
                    client.set("probe", "v")
                    have = [server.get("probe") for server in servers]
                    for server in servers:
                        with server.raw() as direct:
                            direct.ask(b"delete probe\r\n")
                    return have == [b"v"] * 3 + [None] * 5

                until(only_three_have_it, "the shorter list takes effect")
            load.after(200)
    finally:
        done.set()
        writer.join()


def test_a_bad_mcrouter_file_is_logged_and_the_running_configuration_stays(servers, mcrouter):
    router = mcrouter(node_local(servers))
    router.write(node_local(servers).replace("FailoverRoute", "FancyRoute"))
    until(lambda: "Unknown RouteHandle: FancyRoute line: " in router.log(), "the log has the reason")
    # Scripts wait for these words after a change.
    assert "reconfigured with" not in router.log()
    with router.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"


def test_unknown_mcrouter_options_are_logged_and_ignored(servers, mcrouter):
    router = mcrouter(node_local(servers), "--rss-limit-mb=1000", "--no-such-flag")
    until(lambda: "rss-limit-mb" in router.log() and "no-such-flag" in router.log(), "both are logged")
    with router.raw() as client:
        client.set("k", "v")


def test_mcrouter_features_that_are_not_served_are_named_at_the_start(servers, mcrouter):
    log = mcrouter(node_local(servers), "--debug-fifo-root=/tmp").log()
    for part in ("--debug-fifo-root",):
        assert part in log, part


def test_flush_all_of_mcrouter_works_only_where_it_is_enabled(servers, mcrouter):
    with mcrouter(node_local(servers)).raw() as client:
        client.set("k", "v")
        client.send(b"flush_all\r\n")
        assert client.line() == b"SERVER_ERROR Command disabled\r\n"
        assert client.get("k") == b"v"
    with mcrouter(node_local(servers), "--enable-flush-cmd").raw() as client:
        client.send(b"flush_all\r\n")
        assert client.line() == b"OK\r\n"
    assert [server.get("k") for server in servers] == [None] * 8


REFUSED = {
    "an unknown route": ('{"route": {"type": "NoSuchRoute"}}', "Unknown RouteHandle: NoSuchRoute line: 1"),
    "both route and routes": ('{"route": "NullRoute", "routes": []}', "routes"),
    "no JSON": ('{"route": ', "1:"),
    "an unknown pool": ('{"route": "PoolRoute|nowhere"}', "nowhere"),
}


@pytest.mark.parametrize("text, reason", REFUSED.values(), ids=REFUSED.keys())
def test_an_mcrouter_file_with_another_meaning_is_refused_at_the_start(tmp_path, command, text, reason):
    file = tmp_path / "mcrouter.json"
    file.write_text(text)
    done = command("mcrouter", f"--port={ports.free()}", f"--config-file={file}")
    assert done.returncode == 2
    assert reason in done.stderr, done.stderr


def test_exit_codes_are_those_of_mcrouter(tmp_path, command, symlink, servers, mcrouter):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(node_local(servers))
    bad.write_text("{}")
    port = f"--port={ports.free()}"
    assert command(port, f"--config=file:{good}", "--validate-config=exit", name=symlink).returncode == 0
    assert command(port, f"--config=file:{bad}", "--validate-config=exit", name=symlink).returncode == 3
    absent = command(port, "--config=file:/nowhere", name=symlink)
    assert absent.returncode == 2 and "Can not read config" in absent.stderr
    assert command("--version", name=symlink).stdout == "1.0.0 mcrouter\n"
    taken = mcrouter(node_local(servers)).address.rsplit(":", 1)[1]
    second = command("--listen-addresses=127.0.0.1", f"--port={taken}", f"--config=file:{good}", name=symlink)
    assert second.returncode == 2 and "in use" in second.stderr


def test_routing_prefixes_choose_the_route(memcached, mcrouter):
    here, there = memcached.several(2)
    text = json.dumps(
        {
            "pools": {"here": {"servers": [here.address]}, "there": {"servers": [there.address]}},
            "routes": [
                {"aliases": ["/a/a/"], "route": "PoolRoute|here"},
                {"aliases": ["/b/b/"], "route": "PoolRoute|there"},
            ],
        }
    )
    with mcrouter(text, "--route-prefix=/a/a/").raw() as client:
        client.set("k", "default")
        client.set("/b/b/k", "there")
        assert (here.get("k"), there.get("k")) == (b"default", b"there")
        assert client.get("/b/b/k") == b"there"
        assert client.get("/a/a/k") == b"default"
        for unknown in (b"/c/*/k", b"/a/b/k", b"/a/fallback/k"):
            assert client.ask(b"delete %b\r\n" % unknown) == b"SERVER_ERROR RootRoute: No rh found\r\n"
        assert (here.get("k"), there.get("k")) == (b"default", b"there")


def test_keep_writing_goes_on_without_a_lost_node_and_repairs_it(servers, mcrouter):
    router = mcrouter(node_local(servers), "--keep-writing")
    assert "with --keep-writing neither happens" not in router.log()
    own = servers[0]
    with router.raw() as client:
        assert client.ask(b"set k 0 0 3\r\nold\r\n") == b"STORED\r\n"
        own.freeze()
        # The first write waits for the frozen server. Later ones do not, and no read goes there.
        assert client.ask(b"set k 0 0 3\r\nnew\r\n") == b"STORED\r\n"
        assert client.ask(b"set other 0 0 1\r\nx\r\n") == b"STORED\r\n"
        client.send(b"get k\r\n")
        assert [client.line() for _ in range(3)] == [b"VALUE k 0 3\r\n", b"new\r\n", b"END\r\n"]
        own.thaw()
        until(lambda: f"member={own.address} state=current" in router.log(), "the copy comes back")
        assert own.get("k") != b"old"
        client.send(b"get k\r\n")
        assert client.line() in (b"END\r\n", b"VALUE k 0 3\r\n")


def test_a_pool_of_two_keeps_writing_when_one_copy_is_enough(memcached, mcrouter):
    own, other = memcached.several(2)
    router = mcrouter(node_local([own, other]), "--keep-writing=1", "--server-timeout=200")
    with router.raw() as client:
        client.set("k", "old")
        other.kill()
        until(lambda: client.ask(b"set k 0 0 3\r\nnew\r\n") == b"STORED\r\n", "writes go on")
        assert client.get("k") == b"new"


def test_a_change_by_another_route_than_all_sync_is_repaired_too(memcached, mcrouter, cleanup):
    servers = memcached.several(3)
    relay = Relay(servers[0].address)
    cleanup.callback(relay.stop)
    copies = [relay, *servers[1:]]
    by_majority = node_local(copies).replace('"delete": "AllSyncRoute', '"delete": "AllMajorityRoute')
    router = mcrouter(by_majority, "--keep-writing", "--server-timeout=200")
    assert "pool `A` is changed by AllMajorityRoute as well (`delete`)" in router.log()
    with router.raw() as client:
        client.set("k", "old")
        relay.swallow()
        assert client.ask(b"delete k\r\n") == b"DELETED\r\n"
        until_out(router, relay)
        relay.heal()
        assert servers[0].get("k") == b"old"
        assert client.get("k") is None


def test_a_restarted_mcrouter_knows_which_node_missed_a_write(servers, mcrouter, tmp_path):
    options = ("--keep-writing", f"--keep-writing-state={tmp_path}/state.json", "--server-timeout=200")
    first, own = mcrouter(node_local(servers), *options), servers[0]
    # Without a file, nothing is known of any copy yet.
    until_current(first, *servers)
    with first.raw() as client:
        client.set("k", "old")
        own.freeze()
        client.set("k", "new")
    first.kill()
    own.thaw()
    second = mcrouter(node_local(servers), *options)
    with second.raw() as client:
        for _ in range(50):
            # The own node's server, which held the old value, is repaired before it is read.
            assert client.get("k") in (b"new", None)


def test_mcrouter_with_an_admin_port_has_every_admin_page(servers, mcrouter, io):
    router = mcrouter(node_local(servers))
    assert router.http("/ready")[0] == 200
    assert router.explain("k").count(servers[0].address) >= 1
    assert router.metric("clients_accepted_total") >= 0 and router.version()
    assert f"io={io}" in router.log()


def test_the_start_without_keep_writing_recommends_it(servers, mcrouter):
    assert "with --keep-writing neither happens" in mcrouter(node_local(servers)).log()


LOGGED = {
    "too many tries": (
        {
            "type": "FailoverRoute",
            "children": ["NullRoute", "NullRoute"],
            "failover_policy": {"type": "LeastFailuresPolicy", "max_tries": 9},
        },
        "`max_tries` is 9",
    ),
    "no policy": (
        {"type": "FailoverRoute", "children": ["NullRoute", "NullRoute"], "failover_policy": {"type": "Any"}},
        "`Any` is no policy",
    ),
    "too few weights": (
        {
            "type": "PoolRoute",
            "pool": {"name": "A", "servers": ["127.0.0.1:1", "127.0.0.1:2"], "weights": [1]},
        },
        "1 weights for 2 servers",
    ),
}


@pytest.mark.parametrize("route, why", LOGGED.values(), ids=LOGGED.keys())
def test_what_is_otherwise_only_logged_is_a_mistake_when_it_is_validated(tmp_path, command, route, why):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"route": route}))
    options = f"--port={ports.free()}", f"--config=file:{config}", "--validate-config=exit"
    told = command("mcrouter", *options)
    assert told.returncode == 3 and why in told.stderr
    assert f"{config}:1:" in told.stderr
