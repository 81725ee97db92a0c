"""The stream of facts: the document that is followed, and the changes of state that are told."""

import json
import re
import socket

import pytest

from harness import until
from harness.ejecting import until_ejected
from harness.proxy import config
from harness.watching import Watcher

pytestmark = pytest.mark.either_io


@pytest.fixture
def servers(memcached):
    return [memcached(), memcached()]


@pytest.fixture
def proxy(servers, proxima):
    pool = {
        "servers": [server.address for server in servers],
        "eject": {"failures": 1, "probe_initial": "20ms"},
    }
    return proxima(config("cache", {"cache": pool}))


def events(proxy, query=""):
    return json.loads(proxy.http(f"/events{query}")[1])["events"]


def test_a_watcher_sees_requests_and_their_latency(proxy):
    with Watcher(proxy) as watcher, proxy.raw() as client:
        watcher.until(lambda now: now["health"]["state"] == "serving", "the first document")

        def counted(now):
            for _ in range(200):
                client.set("k", "v")
                client.get("k")
                client.get("absent")
            return now["rates"].get("requests", 0) > 0 and "10s" in now["latency"]

        watcher.until(counted, "a rate and a latency are told")
        now = watcher.document
        assert now["rates"]["hits"] > 0 and now["rates"]["misses"] > 0
        latency = now["latency"]["10s"]
        assert 0 < latency["p50_us"] <= latency["p99_us"] <= latency["p999_us"]
        assert latency["count"] > 0 and latency["mean_us"] > 0
        assert now["pools"]["cache"]["latency"]["10s"]["count"] > 0
        assert now["listeners"][proxy.addresses[0]]["clients"] == 1
        asked = [member for member in now["members"].values() if member.get("mean_us")]
        assert asked and all(member["rate"] >= 0 for member in asked)
        assert now["process"]["rss_bytes"] > 0 and now["process"]["descriptors"]["open"] > 0


def test_memory_and_descriptors_have_lines_that_the_next_watcher_gets(proxy):
    lines = ("rss_bytes", "descriptors")
    with Watcher(proxy) as first:
        first.until(lambda now: now["history"]["rss_bytes"], "the first point")
        begun = {line: first.document["history"][line][0] for line in lines}
        assert begun["rss_bytes"] > 1 << 20 and begun["descriptors"] > 3, begun
    with Watcher(proxy) as second:
        second.until(lambda now: "history" in now, "the first document")
        history = second.document["history"]
        assert {line: history[line][0] for line in lines} == begun
        assert {len(history[line]) for line in lines} == {len(history["requests"])}


def test_the_differences_make_the_document_that_a_new_watcher_gets(proxy, servers):
    with Watcher(proxy) as first:
        first.until(lambda now: True, "the first document")
        servers[0].kill()
        until_ejected(proxy, servers[0])
        first.until(lambda now: now["health"]["state"] == "degraded", "the ejection is told")
        with Watcher(proxy) as second:
            second.until(lambda now: True, "the document")
            assert second.names[0] == "state" and "change" in first.names

            def lasting(document):
                """What does not change while nothing happens."""
                members = {
                    name: {key: member[key] for key in ("state", "since_ms", "why") if key in member}
                    for name, member in document["members"].items()
                }
                return members, document["health"], document["configuration"]

            assert lasting(first.document) == lasting(second.document)


def test_an_ejection_is_one_line_of_the_log_one_event_and_the_reason_in_the_sentence(proxy, servers):
    with Watcher(proxy) as watcher:
        watcher.until(lambda now: True, "the first document")
        servers[0].kill()
        until_ejected(proxy, servers[0])
        until(lambda: [event for event in watcher.events if event["kind"] == "ejected"], "it is told")
        [event] = [event for event in watcher.events if event["kind"] == "ejected"]
        assert event["subject"] == f"cache/{servers[0].address}"
        assert (event["before"], event["after"]) == ("up", "ejected")
        assert [line for line in proxy.log().splitlines() if line.endswith(event["text"])]
        assert event in events(proxy) and event in events(proxy, "?kind=ejected")
        watcher.until(lambda now: now["pools"]["cache"]["up"] == 1, "one is left")
        sentence = watcher.document["health"]["sentence"]
        assert sentence.startswith("serving; 1 of 2 servers of `cache`") and event["why"] in sentence
        member = watcher.document["members"][event["subject"]]
        assert member["why"] == event["why"] and abs(member["since_ms"] - event["at_ms"]) < 2000
        servers[0].start()
        watcher.until(lambda now: now["health"] == {"state": "serving", "sentence": "serving"}, "well again")
        assert [event["kind"] for event in events(proxy, f"?after={event['seq']}")] == ["returned"]


