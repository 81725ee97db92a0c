"""A configuration changes under a running proxy, as a whole or not at all, and no client notices."""

import copy
import re
import signal
import threading

import pytest

from harness import ports, until
from harness.load import Load
from harness.proxy import config


@pytest.fixture
def servers(memcached):
    return memcached.several(3)


def addresses(servers):
    return [server.address for server in servers]


@pytest.mark.timeout(180)
def test_1000_reloads_under_load_fail_no_request(servers, proxima):
    first = config({"pool": "cache"}, {"cache": addresses(servers)})
    proxy = proxima(first)
    # The second configuration has another route, time-outs, pool and listener, and the same servers for the
    # same keys.
    second = copy.deepcopy(first)
    second["pools"]["cache"] = {"servers": addresses(servers), "timeout": "7s", "connect_timeout": "3s"}
    second["pools"]["other"] = addresses(servers[:1])
    second["listeners"][0]["route"] = {
        "by_prefix": {"prefixes": {"other:": "other"}, "default": {"hash": "cache"}}
    }
    second["listeners"].append({"address": ports.address(), "route": "other"})
    with Load(proxy.address, clients=20, rate=600) as load:
        for number in range(1000):
            proxy.write((second, first)[number % 2])
            status, text = proxy.reload()
            assert status == 200, text
        load.after(100)
    assert proxy.metric("config_failures_total") == 0
    # The file is followed as well, so some changes were read before the reload.
    assert proxy.metric("config_reloads_total") >= 900
    assert proxy.metric("lanes") <= 2 * 4 * 3, "connections to members of the past stay open"


def test_a_page_of_metrics_is_about_the_members_of_one_configuration(servers, proxima):
    # With many pools a page takes long enough to be begun before a reload and ended behind it.
    names = ["cache", *(f"other-{number}" for number in range(199))]
    first, second = (
        config({"pool": "cache"}, dict.fromkeys(names, addresses(some)))
        for some in (servers[:2], servers[2:])
    )
    for some in (first, second):
        some["routes"] = {"kept": {"random": [{"hash": name} for name in names]}}
        some["listeners"].append({"address": "127.0.0.1:0", "route": "kept"})
    proxy = proxima(first)
    ended, seen, mixed = threading.Event(), set(), []

    def read():
        while not ended.is_set():
            page = proxy.http("/metrics")[1]
            named = re.findall(r'^proxima_member_up{.*member="([^"]+)"', page, re.M)
            counted = [
                sum(map(int, re.findall(rf"^proxima_{family}{{.*}} (\d+)", page, re.M)))
                for family in ("pool_members", "pool_distances")
            ]
            seen.add(tuple(sorted(set(named))))
            if counted != [len(named)] * 2:
                mixed.append((named, counted))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(50):
            proxy.write((second, first)[number % 2])
            assert proxy.reload()[0] == 200
    finally:
        ended.set()
        reader.join()
    assert mixed == []
    assert seen == {tuple(sorted(addresses(some))) for some in (servers[:2], servers[2:])}


def test_reloads_during_large_values_break_none(memcached, proxima):
    server = memcached(item="64m", memory=256)
    first = config("cache", {"cache": [server.address]})
    second = copy.deepcopy(first)
    second["pools"]["cache"] = {"servers": [server.address], "timeout": "5s"}
    proxy = proxima(first)
    value = bytes(range(256)) * 4096 * 8
    with proxy.raw() as client:
        client.send(b"set large 0 0 %d\r\n" % len(value))
        for number, start in enumerate(range(0, len(value), 1 << 20)):
            client.send(value[start : start + (1 << 20)])
            proxy.write((second, first)[number % 2])
            assert proxy.reload()[0] == 200
        client.send(b"\r\nget large\r\n")
        assert client.line() == b"STORED\r\n"
        head = client.line()
        got = b""
        while len(got) < len(value):
            got += client.exactly(min(1 << 20, len(value) - len(got)))
            proxy.write((second, first)[len(got) >> 20 & 1])
            assert proxy.reload()[0] == 200
        assert head == b"VALUE large 0 %d\r\n" % len(value) and got == value
        assert client.until(b"END\r\n") == b"\r\nEND\r\n"


