"""The admin port, as operators and their tools see it."""

import json
import os
import pathlib
import urllib.request

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as classic_text_to_metric_families

from harness import until
from harness.copies import replicated, until_current, until_out
from harness.proxy import config
from harness.raw import Raw

pytestmark = pytest.mark.either_io


@pytest.fixture
def server(memcached):
    return memcached()


@pytest.fixture
def proxy(server, proxima):
    named = {"address": server.address, "name": 'a"b\\c', "zone": "z"}
    pool = {"servers": [named], "eject": {"failures": 1, "probe_initial": "20ms"}}
    return proxima(config("cache", {"cache": pool}))


def test_ready_fails_without_a_server_and_live_does_not(server, proxy):
    assert proxy.http("/live") == (200, "live\n")
    status, text = proxy.http("/ready")
    assert status == 200 and "cache: 1 of 1 members up" in text
    server.kill()
    with proxy.raw() as client:
        client.ask(b"get k\r\n")
    until(lambda: proxy.http("/ready")[0] == 503, "not ready without its only server")
    assert "cache: 0 of 1 members up" in proxy.http("/ready")[1]
    assert proxy.http("/live")[0] == 200
    server.start()
    until(lambda: proxy.http("/ready")[0] == 200, "ready again")


def test_ready_can_be_asked_about_one_pool(proxy):
    assert proxy.http("/ready?pool=cache&up=1")[0] == 200
    assert proxy.http("/ready?pool=cache&up=2")[0] == 503
    assert proxy.http("/ready?pool=other")[0] == 404


def test_metrics_are_openmetrics_and_count_requests_and_replies(proxy):
    with proxy.raw() as client:
        for _ in range(5):
            client.set("k", "v")
        for _ in range(7):
            client.get("k")
        client.get("absent")
        client.ask(b"bogus\r\n")
        families = {
            family.name: family for family in text_string_to_metric_families(proxy.http("/metrics")[1])
        }
        assert families["proxima_request_duration_seconds"].type == "histogram"
        assert proxy.metric("clients") == 1
    assert proxy.metric("requests_total", command="set") == 5
    assert proxy.metric("requests_total", command="get") == 8
    assert proxy.metric("replies_total", outcome="stored") == 5
    assert proxy.metric("replies_total", outcome="found") == 7
    assert proxy.metric("replies_total", outcome="not_found") == 1
    assert proxy.metric("requests_refused_total") == 1
    assert proxy.metric("clients_accepted_total") == 1
    assert proxy.metric("request_duration_seconds_count", listener=proxy.address) == 13
    assert proxy.metric("member_request_duration_seconds_count", member='a"b\\c') == 13
    assert proxy.metric("pool_members", pool="cache", up="true") == 1
    assert proxy.metric("build_info") == 1


OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
CLASSIC = "text/plain; version=0.0.4; charset=utf-8"
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


def scrape(proxy, accept=None):
    """Content type and text of the metrics, for a scraper that accepts this."""
    headers = {"Accept": accept} if accept else {}
    with urllib.request.urlopen(
        urllib.request.Request(f"http://{proxy.admin}/metrics", headers=headers)
    ) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


@pytest.mark.parametrize(
    "accept, kind",
    [
        (None, OPENMETRICS),
        ("*/*", OPENMETRICS),
        (PROMETHEUS, OPENMETRICS),
        ("text/plain;version=0.0.4;q=1,*/*;q=0.1", CLASSIC),
        ("text/plain", CLASSIC),
        ("application/json", CLASSIC),
    ],
)
def test_scrapers_get_the_format_that_they_accept(proxy, accept, kind):
    got, text = scrape(proxy, accept)
    assert got == kind
    assert text.endswith("# EOF\n") == (kind == OPENMETRICS)
    parse = text_string_to_metric_families if kind == OPENMETRICS else classic_text_to_metric_families
    assert "proxima_clients_accepted" in {family.name for family in parse(text)}


def test_both_metrics_formats_have_the_same_samples(memcached, proxima):
    servers = memcached.several(2)
    proxy = proxima(
        config("cache", {"cache": {"servers": [each.address for each in servers], "replicated": True}})
    )
    with proxy.raw() as client:
        client.set("k", "v")
        client.get("k")
    texts = [scrape(proxy, accept)[1] for accept in ("application/openmetrics-text", "text/plain")]
    both = [
        {(sample.name, *sorted(sample.labels.items())) for family in parse(text) for sample in family.samples}
        for parse, text in zip((text_string_to_metric_families, classic_text_to_metric_families), texts)
    ]
    assert both[0] == both[1]
    kinds = [line for line in texts[1].splitlines() if line.startswith("# TYPE ")]
    assert "# TYPE proxima_requests_total counter" in kinds
    assert "# TYPE proxima_build_info gauge" in kinds
    assert "# TYPE proxima_pool_request_duration_seconds histogram" in kinds
    # Each family begins once, and each sample belongs to one.
    assert len(kinds) == len(set(kinds))
    assert {line.split()[-1] for line in kinds} == {"counter", "gauge", "histogram", "summary"}


