"""Samples of requests: those who watch see keys, ways and times; who does not watch pays nothing."""

import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import ports, until
from harness.asking import asking
from harness.proxy import config
from harness.redis import Connection
from harness.split import connect, made, rows, wait_for_members
from harness.watching import Watcher

pytestmark = pytest.mark.either_io


@pytest.fixture
def servers(memcached):
    return [memcached(), memcached()]


@pytest.fixture
def proxy(servers, proxima):
    pools = {
        "users": {"servers": [servers[0].address]},
        "rest": {"servers": [servers[1].address]},
    }
    route = {"by_prefix": {"prefixes": {"user:": "users"}, "default": "rest"}}
    return proxima(config(route, pools))


def gets(*keys):
    return [b"get %s\r\n" % key for key in keys]


def tapped(proxy, query):
    """The lines of /tap until it has told as many as it was to."""
    host, port = proxy.admin.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port))
    connection.request("GET", f"/tap?{query}")
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, [json.loads(line) for line in text.splitlines()] if answer.status == 200 else text


def test_the_keys_that_are_asked_for_most_and_their_pools_are_told(proxy):
    keys = gets(*[b"user:1"] * 8, b"user:2", b"other")
    with Watcher(proxy, "/watch?with=samples") as watcher, asking(proxy, *keys):

        def told(now):
            users = now.get("hot_keys", {}).get("users", [])
            return len(users) == 2 and now["hot_keys"].get("rest") and users[0]["share"] > 0.8

        watcher.until(told, "hot keys are told")
        users = watcher.document["hot_keys"]["users"]
        assert [key["key"] for key in users] == ["user:1", "user:2"] and users[0]["rate"] > users[1]["rate"]
        assert [key["key"] for key in watcher.document["hot_keys"]["rest"]] == ["other"]


def test_requests_that_come_by_each_node_are_told_by_the_numbers_of_the_tree(proxy, servers):
    tree = json.loads(proxy.http("/tree")[1])
    [listener] = tree["listeners"]
    assert (listener["address"], listener["protocol"]) == (proxy.addresses[0], "memcached")
    nodes = {node["id"]: node for node in tree["nodes"]}
    root = nodes[listener["root"]]
    assert root["handle"] == "by_prefix" and set(root["children"]) <= set(nodes)
    members = {node["member"]: str(node["id"]) for node in nodes.values() if "member" in node}
    assert set(members) == {server.address for server in servers}
    with Watcher(proxy, "/watch?with=samples") as watcher, asking(proxy, *gets(*[b"user:1"] * 9, b"other")):
        few, many = members[servers[1].address], members[servers[0].address]

        def told(now):
            edges = now.get("edges", {})
            return edges.get(few, 0) > 0 and edges.get(many, 0) > 4 * edges[few]

        watcher.until(told, "the edges have their traffic")
        edges = watcher.document["edges"]
        assert edges[str(listener["root"])] >= edges[many]


def test_the_way_of_a_key_has_the_numbers_of_the_tree(proxy, servers):
    nodes = {node["id"]: node for node in json.loads(proxy.http("/tree")[1])["nodes"]}
    status, text = proxy.http("/explain.json?key=user:7")
    assert status == 200
    way = json.loads(text)
    assert nodes[way["nodes"][0]]["handle"] == "by_prefix"
    assert nodes[way["nodes"][-1]]["member"] == servers[0].address
    assert way["text"] == proxy.http("/explain?key=user:7")[1]
    assert [step["node"] for step in way["steps"] if "node" in step] == way["nodes"]
    assert proxy.http("/explain.json")[0] == 400