def test_a_request_in_flight_finishes_in_the_old_configuration(servers, proxima):
    old, new = servers[:2]
    pools = {"old": {"servers": [old.address], "timeout": "50s"}, "new": [new.address]}
    made = config("old", pools)
    proxy = proxima(made)
    old.set("k", "old")
    new.set("k", "new")
    with proxy.raw() as waiting:
        old.freeze()
        waiting.send(b"get k\r\n")
        until(lambda: proxy.metric("requests_in_flight") == 1, "it waits for the old server")
        proxy.write(
            {**made, "pools": {"new": [new.address]}, "listeners": [{**made["listeners"][0], "route": "new"}]}
        )
        assert proxy.reload()[0] == 200
        # A request behind it goes to the new server, and is answered in its turn.
        waiting.send(b"get k\r\n")
        with proxy.raw() as client:
            assert client.get("k") == b"new"
        old.thaw()
        assert waiting.until(b"END\r\n") == b"VALUE k 0 3\r\nold\r\nEND\r\n"
        assert waiting.until(b"END\r\n") == b"VALUE k 0 3\r\nnew\r\nEND\r\n"
    # Nothing but this wakes the workers any more.
    until(lambda: old.stat("curr_connections") == 1, "no connection to the old server is left")


BAD = {
    "an unknown key": ("listeners:\n  - address: {listener}\n    rout: cache\n", (":3:5:", "rout", "route")),
    "an unknown route": ("listeners:\n  - address: {listener}\n    route: nowhere\n", (":3:12:", "nowhere")),
    "no YAML": ("listeners: [\n", (":2:1:",)),
    "an empty file": ("", ("empty",)),
}


@pytest.mark.parametrize("text, parts", BAD.values(), ids=BAD.keys())
def test_a_bad_configuration_is_refused_with_its_place_and_the_running_one_stays(
    servers, proxima, text, parts
):
    made = config("cache", {"cache": addresses(servers)})
    proxy = proxima(made)
    version = proxy.version()
    with proxy.raw() as client:
        client.set("k", "v")
        proxy.write(text.format(listener=made["listeners"][0]["address"]))
        status, message = proxy.reload()
        assert status == 422
        assert [part for part in (str(proxy.file), *parts) if part not in message] == []
        assert message.strip() in proxy.log()
        assert proxy.metric("config_failures_total") >= 1
        assert proxy.version() == version
        assert client.get("k") == b"v"
    assert proxy.is_live()


def test_a_configuration_that_is_good_again_is_logged_and_shown_in_metrics(servers, proxima):
    made = config("cache", {"cache": addresses(servers)})
    proxy = proxima(made)
    for bad in ("listeners: [\n", ""):
        proxy.write(bad)
        assert proxy.reload()[0] == 422
        assert proxy.metric("config_last_reload_successful") == 0
    assert "good again" not in proxy.log()
    proxy.write(made)
    assert proxy.reload()[0] == 200
    assert proxy.metric("config_last_reload_successful") == 1
    assert proxy.log().count("the configuration is good again") == 1


def test_a_reload_with_an_address_in_use_is_refused_as_a_whole(servers, memcached, proxima):
    made = config("cache", {"cache": addresses(servers)})
    proxy = proxima(made)
    taken = {"address": servers[0].address, "route": "cache"}
    proxy.write({**made, "listeners": [{**made["listeners"][0], "route": "null"}, taken]})
    status, message = proxy.reload()
    assert status == 422 and servers[0].address in message
    with proxy.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"


def test_a_configuration_file_that_vanishes_and_returns_fails_no_request(servers, proxima):
    made = config("cache", {"cache": addresses(servers)})
    proxy = proxima(made)
    with Load(proxy.address) as load:
        text = proxy.file.read_text()
        proxy.file.unlink()
        until(lambda: proxy.metric("config_failures_total") > 0, "its absence is told")
        load.after(100)
        made["pools"]["cache"] = {"servers": addresses(servers), "timeout": "3s"}
        version = proxy.version()
        proxy.write(made)
        until(lambda: proxy.version() != version, "it is followed again")
        load.after(100)
        proxy.file.write_text(text)
        until(lambda: proxy.version() == version, "the version tells what is said, not when")


