"""What mcrouter's door tells of itself: `stats` and its groups, `get __mcrouter__.…`, and the files below
`--stats-root`."""

import hashlib
import json
import pathlib
import threading
import time

import pytest

from harness import PATIENCE, ports, until
from harness.mcrouter import Router, asked, of_pool, stats, told
from harness.raw import Closed

pytestmark = pytest.mark.either_io

GROUPS = ["", "all", "detailed", "cmd-error", "ods", "count", "external"]
GROUPS += ["servers", "suspect_servers", "version"]


@pytest.mark.parametrize("end", ["\r\n", "\n", "  \r\n", "   \n"])
def test_every_group_of_statistics_is_there(memcached, router, end):
    with router(of_pool(memcached().address)).raw() as client:
        for group in GROUPS:
            answer = asked(client, f"stats {group}".rstrip().encode() + end.encode())
            assert answer.endswith(b"END\r\n"), (group, answer)
            assert (group in ("external", "suspect_servers")) == (answer == b"END\r\n"), (group, answer)
        for other in ("foo", "servers x", "ALL"):
            assert asked(client, f"stats {other}{end}".encode()) == b"CLIENT_ERROR bad stats command\r\n"
        assert stats(client, "version") == {"mcrouter-version": "1.0.0 mcrouter"}
        assert client.ask(b"get k\r\n") == b"END\r\n"


def test_a_word_that_only_begins_like_stats_is_no_command(memcached, router):
    with router(of_pool(memcached().address)).raw() as client:
        client.send(b"statsdetailed\r\n")
        assert client.line().startswith(b"CLIENT_ERROR ")


def test_basic_figures_tell_the_process(memcached, router):
    proxy = router(of_pool(memcached().address), "--proxy-threads=2")
    with proxy.raw() as client:
        figures = stats(client)
        assert figures["version"] == "1.0.0 mcrouter"
        assert figures["pid"] == str(proxy.process.pid)
        assert f"--config-file={proxy.file}" in figures["commandargs"]
        assert abs(int(figures["time"]) - time.time()) < 10
        assert int(figures["uptime"]) < 600
        assert int(figures["ps_rss"]) > 1 << 20
        assert (figures["num_proxies"], figures["fibers_allocated"]) == ("2", "0")
        assert int(figures["config_age"]) < 600
        assert (figures["config_failures"], figures["asynclog_requests"]) == ("0", "0")
        everything = stats(client, "all")
        assert set(everything) >= set(figures)


