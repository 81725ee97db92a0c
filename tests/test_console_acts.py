"""What the console changes: only what was meant, and by whoever may."""

import json

import pytest

from harness import SOAK, ports, until
from harness.console import check, press
from harness.proxy import config

pytestmark = pytest.mark.either_io

TOKEN = "a-token-of-the-operators"


@pytest.fixture
def servers(memcached):
    return memcached.several(2)


@pytest.fixture
def pools(servers):
    return {"cache": {"servers": [server.address for server in servers]}}


def drained(proxy):
    """The members that the order of the console names."""
    status, text = proxy.http("/pools/cache/orders/console")
    # An order that has been taken back is gone.
    return json.loads(text)["order"]["drain"] if status == 200 else []


def test_a_server_is_drained_and_back_after_a_question_that_says_what_clients_notice(
    proxima, pools, servers, browser
):
    proxy = proxima(config("cache", pools))
    name = servers[0].address
    browser.open(proxy.admin, f"servers?q={name}")
    press(browser, "Drain")
    text = browser.shows(name, "Clients notice nothing while", within="dialog")
    assert "this page" not in text and drained(proxy) == []
    check(browser, proxy.admin)
    browser.picture("dialog")
    press(browser, "Cancel", "dialog")
    until(lambda: browser.text("dialog") == "", "it is closed")
    assert drained(proxy) == []
    press(browser, "Drain")
    press(browser, "Drain", "dialog")
    until(lambda: drained(proxy) == [name], "it drains")
    browser.shows("drains", "by this page")
    assert [row["drains"] for row in json.loads(proxy.http("/members")[1]) if "drains" in row] == [True]
    press(browser, "Undrain")
    press(browser, "Undrain", "dialog")
    until(lambda: drained(proxy) == [], "it has requests again")
    browser.shows("up")


def test_a_second_server_drains_beside_the_first(proxima, pools, servers, browser):
    proxy = proxima(config("cache", pools))
    names = [server.address for server in servers]
    browser.open(proxy.admin, "servers")
    for count in (1, 2):
        press(browser, "Drain")
        press(browser, "Drain", "dialog")
        until(lambda: len(drained(proxy)) == count, "one more drains")  # noqa: B023
        browser.shows(*["drains"] * count)
        until(lambda: browser.text().count("by this page") == count, "the page knows")  # noqa: B023
    assert sorted(drained(proxy)) == sorted(names)


@pytest.mark.skipif(not SOAK, reason="an order ends after a minute, so that this is part of `make soak`")
def test_a_server_drains_while_the_page_is_open_and_a_minute_longer(proxima, pools, servers, browser):
    proxy = proxima(config("cache", pools))
    browser.open(proxy.admin, f"servers?q={servers[0].address}")
    press(browser, "Drain")
    press(browser, "Drain", "dialog")
    until(lambda: drained(proxy), "it drains")

    def left():
        order = json.loads(proxy.http("/pools/cache/orders/console")[1])["order"]
        return order["ends_in_ms"] / 1000 if order else 0

    for _ in range(4):
        until(lambda: left() < 45, "some of its time is over", longest=50)
        until(lambda: left() > 55, "it is ordered again", longest=30)
    browser.do("evaluate", code="void (location.href = 'about:blank')")
    until(lambda: not drained(proxy), "nobody orders it any more", longest=70)


def test_a_token_is_asked_for_once_and_kept_in_memory_only(proxima, pools, servers, browser, tmp_path):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    admin = {"address": f"127.0.0.1:{ports.free()}", "token_file": str(file)}
    proxy = proxima(config("cache", pools, admin=admin))
    name = servers[0].address

    def drain():
        browser.open(proxy.admin, f"servers?q={name}")
        press(browser, "Drain")
        press(browser, "Drain", "dialog")
        browser.shows("A token is needed", "token_file", within="dialog")

    drain()
    press(browser, "Cancel", "dialog")
    until(lambda: browser.text("dialog") == "", "nobody could show a token")
    assert drained(proxy) == []
    drain()
    check(browser, proxy.admin)
    browser.do("fill", selector="dialog input", text="a wrong one")
    press(browser, "Use it", "dialog")
    browser.shows("this is no token of this proxy", within="dialog")
    browser.do("fill", selector="dialog input", text=TOKEN)
    press(browser, "Use it", "dialog")
    until(lambda: drained(proxy) == [name], "it drains")
    press(browser, "Undrain")
    press(browser, "Undrain", "dialog")
    until(lambda: drained(proxy) == [], "without asking again")
    kept = browser.do(
        "evaluate", code="JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    )
    assert kept == '[{},{},""]' and TOKEN not in browser.do("evaluate", code="document.body.innerHTML")
    # Another document knows nothing of it.
    drain()
    assert TOKEN not in proxy.log()


def test_what_the_proxy_refuses_is_told_in_its_words(proxima, pools, servers, browser):
    proxy = proxima(config("cache", pools))
    name = servers[0].address
    browser.open(proxy.admin, f"servers?q={name}")
    press(browser, "Drain")
    browser.shows("Drain", within="dialog")
    # The pool goes while the person reads.
    [listener] = proxy.config["listeners"]
    other = {"pools": {"other": pools["cache"]}, "listeners": [{**listener, "route": "other"}]}
    proxy.write({**proxy.config, **other})
    assert proxy.reload()[0] == 200
    press(browser, "Drain", "dialog")
    browser.shows("Drain: refused", "no pool", within="dialog")
