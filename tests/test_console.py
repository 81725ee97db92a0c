"""The console in a browser: each view shows what is true."""

import json
import signal

import pytest

from harness import freeze, until
from harness.agent import Agent, pod
from harness.asking import asking
from harness.console import check, menu, press
from harness.ejecting import ejecting, until_ejected
from harness.proxy import config
from harness.split import connect, made

pytestmark = pytest.mark.either_io


@pytest.fixture
def traffic(cleanup):
    """Sends these requests to a proxy again and again, until the test ends."""

    def start(proxy, *requests):
        cleanup.enter_context(asking(proxy, *requests))

    return start


@pytest.fixture
def servers(memcached):
    return memcached.several(3)


@pytest.fixture
def proxy(servers, proxima):
    return proxima(config("cache", {"cache": ejecting(servers)}))


def test_overview_of_the_embedded_store_shows_its_keys_being_used(embedded, browser, traffic):
    proxy = embedded()
    with proxy.raw() as client:
        client.set("greeting", "hello")
    traffic(proxy, b"get greeting\r\n", b"get greeting\r\n", b"get greeting\r\n", b"get absent\r\n")
    browser.open(proxy.admin)
    browser.shows("serving", "Hit ratio\n75.0 %", "1 items", proxy.version())
    browser.shows("live", within="header")
    check(browser, proxy.admin)
    browser.picture("embedded")
    assert menu(browser) == ["Overview", "Tree", "Events"]


def test_a_server_that_is_out_is_first_on_every_page_with_its_reason(proxy, servers, browser):
    servers[1].kill()
    until_ejected(proxy, servers[1])
    name, why = servers[1].address, proxy.member(servers[1].address)["why"]
    browser.open(proxy.admin)
    text = browser.shows("Out of order: 1 of 3 servers", name, why)
    assert "1 of 3 servers of cache" in text.splitlines()[0]
    assert browser.rows("Pools, and who waits")[0][:2] == ["cache", "2 of 3"]
    check(browser, proxy.admin)
    browser.go("servers")
    rows = until(lambda: browser.rows("Servers"), "there are servers")
    assert rows[0][0].split() == [name, "cache"] and "ejected" in rows[0][1] and why in rows[0][1]
    assert [row[1] for row in rows[1:]] == ["up", "up"]
    check(browser, proxy.admin)
    browser.picture("servers")


def test_slow_requests_tell_what_each_has_waited_for(memcached, proxima, browser):
    first, second = memcached(), memcached()
    pools = {
        "first": {"servers": [first.address], "timeout": "150ms"},
        "second": {"servers": [second.address]},
    }
    slow = {"over": "100ms", "keys": "plain"}
    proxy = proxima(config({"failover": ["first", "second"]}, pools, slow_requests=slow))
    freeze(first.process)
    with proxy.raw() as client:
        assert client.get("<b>key</b>") is None
    browser.open(proxy.admin, "slow")
    browser.shows("1 since the start took 100 ms or longer. The last 200 are kept.")
    [[_, request, took, steps, client, outcome]] = until(lambda: browser.rows("Slow requests"), "it is there")
    assert request.split() == ["get", "<b>key</b>"] and took.endswith(" ms") and outcome == "notfound"
    assert f"first {first.address}: " in steps and f"second {second.address}: notfound" in steps
    assert client.split() == ["127.0.0.1", "at", proxy.address]
    assert "Slow" in menu(browser)
    check(browser, proxy.admin)
    browser.picture("slow")
    first.process.send_signal(signal.SIGCONT)