def test_a_changed_configuration_file_takes_effect(servers, proxima):
    made = config("cache", {"cache": addresses(servers)})
    proxy = proxima(made)
    version = proxy.version()
    proxy.write({**made, "listeners": [{**made["listeners"][0], "route": "null"}]})
    until(lambda: proxy.version() != version, "the new configuration takes effect")
    with proxy.raw() as client:
        assert client.ask(b"set k 0 0 1\r\nv\r\n") == b"NOT_STORED\r\n"


def test_sighup_reads_the_configuration_again(servers, proxima):
    made = config("cache", {"cache": addresses(servers)})
    proxy = proxima(made)
    version = proxy.version()
    proxy.write({**made, "listeners": [{**made["listeners"][0], "route": "null"}]})
    proxy.signal(signal.SIGHUP)
    until(lambda: proxy.version() != version, "the new configuration takes effect")
    assert "SIGHUP" in proxy.log()


def test_an_unchanged_configuration_file_changes_nothing(servers, proxima):
    proxy = proxima(config("cache", {"cache": addresses(servers)}))
    version = proxy.version()
    for _ in range(3):
        proxy.file.touch()
        assert proxy.reload()[0] == 200
    assert proxy.version() == version
    assert proxy.metric("config_reloads_total") == 0


def test_a_new_listener_opens_and_a_removed_one_closes(servers, proxima):
    made = config("cache", {"cache": addresses(servers)})
    proxy = proxima(made)
    [first], second = made["listeners"], {"address": ports.address(), "route": "cache"}
    with Load(proxy.address) as load, proxy.raw() as client:
        client.set("k", "v")
        proxy.write({**made, "listeners": [first, second]})
        assert proxy.reload()[0] == 200
        proxy.addresses = [first["address"], second["address"]]
        with proxy.raw(1) as other:
            assert other.get("k") == b"v"
            proxy.write(made)
            assert proxy.reload()[0] == 200
            until(lambda: not proxy.connects(1), "the removed listener closes")
            load.after(50)
        # The listener opens once more, as its address is free.
        proxy.write({**made, "listeners": [first, second]})
        assert proxy.reload()[0] == 200
        with proxy.raw(1) as other:
            assert other.get("k") == b"v"


@pytest.mark.parametrize("address", ["tcp", "unix"])
def test_queued_clients_are_served_before_their_listener_closes(servers, proxima, tmp_path, address):
    made = config("cache", {"cache": addresses(servers)}, workers=4)
    second = {"address": ports.address() if address == "tcp" else f"unix:{tmp_path}/s", "route": "cache"}
    proxy = proxima({**made, "listeners": [*made["listeners"], second]})
    for _ in range(5):
        clients = [proxy.raw(1) for _ in range(50)]
        proxy.write(made)
        assert proxy.reload()[0] == 200
        for client in clients:
            client.send(b"version\r\n")
        for client in clients:
            # The client is served by a tree that still has a route for it, or gets an error. It is never cut
            # off in silence.
            assert client.line().startswith((b"VERSION ", b"SERVER_ERROR "))
            client.close()
        proxy.write({**made, "listeners": [*made["listeners"], second]})
        assert proxy.reload()[0] == 200


def test_limits_change_with_the_configuration(servers, proxima):
    made = config("cache", {"cache": addresses(servers)}, workers=1)
    proxy = proxima(made)
    with proxy.raw() as client:
        client.set("k", "v" * 5000)
        proxy.write({**made, "limits": {"value_size": "1KiB"}})
        assert proxy.reload()[0] == 200
        answer = client.ask(b"set k 0 0 2000\r\n%b\r\n" % (b"x" * 2000))
        assert answer == b"SERVER_ERROR object too large for cache\r\n"


def test_a_reload_reports_changes_that_need_a_restart(servers, proxima):
    first = config("cache", {"cache": addresses(servers)})
    proxy = proxima(first)
    assert "read at the start only" not in proxy.log()
    proxy.write({**first, "embedded": {"memory": "1MiB"}})
    assert proxy.reload()[0] == 200
    assert "`embedded.memory` has changed, and is read at the start only" in proxy.log()