def test_commands_and_results_are_counted(memcached, router):
    server = memcached()
    with router(of_pool(server.address), "--asynclog-disable").raw() as client:
        for _ in range(3):
            assert client.ask(b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
        assert client.ask(b"incr k 1\r\n").startswith(b"CLIENT_ERROR")
        assert client.ask(b"get k\r\n") == b"VALUE k 0 1\r\nx\r\nEND\r\n"
        counts = stats(client, "count")
        assert (counts["cmd_set_count"], counts["cmd_get_count"], counts["cmd_incr_count"]) == ("3", "1", "1")
        assert (counts["request_sent_count"], counts["result_client_error_count"]) == ("5", "1")
        assert (counts["result_error_count"], counts["result_remote_error_count"]) == ("1", "0")
        server.stop()
        client.send(b"delete k\r\n")
        assert client.line().startswith(b"SERVER_ERROR AsyncSocketException: ")
        client.send(b"delete k\r\n")
        assert client.line().startswith(b"SERVER_ERROR Server unavailable. Reason: ")
        counts = stats(client, "count")
        assert (counts["result_error_count"], counts["result_connect_error_count"]) == ("3", "1")
        assert counts["result_tko_count"] == "1"


def test_each_address_and_time_out_is_a_row_of_its_own(memcached, router):
    one, other = memcached.several(2)
    pools = {
        "A": {"servers": [one.address, other.address]},
        "B": {"servers": [one.address], "server_timeout": 50000},
        "C": {"servers": [one.address]},
    }
    routes = {"type": "AllSyncRoute", "children": [f"PoolRoute|{pool}" for pool in pools]}
    proxy = router({"pools": pools, "route": routes}, "--proxy-threads=2")
    with proxy.raw() as client:
        rows = stats(client, "servers")
        name = "{}:ascii:plain:notcompressed-{}".format
        names = {name(one.address, 20000), name(other.address, 20000), name(one.address, 50000)}
        assert set(rows) == names
        assert set(rows.values()) == {"avg_latency_us:0.000 pending_reqs:0 inflight_reqs:0 new:2;"}
        assert (stats(client)["num_servers"], stats(client)["num_servers_new"]) == ("6", "6")
        client.ask(b"get k\r\n")
        rows = stats(client, "servers")
        row = rows[name(one.address, 50000)]
        assert row.endswith(" pending_reqs:0 inflight_reqs:0 new:1 up:1; notfound:1"), row
        assert not row.startswith("avg_latency_us:0.000 "), row
        figures = stats(client)
        assert int(figures["num_servers"]) == sum(
            int(figures[f"num_servers_{state}"]) for state in ("new", "up", "down", "closed")
        )
        assert 2 <= int(figures["num_servers_up"]) <= 3


def test_a_refused_configuration_is_counted(memcached, router):
    proxy = router(of_pool(memcached().address))
    with proxy.raw() as client:
        before = stats(client)
        proxy.write("{")
        until(lambda: stats(client)["config_failures"] == "1", "the failure is counted")
        after = stats(client)
        assert int(after["config_last_attempt"]) >= int(before["config_last_attempt"])
        assert after["config_last_success"] == before["config_last_success"]


def test_many_clients_ask_for_statistics_at_once(memcached, router):
    proxy = router(of_pool(memcached().address), "--proxy-threads=8")
    wrong = []

    def ask():
        try:
            with proxy.raw() as client:
                for _ in range(1000):
                    if "cmd_stats_count" not in stats(client):
                        wrong.append("a figure is missing")
        except (OSError, Closed, AssertionError) as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE * 4)
    assert wrong == []
    with proxy.raw() as client:
        assert int(stats(client)["cmd_stats_count"]) == 8001


def test_questions_keep_their_place_among_other_requests(memcached, router):
    with router(of_pool(memcached().address)).raw() as client:
        client.ask(b"set k 0 0 1\r\nx\r\n")
        one = b"get k\r\nstats version\r\nget k\r\nget __mcrouter__.version\r\nget nothing\r\n"
        client.send(one * 20)
        hit = b"VALUE k 0 1\r\nx\r\nEND\r\n"
        expected = hit + b"STAT mcrouter-version 1.0.0 mcrouter\r\nEND\r\n" + hit
        expected += b"VALUE __mcrouter__.version 0 14\r\n1.0.0 mcrouter\r\nEND\r\nEND\r\n"
        assert client.exactly(len(expected) * 20) == expected * 20


def test_a_client_may_leave_before_its_answer(memcached, router):
    proxy = router(of_pool(memcached().address))
    for _ in range(50):
        with proxy.raw() as client:
            client.send(b"stats all\r\n")
            client.abort()
    with proxy.raw() as client:
        assert stats(client, "version")