def test_metrics_count_hits_and_misses_by_command(proxy):
    with proxy.raw() as client:
        client.set("k", "1")
        for request in (
            b"get k a b\r\n",
            b"gets k\r\n",
            b"gat 9 k a\r\n",
            b"touch k 9\r\n",
            b"touch a 9\r\n",
        ):
            client.ask(request)
        for request in (b"incr k 1\r\n", b"incr a 1\r\n", b"mg k v\r\n", b"mg a v\r\n", b"mg a v q\r\n"):
            client.ask(request)
        for request in (b"delete a\r\n", b"delete k\r\n", b"delete k noreply\r\n", b"md a q\r\n"):
            client.ask(request)
        large = b"x" * 200_000
        client.set("large", large)
        assert client.get("large") == large
    seen = {
        (labels["command"], labels["result"]): value
        for labels, value in proxy.metrics()["proxima_lookups_total"]
    }
    assert seen == {
        ("get", "hit"): 2,
        ("get", "miss"): 2,
        ("gets", "hit"): 1,
        ("gets", "miss"): 0,
        ("gat", "hit"): 1,
        ("gat", "miss"): 1,
        ("touch", "hit"): 1,
        ("touch", "miss"): 1,
        ("incr", "hit"): 1,
        ("incr", "miss"): 1,
        ("mg", "hit"): 1,
        ("mg", "miss"): 2,
        ("delete", "hit"): 1,
        ("delete", "miss"): 2,
        ("md", "hit"): 0,
        ("md", "miss"): 1,
    }


def test_metrics_count_the_bytes_of_clients_and_servers(server, proxy):
    large = b"x" * 300_000
    asked = [
        b"set k 0 0 1\r\nv\r\n",
        b"get k\r\n" * 50,
        b"set l 0 0 300000\r\n" + large + b"\r\n",
        b"get l\r\n",
    ]
    told = [b"STORED\r\n", b"VALUE k 0 1\r\nv\r\nEND\r\n" * 50, b"STORED\r\n"]
    told.append(b"VALUE l 0 300000\r\n" + large + b"\r\nEND\r\n")
    with proxy.raw() as client:
        # Each connection to a server begins with the question for its version.
        client.set("first", "v")
        assert client.get("first") == b"v"
        traffic = ("client_received", "client_sent", "server_sent", "server_received")
        before = {name: proxy.metric(f"{name}_bytes_total") for name in traffic}
        for request, answer in zip(asked, told):
            client.send(request)
            assert client.exactly(len(answer)) == answer
        # The proxy refuses this line, and no server sees it.
        client.send(b"bogus\r\n")
        assert client.line() == b"ERROR\r\n"
    sizes = sum(map(len, asked)), sum(map(len, told))
    counted = {name: proxy.metric(f"{name}_bytes_total") - before[name] for name in traffic}
    assert counted["client_received"] == sizes[0] + len(b"bogus\r\n")
    assert counted["client_sent"] == sizes[1] + len(b"ERROR\r\n")
    # The large value takes a connection of its own, on which the server is asked for its version, too.
    logins = [0, len(b"version\r\n")], [0, len(b"VERSION 1.6.18\r\n")]
    assert counted["server_sent"] - sizes[0] in logins[0]
    assert counted["server_received"] - sizes[1] in logins[1]


def test_metrics_of_the_process_agree_with_proc(proxy):
    samples = {name: rows[0][1] for name, rows in proxy.metrics().items() if name.startswith("process_")}
    folder = pathlib.Path(f"/proc/{proxy.process.pid}")
    assert samples.keys() == {
        "process_cpu_seconds_total",
        "process_max_fds",
        "process_open_fds",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_threads",
        "process_virtual_memory_bytes",
    }
    # The scraper's connection is one of the open files.
    assert abs(samples["process_open_fds"] - len(list((folder / "fd").iterdir()))) <= 2
    assert 0.5 < samples["process_resident_memory_bytes"] / proxy.memory() < 2
    [limit] = [
        line.split()[3] for line in (folder / "limits").read_text().splitlines() if "open files" in line
    ]
    assert samples["process_max_fds"] == int(limit)
    assert abs(samples["process_start_time_seconds"] - os.stat(folder).st_ctime) < 600
    assert 0 <= samples["process_cpu_seconds_total"] < 600


