"""What the node agent tells of the machine, drawn on the console and as tables."""

import json
import threading

import pytest

from harness import until
from harness.agent import Agent, Impostor, pod
from harness.console import check
from harness.proxy import config

pytestmark = pytest.mark.either_io

TWO_SOCKETS = "sockets=2,nodes=2,cores=16,threads=2,caches=2"
"""128 CPUs on four NUMA nodes, with two caches each."""
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def follows(proxima, memcached):
    """Starts a proxy that follows what listens at this socket."""

    def start(agent):
        pools = {"cache": [memcached().address]}
        return proxima(config({"nearest": "cache"}, pools, nodes={"from": str(agent.socket)}))

    return start


@pytest.fixture
def agent(cleanup, tmp_path):
    def start(pods, shape):
        agent = Agent(tmp_path, pods, shape)
        cleanup.callback(agent.stop)
        return agent

    return start


@pytest.fixture
def telling(cleanup, tmp_path):
    """An impostor that tells this snapshot."""

    def start(snapshot):
        end = threading.Event()
        cleanup.callback(end.set)

        def talk(sock):
            sock.sendall(json.dumps({"version": 1, **snapshot}).encode() + b"\n")
            end.wait()

        impostor = Impostor(tmp_path, talk)
        cleanup.callback(impostor.stop)
        return impostor

    return start


def roaming(name):
    """A pod that may run on every CPU."""
    made = pod(name, None)
    made["metadata"]["annotations"] = {"proxima.io/cpus": "unpinned"}
    return made


def cpus(text):
    """The CPUs of a list."""
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def drawn(browser):
    """The number or letters on each CPU of the drawing."""
    code = """[...document.querySelectorAll(".machine .cpu")].map((cpu) =>
        [cpu.firstElementChild.textContent, cpu.lastChild.data ?? ""])"""
    return {int(cpu): tag for cpu, tag in browser.do("evaluate", code=code)}


def count(browser, selector):
    return browser.do("evaluate", code=f"document.querySelectorAll({json.dumps(selector)}).length")


def fits(browser):
    """Nothing is wider than the window."""
    return browser.do("evaluate", code="document.documentElement.scrollWidth <= innerWidth")


def test_two_sockets_are_drawn_with_their_containers_and_the_tables_say_the_same(agent, follows, browser):
    own = [pod(f"redis-{number}", f"127.0.1.{number + 1}", cpus=number + 2) for number in range(9)]
    shared = [pod(f"web-{number}", f"127.0.2.{number + 1}", near=f"redis-{number}") for number in range(6)]
    agent = agent([*own, *shared, roaming("logs")], TWO_SOCKETS)
    told = {one["name"]: one["containers"][0] for one in agent.snapshot()["pods"]}
    proxy = follows(agent)
    browser.open(proxy.admin, "agent", height=1500)
    browser.shows("Socket 1", "NUMA node 3", "redis-0", "web-5", "Anywhere on this machine")
    assert [count(browser, f".machine .{kind}") for kind in ("socket", "numa", "cache", "cpu")] == [
        2,
        4,
        8,
        128,
    ]

    rows = {row[0].split("\n")[-1].split("/")[1].split(" ")[0]: row for row in browser.rows("Containers")}
    assert rows.keys() == told.keys()
    tags = {}
    for name, container in told.items():
        tag, _, _ = rows[name][0].rpartition("default/")
        tags[name] = tag.strip()
        alone = cpus(container.get("own", ""))
        assert cpus(rows[name][2].replace("–", "")) == alone, name
        assert cpus(rows[name][3].replace("–", "")) == cpus(container["cpus"]) - alone, name
    on = drawn(browser)
    assert on.keys() == cpus("0-127")
    for name in (one["metadata"]["name"] for one in own):
        assert {cpu for cpu, tag in on.items() if tag == tags[name]} == cpus(told[name]["own"]), name
    assert tags["web-0"].isalpha(), "the shared CPUs have letters"
    assert tags["web-0"] in {on[cpu] for cpu in cpus(told["web-0"]["cpus"])}

    for name in ("redis-0", "logs", "web-1"):
        mine = cpus(told[name]["cpus"])
        others = sum(
            1 for other, container in told.items() if other != name and mine & cpus(container["cpus"])
        )
        words = rows[name][4]
        said = words.count("default/") + (int(words.split()[-2]) if words.endswith("more") else 0)
        assert said == others, (name, words)
    assert len(browser.rows("Caches and CPUs")) == 8
    browser.picture("agent-machine")
    check(browser, proxy.admin)
    for scheme in ("light", "dark"):
        browser.open(proxy.admin, "agent", scheme=scheme, **PHONE)
        browser.shows("Socket 1", "redis-0")
        assert fits(browser)
        browser.picture(f"agent-phone-{scheme}")
        check(browser, proxy.admin)
    browser.open(proxy.admin, "agent", scheme="dark", height=1500)
    browser.shows("Socket 1", "redis-0")
    browser.picture("agent-machine-dark")
    check(browser, proxy.admin)