def test_the_door_tells_its_version_and_configuration(memcached, router):
    server = memcached()
    text = """{
      "macros": {"pool": {"type": "macroDef", "params": ["name"], "result": "PoolRoute|%name%"}},
      "pools": {"A": {"servers": ["SERVER"]}}, // one
      "route": "@pool(A)"
    }""".replace("SERVER", server.address)
    proxy = router(text, "--config-params=colour:blue", "--proxy-threads=2")
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    with proxy.raw() as client:
        assert told(client, "version") == "1.0.0 mcrouter"
        assert told(client, "config_file") == str(proxy.file)
        assert int(told(client, "config_age")) < 600
        assert told(client, "config_md5_digest") == digest
        sources = {"mcrouter_config": digest, "config_file": str(proxy.file)}
        assert json.loads(told(client, "config_sources_info")) == sources
        expanded = json.loads(told(client, "preprocessed_config"))
        assert expanded == {"pools": {"A": {"servers": [server.address]}}, "route": "PoolRoute|A"}
        assert json.loads(told(client, "pools")) == {"A": [server.address]}
        assert json.loads(told(client, "failure_domains(A)")) == {}
        assert json.loads(told(client, "global_params"))["colour"] == "blue"
        host = told(client, "hostid")
        assert host == told(client, "hostid") and 0 <= int(host) < 1 << 32
        assert json.loads(told(client, "global_params"))["hostid"] == int(host)
        options = dict(line.split(" ", 1) for line in told(client, "options").splitlines())
        assert (options["num_proxies"], options["default_route"]) == ("2", "/././")
        assert told(client, "options(default_route)") == "/././"
        assert told(client, "options(server_timeout_ms)") == options["server_timeout_ms"] == "20000"


WRONG = {
    "foo": "ERROR: unknown command: foo",
    "": "ERROR: unknown command: ",
    "version(1)": "ERROR: unknown command: version",
    "options(foo)": "ERROR: options: option foo not found",
    "failure_domains(B)": "ERROR: failure_domains: pool B not found",
    "route(foo,k)": "ERROR: route: unknown request foo",
    "route_handles(foo,k)": "ERROR: route_handles: unknown request foo",
    "route(get)": "ERROR: route: 2 args expected",
    "route": "ERROR: route: an argument is missing",
    "verbosity(x)": "ERROR: verbosity: expected a number",
}


def test_wrong_questions_are_answered_with_an_error_as_the_value(memcached, router):
    with router(of_pool(memcached().address)).raw() as client:
        for request, answer in WRONG.items():
            assert told(client, request) == answer
        assert client.ask(b"get k __mcrouter__.version\r\n") == b"END\r\n"
        assert client.ask(b"set __mcrouter__.version 0 0 1\r\nx\r\n") == b"STORED\r\n"
        assert told(client, "version") == "1.0.0 mcrouter"


def test_a_configuration_in_an_argument_has_no_file(memcached, cleanup, io, tmp_path):
    text = json.dumps(of_pool(memcached().address), indent=1)
    proxy = Router("", tmp_path, io, f"--config={text}")
    cleanup.callback(proxy.stop)
    with proxy.raw() as client:
        assert told(client, "config_file") == "ERROR: no config file found!"
        assert '"PoolRoute|A"' in stats(client)["commandargs"]
        digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        assert json.loads(told(client, "config_sources_info")) == {"mcrouter_config": digest}


def test_the_way_of_a_request_is_told(memcached, router):
    one, other = memcached.several(2)
    failing = {"type": "FailoverRoute", "children": ["PoolRoute|A", "PoolRoute|B", "ErrorRoute|nobody"]}
    route = {
        "type": "OperationSelectorRoute",
        "default_policy": {"type": "LoggingRoute", "target": failing},
        "operation_policies": {"set": {"type": "AllSyncRoute", "children": ["PoolRoute|A", "PoolRoute|B"]}},
    }
    pools = {"A": {"servers": [one.address]}, "B": {"servers": [other.address]}}
    with router({"pools": pools, "route": route}).raw() as client:
        both = f"{one.address}\r\n{other.address}"
        assert told(client, "route(set,k)") == both
        assert told(client, "route(get,a,b)") == both
        lines = told(client, "route_handles(get,k)").split("\n")
        assert lines[:2] == ["proxy", " root"]
        names = [line.strip() for line in lines]
        assert "logging" in names and "failover" in names
        assert names.index("logging") < names.index(one.address) < names.index(other.address)
        assert names[-1].startswith("error|") and names[-1].endswith("|nobody")
        depths = [len(line) - len(line.lstrip()) for line in lines]
        assert all(after <= before + 1 for before, after in zip(depths, depths[1:], strict=False))