def test_a_refused_configuration_is_an_event_and_the_sentence_says_so(proxy, servers):
    good = config("cache", {"cache": {"servers": [server.address for server in servers]}})
    hostile = "<img src=x onerror=alert(1)>\x1b[31m"
    proxy.write(good | {hostile: 1})
    assert proxy.http("/reload", "POST", {"X-Proxima": "yes"})[0] == 422
    # The file is followed as well, which may refuse it first.
    refused, *_ = events(proxy, "?kind=refused")
    assert refused["level"] == "error" and "<img src=x onerror=alert(1)>" in refused["text"]
    with Watcher(proxy) as watcher:
        watcher.until(lambda now: now["health"]["state"] == "degraded", "degraded")
        assert "configuration was refused" in watcher.document["health"]["sentence"]
        proxy.write(good)
        assert proxy.http("/reload", "POST", {"X-Proxima": "yes"})[0] == 200
        watcher.until(lambda now: "refused" not in now["configuration"], "good again")


def test_a_watcher_that_comes_again_is_told_what_it_has_missed(proxy, servers):
    last = events(proxy)[-1]["seq"]
    servers[1].kill()
    until_ejected(proxy, servers[1])
    with Watcher(proxy, since=last) as watcher:
        until(lambda: watcher.events, "what was missed is told")
        servers[1].start()
        until(lambda: watcher.events[-1]["kind"] == "returned", "and what comes")
        told = [event["seq"] for event in watcher.events]
        assert told == list(range(last + 1, last + 1 + len(told)))


def test_more_events_than_a_watcher_may_be_behind_are_told_from_the_last_ones_on(proxy, servers):
    # Each is a line of some thousand bytes, as the refusal names them all.
    bad = {f"unknown{number}": 1 for number in range(60)}
    for _ in range(400):
        proxy.write(proxy.config | bad)
        assert proxy.http("/reload", "POST", {"X-Proxima": "yes"})[0] == 422
    last = events(proxy, "?limit=1")[-1]["seq"]
    with Watcher(proxy, since=0) as watcher:
        watcher.until(lambda now: True, "the document comes all the same")
        until(lambda: watcher.events and watcher.events[-1]["seq"] >= last, "the last event is told")
        # On a busy machine something else may happen behind it.
        told = [event["seq"] for event in watcher.events if event["seq"] <= last]
        assert told == list(range(told[0], last + 1)) and 50 < len(told) < last
        assert watcher.end is None


def test_seventeen_cannot_watch_and_those_who_leave_make_room(proxy):
    watchers = [Watcher(proxy) for _ in range(16)]
    for watcher in watchers:
        watcher.until(lambda now: True, "it is told")
    refused = Watcher(proxy)
    assert refused.status == 503 and "16 watch already" in refused.body
    for watcher in watchers:
        watcher.__exit__()

    def has_room():
        with Watcher(proxy) as again:
            return again.status == 200

    until(has_room, "there is room again")


def descriptors(proxy):
    return int(re.search(r"^process_open_fds (\d+)", proxy.http("/metrics")[1], re.MULTILINE)[1])


def test_a_watcher_that_takes_nothing_is_closed_and_the_others_are_told(memcached, proxima):
    # Many members whose rates change make large differences: the kernel takes some MiB for the slow one.
    server = memcached()
    named = [{"address": server.address, "name": f"{number}-" + "x" * 240} for number in range(2000)]
    proxy = proxima(config("cache", {"cache": {"servers": named}}))
    host, port = proxy.admin.rsplit(":", 1)
    with socket.socket() as slow, Watcher(proxy) as watcher, proxy.raw() as client:
        watcher.until(lambda now: len(now["members"]) == 2000, "all members are told")

        def ask():
            for number in range(500):
                client.ask(b"get k%d\r\n" % number)
            return True

        # All connections to the server are there.
        ask()
        before = descriptors(proxy)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((host, int(port)))
        slow.sendall(b"GET /watch HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: descriptors(proxy) > before, "it is connected")

        until(lambda: ask() and descriptors(proxy) <= before, "the slow one is closed")
        told = len(watcher.names)
        until(lambda: len(watcher.names) > told, "the other goes on")
        assert watcher.end is None


@pytest.mark.parametrize(
    "path, words",
    [
        ("/watch?with=everything", "known is `samples`"),
        ("/watch?all=1", "known are with"),
        ("/events?kind=weather", "known are process"),
        ("/events?after=x", "expected a number"),
        ("/events?after=1&after=2", "twice"),
    ],
)
def test_a_bad_question_is_refused_in_words(proxy, path, words):
    status, text = proxy.http(path)
    assert status == 400 and words in text


def test_clients_that_do_not_take_what_is_sent_to_them_are_told(proxy):
    """Who waits for whom: they wait for themselves."""
    with Watcher(proxy) as watcher, proxy.raw() as client:
        watcher.until(lambda now: now["clients"]["slow_readers"] == 0, "all take what is sent")
        client.set("large", b"v" * 900_000)
        client.send(b"get large\r\n" * 40)
        watcher.until(lambda now: now["clients"]["slow_readers"] == 1, "one does not")
        watcher.until(lambda now: now["clients"]["unread_us"] > 1_000_000, "for more than a second")
        assert watcher.document["clients"]["unread_bytes"] > 0
        assert proxy.metric("slow_readers") == 1 and proxy.metric("slow_readers_longest_seconds") >= 1
        for _ in range(40):
            client.until(b"\r\nEND\r\n")
        watcher.until(lambda now: now["clients"]["slow_readers"] == 0, "it has taken all")