def test_metrics_count_what_the_embedded_store_holds(embedded):
    program = embedded("--workers", "1")
    with program.raw() as client:
        for key in ("a", "b", "c"):
            client.set(key, "1")
        client.get("a")
        client.get("absent")
        client.ask(b"incr a 1\r\ndelete absent\r\n")
    assert program.metric("embedded_items") == 3 == program.metric("embedded_stored_total") - 1
    assert 0 < program.metric("embedded_bytes") < program.metric("embedded_limit_bytes") == 64 << 20
    assert program.metric("embedded_evictions_total") == 0
    assert program.metric("embedded_lookups_total", operation="get", result="hit") == 1
    assert program.metric("embedded_lookups_total", operation="get", result="miss") == 1
    assert program.metric("embedded_lookups_total", operation="delete", result="miss") == 1
    assert program.metric("lookups_total", command="get", result="hit") == 1


def test_metrics_without_an_embedded_store_do_not_mention_it(proxy):
    assert not [name for name in proxy.metrics() if name.startswith("proxima_embedded")]


def test_a_member_has_at_most_twelve_metric_series(memcached, proxima):
    copies, plain = memcached.several(3), memcached.several(2)
    named = [each.address.replace("127.0.0.1", "localhost") for each in plain]
    pools = {"copies": {"servers": [each.address for each in copies], "replicated": True}, "named": named}
    proxy = proxima(config("copies", pools, "named"))
    for listener in (0, 1):
        with proxy.raw(listener) as client:
            client.set("k", "v")
            client.get("k")
    series = {}
    for samples in proxy.metrics().values():
        for labels, _ in samples:
            if member := labels.get("member"):
                series[member] = series.get(member, 0) + 1
    assert len(series) == 5 and max(series.values()) <= 11, series
    # The twelfth series is that of a server's name.
    assert len(proxy.metrics()["proxima_dns_up"]) == 1
    assert proxy.metric("pool_request_duration_seconds_count", pool="copies") > 0
    assert proxy.metric("pool_request_duration_seconds_count", pool="named") > 0


def test_counters_of_a_pool_stay_when_its_members_change(memcached, proxima):
    first, second = memcached.several(2)
    proxy = proxima(config("cache", {"cache": [first.address]}))
    with proxy.raw() as client:
        for _ in range(5):
            client.set("k", "v")
        proxy.config["pools"]["cache"] = [second.address]
        proxy.write(proxy.config)
        assert proxy.reload()[0] == 200
        client.set("k", "v")
    assert proxy.metric("pool_request_duration_seconds_count", pool="cache") == 6
    assert proxy.metric("member_request_duration_seconds_count") == 1


def test_metrics_stay_openmetrics_when_pools_change(proxy):
    changed = json.loads(json.dumps(proxy.config))
    changed["pools"]["cache"]["timeout"] = "3s"
    for made in (changed, proxy.config, changed):
        with proxy.raw() as client:
            client.set("k", "v")
        proxy.write(made)
        assert proxy.reload()[0] == 200
        names = [labels["member"] for labels, _ in proxy.metrics()["proxima_member_up"]]
        assert names == ['a"b\\c']


def test_members_page_counts_connections_and_waiting_requests(server, proxy):
    with proxy.raw() as client:
        client.set("k", "v")
        row = proxy.member(server.address)
        assert (row["lanes"], row["waiting"]) == (1, 0)
        server.freeze()
        client.send(b"get k\r\n" * 3)
        until(
            lambda: proxy.member(server.address)["waiting"] == 3, "three requests wait for the frozen server"
        )
        server.thaw()
        until(lambda: proxy.member(server.address)["waiting"] == 0, "none waits any more")


def test_metrics_show_a_suspected_member(server, proxima):
    pool = {"servers": [server.address], "timeout": "100ms", "eject": {"failures": 2}}
    proxy = proxima(config("cache", {"cache": pool}))

    def state():
        return proxy.metric("member_up", member=server.address), proxy.metric(
            "member_suspect", member=server.address
        )

    assert state() == (1, 0)
    server.freeze()
    with proxy.raw() as client:
        for seen in ((1, 1), (0, 0)):
            assert client.ask(b"get k\r\n") == f"SERVER_ERROR {server.address}: timeout\r\n".encode()
            assert state() == seen