def test_handles_that_options_put_above_the_routes_are_told(memcached, router):
    server = memcached()
    route = {"type": "FailoverRoute", "children": ["PoolRoute|A", "ErrorRoute|nobody"]}
    options = ("--enable-logging-route", "--big-value-split-threshold=100")
    with router(of_pool(server.address, route=route), *options).raw() as client:
        names = [line.strip() for line in told(client, "route_handles(set,k)").split("\n")]
        assert names[:2] == ["proxy", "root"]
        assert {"big-value", "logging", server.address} <= set(names)
        assert names[-1] == "error|mc_res_local_error|nobody"
        assert told(client, "route(set,k)") == server.address


def test_the_level_of_the_log_is_changed_by_a_client(memcached, router):
    proxy = router(of_pool(memcached().address), "-v", "1")
    with proxy.raw() as client:
        assert told(client, "verbosity") == "1"
        assert told(client, "verbosity(0)") == "1 -> 0"
        assert told(client, "verbosity(99)") == "0 -> 4"
        assert told(client, "verbosity(-1)") == "4 -> 0"
        assert told(client, "verbosity") == "0"


def statistics_of(proxy, root):
    """The files of statistics, by the ends of their names. Raises while one is missing."""
    prefix = f"libmcrouter.mcrouter.{proxy.address.rsplit(':')[-1]}."
    return {
        end: json.loads((pathlib.Path(root) / f"{prefix}{end}").read_text())
        for end in ("stats", "startup_options", "config_sources_info")
    }


def test_files_of_statistics_are_written_all_the_time(memcached, router, tmp_path):
    root = tmp_path / "new" / "stats"
    proxy = router(of_pool(memcached().address), f"--stats-root={root}", "--stats-logging-interval", "100")
    prefix = f"libmcrouter.mcrouter.{proxy.address.rsplit(':')[-1]}."
    figure = f"{prefix}cmd_get_count"

    def read():
        try:
            return statistics_of(proxy, root)
        except OSError:
            return None

    until(read, "the files are there")
    files = read()
    digest = hashlib.md5(proxy.file.read_bytes(), usedforsecurity=False).hexdigest()
    assert files["config_sources_info"]["mcrouter_config"] == digest
    assert files["startup_options"]["default_route"] == "/././"
    assert files["startup_options"]["pid"] == proxy.process.pid
    assert all(name.startswith(prefix) for name in files["stats"])
    before = files["stats"][figure]
    with proxy.raw() as client:
        client.ask(b"get k\r\n")
    until(lambda: read()["stats"][figure] == before + 1, "the request is counted")
    lines = (root / f"{prefix}stats").read_text().splitlines()
    names = [line.split('"')[1] for line in lines[1:-1]]
    assert names == sorted(names), "one key in each line, in order"


