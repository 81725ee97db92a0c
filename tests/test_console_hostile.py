"""Texts of others on the console are text and nothing else, and a stream that is cut is taken up again."""

import pytest

from harness import until
from harness.console import check
from harness.ejecting import ejecting, until_ejected
from harness.proxy import config
from harness.redis import array
from harness.relay import Relay
from harness.servers import answering

pytestmark = pytest.mark.either_io

MARKUP = b"<img/src=x/onerror=document.title='taken'><script>document.title='taken'</script>"
ESCAPES = b"\x1b[2J\x1b]0;taken\x07"
BROKEN = b"\xff\xfe\xc3("
TURNED = "\u202egnp.exe".encode()


def elements(browser):
    """Elements that only a text of somebody else can have made."""
    return browser.do("evaluate", code="document.querySelectorAll('main :is(img, script, b)').length")


def test_hostile_keys_are_shown_as_text(proxima, redis_server, browser):
    pools = {"cache": {"protocol": "redis", "servers": [redis_server().address]}}
    settings = config("cache", pools)
    settings["listeners"][0]["protocol"] = "redis"
    proxy = proxima(settings)
    often = [MARKUP, ESCAPES, BROKEN, TURNED]
    large = b"<b>" + b"x" * (1 << 20)

    def ask():
        with proxy.raw() as client:
            for key in often * 200 + [large]:
                client.send(array("GET", key))
                assert client.line() == b"$-1\r\n"

    browser.open(proxy.admin)

    def hot():
        ask()
        return len(browser.rows("Hot keys")) >= 2

    until(hot, "keys are hot")
    assert elements(browser) == 0
    text = browser.text()
    assert "\x1b" not in text and "\u202e" not in text
    check(browser, proxy.admin)
    browser.go("tree?key=%3Cb%3Ebold%3C%2Fb%3E")
    browser.shows("Its way, and why")
    assert elements(browser) == 0
    assert "taken" not in browser.do("evaluate", code="document.title")


def test_hostile_words_of_a_server_are_shown_as_text(proxima, scripted, browser):
    server = scripted(answering(MARKUP + ESCAPES + BROKEN + b"\r\n"))
    proxy = proxima(config("cache", {"cache": ejecting([server])}))
    until_ejected(proxy, server)
    browser.open(proxy.admin, "servers")
    browser.shows(server.address, "ejected")
    for view in ["events", "overview"]:
        browser.go(view)
        browser.shows("ejected", server.address)
        assert elements(browser) == 0
    check(browser, proxy.admin)


def test_a_configuration_with_markup_is_refused_in_words(proxima, memcached, browser):
    proxy = proxima(config("cache", {"cache": {"servers": [memcached().address]}}))
    proxy.write("listeners: []\n'<script>document.title=1</script>': <b>\n")
    assert proxy.reload()[0] == 422
    browser.open(proxy.admin)
    browser.shows("A change was refused", "<script>")
    assert elements(browser) == 0
    check(browser, proxy.admin)


def test_a_stream_that_is_cut_is_said_and_taken_up_again(proxima, memcached, browser, cleanup):
    servers = memcached.several(2)
    proxy = proxima(config("cache", {"cache": ejecting(servers)}))
    relay = Relay(proxy.admin)
    cleanup.callback(relay.stop)
    browser.open(relay.address)
    browser.shows("live", within="header")
    relay.refuse()
    browser.shows("not connected since", within="header")
    assert "1 of 2" not in browser.text()
    servers[0].kill()
    until_ejected(proxy, servers[0])
    relay.heal()
    browser.shows("live", within="header")
    browser.shows("Out of order: 1 of 2 servers")
    browser.go("events")
    browser.shows("up → ejected")
    check(browser, relay.address)


def test_another_process_has_other_events(proxima, memcached, browser):
    pools = {"cache": {"servers": [memcached().address]}}
    first = proxima(config("cache", pools))
    for _ in range(3):
        assert first.reload()[0] == 200
    browser.open(first.admin, "events")
    browser.shows("Events")
    before = first.http("/events")[1].count('"seq"')
    first.kill()
    browser.shows("not connected since", within="header")
    second = proxima({**first.config})
    browser.shows("live", within="header")
    now = second.http("/events")[1].count('"seq"')
    browser.shows(f"{now} of {now}")
    assert before >= 1