def test_members_page_says_since_when_and_why_a_server_is_ejected(server, proxy):
    assert not {"since", "why"} & proxy.member(server.address).keys()
    server.kill()
    with proxy.raw() as client:
        client.ask(b"get k\r\n")
    first = until(lambda: proxy.member(server.address).get("since"), "it is ejected")
    row = proxy.member(server.address)
    assert (row["state"], row["why"]) == ("ejected", "Connection refused")
    assert first < row["since"] < 60
    server.start()
    until(lambda: proxy.member(server.address)["state"] == "up", "the probe brings it back")
    assert not {"since", "why"} & proxy.member(server.address).keys()


@pytest.mark.parametrize(
    "rejoin, repaired", [("repair", "copy_repairs_total"), ("flush", "copy_flushes_total")]
)
def test_metrics_count_missed_writes_and_repairs_of_a_copy(memcached, proxima, rejoin, repaired):
    servers = memcached.several(3)
    proxy = proxima(replicated(servers, {"rejoin": rejoin}))
    third = {"pool": "cache", "member": servers[2].address}

    def in_state(name):
        return proxy.metric("copies", pool="cache", state=name)

    assert in_state("current") == 3
    with proxy.raw() as client:
        servers[2].freeze()
        client.set("k", "v")
        until_out(proxy, servers[2])
        until(lambda: in_state("out") == 1, "one is out")
        assert in_state("current") == 2
        skipped = proxy.metric("skipped_writes_total", **third)
        for _ in range(5):
            client.set("k", "v")
        assert (
            proxy.metric("skipped_writes_total", **third)
            == skipped + 5
            == proxy.metric("skipped_writes_total")
        )
        assert proxy.member(servers[2].address)["copy"]["missed"] == 1
        servers[2].thaw()
        until_current(proxy, servers[2])
    assert in_state("current") == 3
    assert proxy.metric("copy_stale_total", **third) == 1 == proxy.metric("copy_stale_total")
    both = proxy.metric("copy_repairs_total") + proxy.metric("copy_flushes_total")
    assert proxy.metric(repaired, **third) == 1 == both


def test_members_page_shows_state_distance_and_zone(server, proxy):
    member = proxy.member(server.address)
    expected = {
        "pool": "cache",
        "name": 'a"b\\c',
        "zone": "z",
        "distance": "host",
        "state": "up",
        "weight": 1.0,
    }
    assert expected.items() <= member.items()


def test_explain_walks_the_tree_to_the_server(proxy, server):
    text = proxy.explain("k", "set")
    assert text.startswith("set k ") and server.address in text and "up" in text


BAD_QUERIES = {
    "no key": "",
    "an empty key": "key=",
    "a key with a blank": "key=a%20b",
    "a key with a line end": "key=a%0d%0aget%20b",
    "a key of 251 bytes": "key=" + "k" * 251,
    "an unknown listener": "key=k&listener=9",
    "an unknown command": "key=k&command=bogus",
}


@pytest.mark.parametrize("query", BAD_QUERIES.values(), ids=BAD_QUERIES.keys())
def test_explain_refuses_a_bad_query(proxy, query):
    status, text = proxy.http(f"/explain?{query}")
    assert status == 400, text


def test_explain_hashes_keys_of_any_bytes_as_requests_do(memcached, proxima):
    servers = memcached.several(3)
    proxy = proxima(config("cache", {"cache": [server.address for server in servers]}))
    with proxy.raw() as client:
        for byte in range(128, 256, 8):
            key = bytes([byte, 255])
            client.set(key, "v")
            [holder] = [server for server in servers if server.get(key) is not None]
            text = proxy.explain(f"%{byte:02x}%ff")
            assert text.startswith(f"get \\x{byte:02x}\\xff ") and f"({holder.address})" in text, text


def test_explain_sends_nothing_to_a_server(proxy, server):
    for command in ("get", "set", "delete", "incr", "touch", "mg", "ms"):
        proxy.explain("k", command)
    assert server.stat("cmd_set") + server.stat("cmd_get") == 0


def test_config_page_shows_the_servers(proxy, server):
    assert server.address in proxy.http("/config")[1]


def test_the_configuration_version_is_the_same_on_every_page(proxy):
    version = proxy.version()
    with proxy.raw() as client:
        assert client.stats()["config_version"] == version
    assert version in proxy.explain("k")
    assert version in proxy.reload()[1]