def test_a_folder_that_cannot_be_written_stops_nothing(memcached, router, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    proxy = router(of_pool(memcached().address), f"--stats-root={file}", "--stats-logging-interval=20")
    until(lambda: "the files of statistics cannot be written" in proxy.log(), "it is logged")
    time.sleep(0.5)
    assert proxy.log().count("the files of statistics cannot be written") == 1
    with proxy.raw() as client:
        assert client.ask(b"get k\r\n") == b"END\r\n"


def test_pools_have_figures_by_the_beginning_of_their_names(memcached, router, tmp_path):
    one, other, third = memcached.several(3)
    wanted = tmp_path / "pools.json"
    wanted.write_text('{"stats_enabled_pools": ["front", "back.east", "none", "inline"]} // prefixes')
    pools = {
        "front.a": {"servers": [one.address]},
        "front.b": {"servers": [other.address]},
        "back.east": {"servers": [one.address]},
        "back.west": {"servers": [other.address]},
    }
    routes = [
        {"type": "PoolRoute", "pool": "front.a"},
        {"type": "PoolRoute", "pool": "front.b"},
        {"type": "PoolRoute", "pool": "back.west"},
        {"type": "PoolRoute", "pool": {"name": "inline.c", "servers": [third.address]}},
    ]
    proxy = router(
        {"pools": pools, "route": {"type": "AllSyncRoute", "children": routes}},
        *("--stats-logging-interval=100", f"--pool-stats-config-file={wanted}"),
    )
    prefix = f"libmcrouter.mcrouter.{proxy.address.rsplit(':')[-1]}."

    def figures():
        try:
            return statistics_of(proxy, tmp_path)["stats"]
        except OSError:
            return {}

    with proxy.raw() as client:
        for _ in range(5):
            client.ask(b"set k 0 0 1\r\nx\r\n")
        client.ask(b"get k\r\n")
        until(lambda: figures().get(f"{prefix}front.requests.sum") == 12, "both pools count")
        now = figures()
        assert now[f"{prefix}front.connections"] == 2
        assert now[f"{prefix}inline.connections"] == 1
        assert now[f"{prefix}none.connections"] == 0
        assert now[f"{prefix}front.duration_us.avg"] > 0
        assert now[f"{prefix}front.final_result_error.sum"] == 0
        other.stop()
        client.send(b"get k\r\n")
        assert client.line().startswith(b"SERVER_ERROR ")
        until(lambda: figures()[f"{prefix}front.final_result_error.sum"] == 1, "the error counts")
    assert now[f"{prefix}front.total_duration_us.avg"] > 0
    assert now[f"{prefix}back.east.requests.sum"] == 0
    assert now[f"{prefix}none.requests.sum"] == 0
    assert f"{prefix}back.west.requests.sum" not in now


def test_a_bad_file_of_pools_is_said_and_stops_nothing(memcached, router, tmp_path):
    missing = tmp_path / "none.json"
    proxy = router(of_pool(memcached().address), f"--pool-stats-config-file={missing}")
    until(lambda: "--pool-stats-config-file" in proxy.log(), "it is logged")
    with proxy.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
        assert stats(client, "all")["cmd_get_count"] == "1", "other statistics are kept"


def test_half_a_question_is_not_answered(memcached, router):
    proxy = router(of_pool(memcached().address))
    with proxy.raw() as client:
        client.send(b"stats cou")
        client.sock.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.sock.recv(1)
        client.sock.settimeout(PATIENCE)
        assert asked(client, b"nt\r\n").endswith(b"END\r\n")


def test_failovers_are_counted_by_the_errors_that_they_met(memcached, router):
    good, dead = memcached(), [ports.address() for _ in range(2)]
    names = {"A": dead[0], "B": dead[1], "C": good.address}
    pools = {name: {"servers": [address]} for name, address in names.items()}
    route = {"type": "FailoverRoute", "children": [f"PoolRoute|{name}" for name in names]}
    counted = ("policy_result_error", "policy_tko_error", "all_failed_count", "num_collisions")

    def counts(client):
        figures = stats(client, "count")
        return [int(figures[f"failover_{name}"]) for name in counted]

    with router({"pools": pools, "route": route}).raw() as client:
        assert counts(client) == [0, 0, 0, 0]
        assert client.ask(b"get k\r\n") == b"END\r\n"
        assert counts(client) == [2, 0, 0, 0]
        for _ in range(3):
            assert client.ask(b"get k\r\n") == b"END\r\n"
        assert counts(client) == [2, 6, 0, 0]
        good.kill()
        client.send(b"get k\r\n")
        assert client.line().startswith(b"SERVER_ERROR ")
        assert counts(client) == [2, 8, 1, 0]
        assert float(stats(client, "detailed")["failover_all_failed"]) > 0