def test_a_tap_tells_requests_with_member_outcome_and_time(proxy, servers):
    with asking(proxy, *gets(b"user:1", b"other", b"user:\x01\xff<b>")):
        status, lines = tapped(proxy, "limit=40")
        assert status == 200 and len([line for line in lines if "key" in line]) == 40
        asked = {line["key"]: line for line in lines if "key" in line}
        assert set(asked) == {"user:1", "other", "user:\\x01\\xff<b>"}
        line = asked["user:1"]
        assert (line["pool"], line["member"]) == ("users", servers[0].address)
        assert (line["command"], line["class"], line["outcome"]) == ("get", "read", "notfound")
        assert line["us"] > 0 and line["client"] == "127.0.0.1" and line["listener"] == proxy.addresses[0]
        _, lines = tapped(proxy, "limit=5&route=rest&class=read")
        assert {line["key"] for line in lines} == {"other"}
        _, lines = tapped(proxy, "limit=5&prefix=user:1&listener=0&slow=1us")
        assert {line["key"] for line in lines} == {"user:1"}


@pytest.mark.parametrize(
    "query, words",
    [
        ("class=all", "known are read, write, delete"),
        ("slow=soon", "expected a time"),
        ("limit=many", "expected a number"),
        ("key=k", "known are listener"),
    ],
)
def test_a_bad_tap_is_refused_in_words(proxy, query, words):
    status, text = tapped(proxy, query)
    assert status == 400 and words in text


def test_large_values_and_writes_come_by_a_tap_unchanged(proxy):
    with Watcher(proxy, "/watch?with=samples") as watcher, proxy.raw() as client:
        watcher.until(lambda now: "hot_keys" in now, "samples are taken")
        large = b"v" * 900_000
        for number in range(20):
            client.set(f"user:{number}", large)
            assert client.get(f"user:{number}") == large
        for number in range(300):
            client.set(f"k{number}", str(number))
        for number in range(300):
            assert client.get(f"k{number}") == str(number).encode()


def test_nothing_is_sampled_once_nobody_watches(proxy):
    with Watcher(proxy, "/watch?with=samples") as watcher, asking(proxy, *gets(b"k")):
        watcher.until(lambda now: now.get("hot_keys", {}).get("rest"), "samples are taken")
    with Watcher(proxy) as watcher, asking(proxy, *gets(b"k")):
        watcher.until(lambda now: "hot_keys" not in now, "a document without samples")
        until(lambda: watcher.names.count("change") >= 3, "some seconds")
        assert "hot_keys" not in watcher.document and "edges" not in watcher.document


def test_keys_of_the_store_in_this_process_are_told_under_its_name(embedded):
    proxy = embedded()
    with Watcher(proxy, "/watch?with=samples") as watcher, asking(proxy, *gets(*[b"hot"] * 9, b"other")):
        watcher.until(lambda now: len(now.get("hot_keys", {}).get("embedded", [])) == 2, "both keys are told")
        first, second = watcher.document["hot_keys"]["embedded"]
        assert (first["key"], second["key"]) == ("hot", "other") and first["share"] > 0.8
        [line] = tapped(proxy, "limit=1&route=embedded")[1]
        assert line["pool"] == "embedded" and "member" not in line


def test_hot_keys_are_counted_all_the_time_where_the_configuration_says_so(proxy):
    """Whoever comes then is told those of the last seconds by the first document."""
    made = proxy.config

    def taken(**keys):
        proxy.write({**made, **keys})
        assert proxy.reload()[0] == 200

    with asking(proxy, *gets(*[b"user:1"] * 9, b"user:2")):
        taken(hot_keys="on")
        until(lambda: first_document(proxy).get("hot_keys", {}).get("users"), "keys are counted")
        assert [key["key"] for key in first_document(proxy)["hot_keys"]["users"]] == ["user:1", "user:2"]
        taken(hot_keys="watched")
        until(lambda: "hot_keys" not in first_document(proxy), "nobody counts any more")


def first_document(proxy):
    """The document that one gets who comes now, and wants no samples."""
    with Watcher(proxy, "/watch") as watcher:
        until(lambda: watcher.document is not None, "there is a document")
        return watcher.document