def test_servers_are_sorted_and_filtered_as_the_address_says(proxy, servers, browser):
    names = sorted((server.address for server in servers), key=lambda name: int(name.split(":")[1]))

    def shown():
        return [row[0].split()[0] for row in browser.rows("Servers")]

    browser.open(proxy.admin, "servers?sort=server")
    until(lambda: shown() == names, "by name")
    press(browser, "Server", "thead")
    until(lambda: shown() == names[::-1], "the other way round")
    assert browser.do("evaluate", code="location.hash") == "#/servers?sort=-server"
    browser.do("fill", selector="main input", text=names[2])
    until(lambda: shown() == [names[2]], "what fits")
    browser.shows("1 of 3")
    browser.open(proxy.admin, "servers?state=ejected")
    browser.shows("0 of 3", "No server is like that.")


def test_the_way_of_a_key_lights_up_with_its_reasons(proxima, servers, browser):
    first, *others = [server.address for server in servers]
    pools = {"users": {"servers": [first]}, "rest": {"servers": others}}
    routes = {"by_key": {"by_prefix": {"prefixes": {"user:": "users"}, "default": "rest"}}}
    proxy = proxima(config("by_key", pools, routes=routes))
    browser.open(proxy.admin, "tree")
    browser.do("fill", selector="main input[type=search]", text="user:1")
    press(browser, "Show its way")
    browser.shows("Its way, and why", first)
    assert "key=user%3A1" in browser.do("evaluate", code="location.hash")
    code = "[...document.querySelectorAll('.box.lit .title')].map((title) => title.textContent)"
    lit = browser.do("evaluate", code=code)
    assert sorted(lit) == sorted([proxy.addresses[0], "by_prefix", first])
    assert browser.do("evaluate", code="document.querySelectorAll('.edge.lit').length") == 2
    assert browser.do("evaluate", code="document.querySelectorAll('.box').length") == 6
    told = browser.do(
        "evaluate", code="[...document.querySelectorAll('.steps li')].map((li) => li.textContent)"
    )
    assert [step.strip() for step in proxy.explain("user:1").splitlines()[1:]] == told
    check(browser, proxy.admin)
    browser.picture("tree")


def test_rules_of_the_near_cache_are_shown_set_and_switched(proxima, servers, browser):
    near = {"near": {"child": "cache", "rules": [{"name": "maps", "prefix": "map:", "ttl": "30s"}]}}
    pools = {"cache": {"servers": [servers[0].address]}}
    proxy = proxima(config("kept", pools, near={"memory": "4MiB"}, routes={"kept": near}))
    with proxy.raw() as client:
        client.set("map:osd", "epoch 1")
        for _ in range(5):
            client.get("map:osd")
    browser.open(proxy.admin, "near")
    browser.shows("maps", "prefix map:", "30s", "map:osd")
    [row] = browser.rows("Rules")
    assert row[3:6] == ["80.0 %", "4", "1"]
    check(browser, proxy.admin)
    browser.picture("near")

    def rule():
        [rule] = json.loads(proxy.http("/near")[1])["rules"]
        return rule

    browser.do("fill", selector="main input[name=ttl]", text="5s")
    press(browser, "Set")
    browser.shows("for 5s?", "others have changed", within="dialog")
    press(browser, "Set", "dialog")
    until(lambda: rule()["settings"]["ttl"] == "5s", "the time is set")
    browser.shows("the file says ttl 30s")
    press(browser, "Switch off")
    press(browser, "Cancel", "dialog")
    press(browser, "Switch off")
    browser.shows("goes to the servers", within="dialog")
    assert rule()["on"], "nothing was done yet"
    press(browser, "Switch off", "dialog")
    until(lambda: not rule()["on"], "it is off")
    browser.shows("off: nothing is kept")


def test_fleet_has_its_peers_and_links(fleet, browser):
    nodes = fleet()
    [leader] = [node for node in nodes if node.status()["is_leader"]]
    browser.open(leader.proxy.admin, "fleet")
    browser.shows("(this proxy)", "this proxy has one")
    assert {row[0].split()[0] for row in browser.rows("Peers")} == {node.name for node in nodes}
    assert all("reached" in row[1] for row in browser.rows("Peers"))
    check(browser, leader.proxy.admin)
    browser.picture("fleet")