def test_a_container_that_comes_is_drawn_without_asking(agent, follows, browser):
    agent = agent([pod("first", "127.0.1.1", cpus=1)], "sockets=1,cores=4")
    proxy = follows(agent)
    browser.open(proxy.admin, "agent")
    browser.shows("default/first")
    assert list(drawn(browser).values()).count("1") == 1
    agent.place([pod("first", "127.0.1.1", cpus=1), pod("second", "127.0.1.2", cpus=2)])
    browser.shows("default/second")
    assert list(drawn(browser).values()).count("2") == 2


def test_an_agent_that_tells_no_cpus_of_containers_is_shown_with_their_nodes(telling, follows, browser):
    nodes = [{"id": 0, "sockets": [0], "cpus": "0-1"}, {"id": 1, "sockets": [], "cpus": ""}]
    old = {"id": "c", "name": "c", "nodes": [0]}
    pods = [{"uid": "u", "namespace": "shop", "name": "redis-0", "ips": [], "containers": [old]}]
    proxy = follows(telling({"nodes": nodes, "pods": pods}))
    browser.open(proxy.admin, "agent")
    browser.shows("memory only", "Of some containers the agent tells the NUMA nodes only.")
    assert browser.rows("Containers")[0][:4] == ["shop/redis-0 · c", "NUMA nodes 0", "–", "not told"]
    assert drawn(browser) == {0: "", 1: ""}
    check(browser, proxy.admin)


def test_hostile_names_and_a_thousand_containers_are_shown_as_text(telling, follows, browser):
    markup = "<img src=x onerror=document.title='taken'>\u202e\x1b[2J"
    nodes = [{"id": 0, "sockets": [0], "cpus": "0-7", "caches": ["0-3"], "cores": ["0,4"]}]

    def container(number, **what):
        return {"id": str(number), "name": "c", "nodes": [0], "cpus": "0-7", **what}

    many = [container(number) for number in range(1500)]
    names = ["__proto__", markup, markup, "x" * 100_000]
    pods = [
        {"uid": "u", "namespace": "<b>", "name": name, "ips": [], "containers": [container(0, own=str(cpu))]}
        for cpu, name in enumerate(names)
    ]
    pods.append({"uid": "u", "namespace": "shop", "name": "many", "ips": [], "containers": many})
    proxy = follows(telling({"nodes": nodes, "pods": pods}))
    browser.open(proxy.admin, "agent")
    text = browser.shows("<b>/__proto__", "<b>/<img src=x", "504 more have no room here.")
    assert "\x1b" not in text and "\u202e" not in text
    assert count(browser, "main :is(img, script, b)") == 0
    assert "taken" not in browser.do("evaluate", code="document.title")
    assert len(browser.rows("Caches and CPUs")) == 2, "the cache that is known, and the other CPUs"
    check(browser, proxy.admin)


def test_of_very_many_places_the_rest_is_counted(telling, follows, browser):
    nodes = [{"id": 0, "sockets": [0], "cpus": "0-127", "caches": ["0-127"]}]

    def containers(number):
        return [{"id": "c", "name": "c", "nodes": [0], "cpus": f"{number}-127"}]

    pods = [
        {"uid": "u", "namespace": "shop", "name": f"p{number}", "ips": [], "containers": containers(number)}
        for number in range(60)
    ]
    proxy = follows(telling({"nodes": nodes, "pods": pods}))
    browser.open(proxy.admin, "agent")
    browser.shows("shop/p39", "20 more")
    assert count(browser, ".machine .cache > .marks > li") == 40 + 1
    [row] = browser.rows("Caches and CPUs")
    assert row[5].endswith("20 more")
    assert len(browser.rows("Containers")) == 60, "each has its row"
    check(browser, proxy.admin)


def test_the_machine_of_an_agent_that_has_gone_is_shown_until_its_word_no_longer_holds(
    agent, proxima, memcached, browser
):
    agent = agent([pod("first", "127.0.1.1", cpus=1)], "sockets=1,cores=4")
    nodes = {"from": str(agent.socket), "grace": "2s"}
    proxy = proxima(config({"nearest": "cache"}, {"cache": [memcached().address]}, nodes=nodes))
    browser.open(proxy.admin, "agent")
    browser.shows("default/first")
    agent.kill()
    browser.shows("It does not answer")
    until(lambda: count(browser, ".machine") == 0, "nothing is drawn that does not hold")
    check(browser, proxy.admin)