def test_stats_show_the_proxys_own_counters(proxy, server):
    with proxy.raw() as client:
        stats = client.stats()
    assert int(stats["pid"]) == proxy.process.pid
    assert stats["threads"] == "2"
    assert stats["curr_connections"] == "1"
    assert stats[f"member_{server.address}"] == "up host"


def test_unknown_admin_pages_are_404_and_reload_is_not_a_get(proxy):
    assert proxy.http("/nothing")[0] == 404
    assert proxy.http("/reload")[0] == 405


def test_config_page_notes_what_the_command_line_replaces(embedded, proxima):
    program = embedded("--workers", "1")
    options = f"--listen {program.address} --admin {program.admin} --workers 1"
    status, text = program.http("/config")
    first, *rest = text.splitlines()
    assert status == 200 and first == f"# {options}: in the place of what is said here"
    assert yaml.safe_load("\n".join(rest)) == yaml.safe_load(text)
    unchanged = proxima(config("embedded"))
    assert unchanged.http("/config")[1] == unchanged.file.read_text()


def test_silent_admin_connections_are_limited_and_closed(server, proxy):
    half = [Raw(proxy.admin) for _ in range(200)]
    for connection in half:
        try:
            connection.send(b"GET /live HTTP/1.1\r\n")
        except OSError:
            # This connection was one too many and is already closed.
            pass
    folder = pathlib.Path(f"/proc/{proxy.process.pid}/fd")
    until(lambda: len(list(folder.iterdir())) < 150, "one too many is closed at once")
    with proxy.raw() as client:
        client.set("k", "v")
    # None of these connections leaves by itself.
    until(lambda: proxy.http("/live") == (200, "live\n"), "operators are served again")
    for connection in half:
        connection.close()


def test_idle_admin_connections_keep_no_operator_out(proxy):
    idle = [Raw(proxy.admin) for _ in range(200)]
    half = [Raw(proxy.admin) for _ in range(100)]
    for connection in half:
        connection.send(b"GET /live HTTP/1.1\r\n")
    for _ in range(20):
        assert proxy.http("/live") == (200, "live\n")
    for connection in idle + half:
        connection.close()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9150", "127.0.0.1.evil.example"])
def test_the_admin_port_refuses_foreign_host_names(proxy, host):
    for page in ("/config", "/live", "/metrics", "/members"):
        status, text = proxy.http(page, headers={"Host": host})
        assert status == 403 and "admin_hosts" in text


@pytest.mark.parametrize(
    "host", ["10.0.0.7:9150", "[fd00::7]:9150", "localhost:9150", "proxima:9150", "a.b.svc.cluster.local"]
)
def test_the_admin_port_answers_probes_scrapers_and_services(proxy, host):
    assert proxy.http("/live", headers={"Host": host}) == (200, "live\n")


def test_admin_hosts_adds_accepted_host_names(proxima):
    proxy = proxima(config("embedded", admin_hosts=["cache.example.com"]))
    assert proxy.http("/live", headers={"Host": "Cache.example.com:9150"})[0] == 200
    assert proxy.http("/live", headers={"Host": "other.example.com:9150"})[0] == 403


def test_reload_needs_the_header_and_no_foreign_origin(proxy):
    status, text = proxy.http("/reload", "POST", headers={})
    assert status == 403 and "X-Proxima" in text
    own = {"X-Proxima": "yes", "Origin": f"http://{proxy.admin}"}
    assert proxy.http("/reload", "POST", headers=own)[0] == 200
    for origin in ("http://evil.example", "null"):
        assert proxy.http("/reload", "POST", headers={"X-Proxima": "yes", "Origin": origin})[0] == 403
        assert proxy.http("/config", headers={"Origin": origin})[0] == 403


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("/ready?up=x", "`up=x`: expected a number"),
        ("/ready?poll=cache", "there is no `poll` here; known are pool, up"),
        ("/ready?up=1&up=2", "`up` is there twice"),
        ("/explain", "which key? /explain?key=K, or /explain?sql=TEXT"),
        ("/explain?key=", "which key? /explain?key=K, or /explain?sql=TEXT"),
        ("/explain?key=k&command=gett", "`gett` is no command of memcached"),
        ("/explain?key=k&listener=9", "there is no such listener"),
        ("/explain?key=k&listener=first", "`listener=first`: expected a number"),
    ],
)
def test_a_bad_query_on_the_admin_port_gets_its_reason(proxy, page, words):
    assert proxy.http(page) == (400, f"{words}\n")