def test_every_peer_shows_the_round_trips_of_all(fleet, browser):
    nodes = fleet().nodes
    follower = next(node for node in nodes if not node.status()["is_leader"])
    browser.open(follower.proxy.admin, "fleet")
    code = """[...document.querySelectorAll(".matrix tbody tr")]
        .map((row) => [...row.cells].map((cell) => cell.innerText))"""

    def links():
        """Each peer's cells, once all have told one another."""
        rows = [cells for _, *cells in browser.do("evaluate", code=code)]
        is_told = all(cell.endswith(" ms") or cell == "·" for cells in rows for cell in cells)
        return rows if len(rows) == len(nodes) and is_told else None

    rows = until(links, "all round trips are known")
    assert [cells.index("·") for cells in rows] == [0, 1, 2], "nobody asks itself"
    told = {peer["name"]: peer["round_trips_ms"] for peer in follower.status()["peers"]}
    names = {node.name for node in nodes}
    assert all(to.keys() == names - {name} for name, to in told.items()), told
    assert all(0 < took < 10_000 for to in told.values() for took in to.values()), told
    check(browser, follower.proxy.admin)
    browser.picture("fleet-links")


def test_sessions_of_mysql_are_shown_with_what_keeps_their_connection(proxima, tmp_path, mysql_pair, browser):
    proxy = proxima(made(tmp_path, *mysql_pair))
    browser.open(proxy.admin, "mysql")
    browser.shows("Pool writer", "Pool readers", "No client is connected.")
    columns = browser.do("evaluate", code="[...document.querySelectorAll('main th')].map((t) => t.innerText)")
    at = columns.index("Position")
    [row] = browser.rows("Servers of readers")
    assert row[at : at + 2] == ["not asked", "not asked"], "a pool without roles is not asked for it"
    with connect(proxy.address) as client, client.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1 FROM dual FOR UPDATE")
        rows = until(lambda: browser.rows("Sessions"), "the session is there")
        assert rows[0][1] == "app" and "transaction" in rows[0][4]
        check(browser, proxy.admin)
        browser.picture("mysql")


def test_slowest_statements_are_told_without_their_values(proxima, tmp_path, mysql_pair, browser):
    proxy = proxima(made(tmp_path, *mysql_pair, slow_requests="100ms"))
    with connect(proxy.address) as client, client.cursor() as cursor:
        for seconds in ("0.15", "0.2"):
            cursor.execute(f"SELECT 'secret', SLEEP({seconds})")
    browser.open(proxy.admin, "mysql")
    rows = until(lambda: browser.rows("Slowest statements"), "they are there")
    [row] = [row for row in rows if "SLEEP" in row[0]]
    assert row[0] == "SELECT ?, SLEEP(?)" and row[1].endswith(" ms") and row[2] == "2"
    assert "secret" not in browser.shows("Slowest statements")
    check(browser, proxy.admin)


def test_events_are_listed_with_the_newest_first_and_filtered(proxy, servers, browser):
    servers[0].kill()
    until_ejected(proxy, servers[0])
    browser.open(proxy.admin, "events")
    browser.shows(f"cache/{servers[0].address}", "up → ejected")
    kinds = browser.do("evaluate", code="[...document.querySelectorAll('.kind')].map((e) => e.textContent)")
    assert kinds[0] == "ejected" and len(kinds) >= 2
    browser.open(proxy.admin, "events?kind=ejected")
    browser.shows(f"1 of {len(kinds)}")
    browser.open(proxy.admin, "events?q=no+such+thing")
    browser.shows(f"0 of {len(kinds)}", "Nothing has happened.")
    check(browser, proxy.admin)


def test_an_event_comes_without_asking(proxy, servers, browser):
    browser.open(proxy.admin, "events")
    servers[2].kill()
    until_ejected(proxy, servers[2])
    browser.shows(f"cache/{servers[2].address}")