@pytest.mark.parametrize("keys", [{}, {"slow_requests": "1us"}], ids=["tapped", "timed"])
def test_the_store_in_this_process_answers_what_it_answers_whoever_looks(proxima, keys):
    """It has commands of its own, for which nothing walks the routes."""
    listener = {"address": ports.address(), "protocol": "redis", "route": "embedded"}
    proxy = proxima({"workers": 1, "listeners": [listener], **keys})
    asked = (("PUNSUBSCRIBE", "1", "2"), ("MGET", "a", "b"), ("DBSIZE",), ("SUBSCRIBE", "a"))

    def answers():
        with Connection(proxy.address) as client:
            return [client.ask(*words) for words in asked]

    before = answers()
    if not keys:
        with Watcher(proxy, "/watch?with=samples") as watcher:
            client = Connection(proxy.address)

            def is_sampled(now):
                client.ask("GET", "k")
                return now.get("hot_keys", {}).get("embedded")

            watcher.until(is_sampled, "requests come by the tap")
            assert answers() == before
    assert b"PUNSUBSCRIBE is not served" in before[0] and b"SUBSCRIBE is not served" in before[3]


def test_statements_are_told_without_their_values_and_with_their_server(mysql_pair, proxima, tmp_path):
    writer, reader = mysql_pair
    proxy = proxima(made(tmp_path, writer, reader))
    wait_for_members(proxy, writer, reader)
    ended = threading.Event()

    def asks():
        with connect(proxy.address) as client:
            while not ended.wait(0.005):
                rows(client, "SELECT 'secret', 5 FROM dual")

    with ThreadPoolExecutor(1) as threads, Watcher(proxy, "/watch?with=samples") as watcher:
        asking = threads.submit(asks)
        try:
            watcher.until(lambda now: now.get("hot_keys", {}).get("readers"), "statements are told")
            assert watcher.document["hot_keys"]["readers"][0]["key"] == "SELECT ?, ... FROM dual"
            [line] = tapped(proxy, "limit=1&route=readers")[1]
            assert (line["pool"], line["member"]) == ("readers", reader.address)
            assert line["key"] == "SELECT ?, ... FROM dual"
        finally:
            ended.set()
        asking.result()


@pytest.mark.parametrize("keys", ["hidden", "hashed"])
def test_keys_of_samples_are_told_as_the_configuration_says(servers, proxima, keys):
    admin = {"address": ports.address(), "keys": keys}
    proxy = proxima(config("cache", {"cache": {"servers": [servers[0].address]}}, admin=admin))
    with Watcher(proxy, "/watch?with=samples") as watcher, asking(proxy, *gets(b"secret-key")):
        watcher.until(lambda now: now.get("edges"), "requests are sampled")
        [line] = tapped(proxy, "limit=1")[1]
        told = line.get("key")
        if keys == "hidden":
            assert told is None
            assert not any(watcher.document["hot_keys"].values())
        else:
            watcher.until(lambda now: now["hot_keys"].get("cache"), "hot keys are told")
            assert watcher.document["hot_keys"]["cache"][0]["key"] == told and told.startswith("#")
        assert "secret-key" not in json.dumps(watcher.document)
        # By prefixes they could be found one letter after the other.
        why = "`prefix` would tell what `admin.keys` does not\n"
        assert tapped(proxy, "prefix=secret") == (400, why)


@pytest.mark.parametrize("keys", ["hidden", "hashed", "plain"])
def test_keys_of_the_near_cache_are_told_as_the_configuration_says(servers, proxima, keys):
    near = {"near": {"child": "cache", "rules": [{"name": "all", "prefix": "", "ttl": "60s"}]}}
    admin = {"address": ports.address(), "keys": keys}
    pools = {"cache": {"servers": [servers[0].address]}}
    proxy = proxima(config("kept", pools, routes={"kept": near}, near={"memory": "4MiB"}, admin=admin))
    with proxy.raw() as client:
        client.set("secret-key", "v")
        for _ in range(3):
            assert client.get("secret-key") == b"v"
    status, text = proxy.http("/near/top")
    told = [row["key"] for row in json.loads(text)]
    assert status == 200
    match keys:
        case "hidden":
            assert told == []
        case "hashed":
            assert len(told) == 1 and told[0].startswith("#") and "secret" not in text
        case "plain":
            assert told == ["secret-key"]