def test_a_report_has_versions_states_events_and_no_secrets(proxima, servers, tmp_path, browser):
    password = "not-for-others"
    (tmp_path / "password").write_text(password)
    locked = {"protocol": "redis", "servers": ["127.0.0.1:1"], "password_file": str(tmp_path / "password")}
    pools = {"cache": {"servers": [servers[0].address]}, "locked": locked}
    proxy = proxima(config("cache", pools))
    browser.open(proxy.admin)
    press(browser, "Copy for a report", "header")
    text = until(
        lambda: browser.do("evaluate", code="document.querySelector('dialog textarea')?.value"), "the report"
    )
    for part in ["proxima 0.1.0", proxy.version(), f"cache/{servers[0].address}: up", "Events", "listeners:"]:
        assert part in text, part
    assert password not in text
    press(browser, "Copy", "dialog")
    browser.shows("Copied.", within="dialog")
    check(browser, proxy.admin)


def test_the_writer_of_a_galera_cluster_moves_by_the_page(galera, before, browser):
    door = before(galera)
    browser.open(door.proxy.admin, "mysql")
    writer, to = door.writer(), None
    rows = browser.rows("Servers of db")
    assert all(cell.replace(",", "").isdigit() for row in rows for cell in row[6:8]), rows
    text = browser.shows("takes the writes.", "Make it the writer")
    assert text.count("Make it the writer") == 2
    rows = browser.rows("Servers of db")
    to = next(row[0].split()[0] for row in rows if "writer" not in row[1])
    check(browser, door.proxy.admin)
    browser.picture("galera")
    press(browser, "Make it the writer")
    browser.shows(f"to {to}?", "reads go on", "no client gets an error", within="dialog")
    press(browser, "Move the writes", "dialog")
    browser.shows(f"{to} takes the writes.")
    assert door.writer() != writer


def test_servers_are_shown_by_the_numa_node_that_the_agent_tells(
    proxima, memcached, tmp_path, cleanup, browser
):
    hosts = ["127.0.1.1", "127.0.1.2"]
    servers = [memcached(host=host) for host in hosts]
    agent = Agent(tmp_path, [pod(f"s{number}", host, cpus=1) for number, host in enumerate(hosts)])
    cleanup.callback(agent.stop)
    pools = {"cache": [server.address for server in servers]}
    proxy = proxima(config({"nearest": "cache"}, pools, nodes={"from": str(agent.socket)}))
    browser.open(proxy.admin, "agent")
    text = browser.shows(
        "It tells this proxy where containers are.", *(f"cache/{s.address}" for s in servers)
    )
    for node in agent.nodes().values():
        assert f"Node {node}" in text
    check(browser, proxy.admin)
    browser.picture("agent")
    agent.kill()
    browser.shows("It does not answer")


def test_the_page_can_be_used_by_keyboard(proxy, browser):
    def focused():
        code = "(document.activeElement.textContent || document.activeElement.tagName).trim()"
        return browser.do("evaluate", code=code)

    def tab_to(wanted):
        """Goes on by the key until this has the focus."""
        for _ in range(60):
            browser.do("press", key="Tab")
            if focused() == wanted:
                return
        raise AssertionError(f"{wanted!r} is never reached, {focused()!r} at the end")

    browser.open(proxy.admin)
    browser.do("press", key="Tab")
    assert focused() == "Skip to the content"
    tab_to("Servers")
    browser.do("press", key="Enter")
    browser.shows("3 of 3")
    tab_to("Requests/s")
    browser.do("press", key="Enter")
    until(lambda: "sort=-rate" in browser.do("evaluate", code="location.hash"), "sorted by rate")
    tab_to("Drain")
    browser.do("press", key="Enter")
    browser.shows("Clients notice nothing", within="dialog")
    browser.do("press", key="Escape")
    until(lambda: browser.text("dialog") == "", "it is closed")
    assert focused() == "Drain", "where it was before"
