"""The console of a proxy with a thousand servers."""

import pytest

from harness import SOAK, ports, until
from harness.console import check
from harness.proxy import config
from harness.watching import Watcher

# It looks at how long the browser takes.
pytestmark = [pytest.mark.either_io, pytest.mark.alone]

COUNT = 1000
REFRESHES = 5


def test_a_thousand_servers_are_shown_anew_within_a_tenth_of_a_second(proxima, memcached, browser):
    # Each server is an address of one memcached.
    port = ports.free("0.0.0.0")
    memcached(host="0.0.0.0", port=port)
    addresses = [f"127.0.{number // 250}.{number % 250 + 1}:{port}" for number in range(COUNT)]
    proxy = proxima(config("cache", {"cache": {"servers": addresses}}))
    browser.open(proxy.admin, "servers?sort=server")
    browser.shows(f"{COUNT} of {COUNT}")
    rows = browser.rows("Servers")
    assert len(rows) < 100, "only rows near the window are made"
    assert rows[1][0].split()[0] == addresses[0]
    check(browser, proxy.admin)
    browser.picture("thousand")
    browser.do("evaluate", code="scrollTo(0, document.documentElement.scrollHeight)")
    until(lambda: [row for row in browser.rows("Servers") if addresses[-1] in row[0]], "the last one is seen")
    browser.do("fill", selector="main input", text=addresses[500])
    until(lambda: len(browser.rows("Servers")) == 1, "one is left")
    browser.go("servers?sort=server")
    browser.shows(f"{COUNT} of {COUNT}")
    # Each frame of the page is measured with the layout that it causes.
    browser.do(
        "evaluate",
        code="""
        const next = requestAnimationFrame;
        window.took = [];
        window.requestAnimationFrame = (draw) => next((now) => {
            const begun = performance.now();
            draw(now);
            document.body.offsetHeight;
            window.took.push(performance.now() - begun);
        });
        void 0""",
    )

    def frames():
        took = browser.do("evaluate", code="window.took")
        return took if len(took) >= 2 * REFRESHES else None

    took = until(frames, "the page was drawn anew")
    median = sorted(took)[len(took) // 2]
    print(f"a refresh with {COUNT} servers: {median:.1f} ms in the middle, {max(took):.1f} at most")
    assert median <= 100


FLAPPING = 500
TIMES = 20 if SOAK else 2


def test_five_hundred_servers_that_flap_each_second_are_told_and_shown(proxima, memcached, browser):
    """All of them are one memcached, which is killed and begun again and again."""
    port = ports.free("0.0.0.0")
    addresses = [f"127.0.{number // 250}.{number % 250 + 1}:{port}" for number in range(FLAPPING)]
    eject = {"failures": 1, "probe_initial": "200ms", "probe_max": "400ms"}
    proxy = proxima(config("cache", {"cache": {"servers": addresses, "eject": eject}}))
    server = memcached(host="0.0.0.0", port=port)
    browser.open(proxy.admin, "servers?sort=server")
    browser.shows(f"{FLAPPING} of {FLAPPING}")

    def asks():
        with proxy.raw() as client:
            client.send(b"".join(b"get k%d\r\n" % number for number in range(20 * FLAPPING)))

    def states(now):
        return [member["state"] for member in now["members"].values()]

    with Watcher(proxy) as watcher:
        for _ in range(TIMES):
            server.kill()
            asks()
            watcher.until(lambda now: states(now).count("ejected") > FLAPPING // 2, "most are out")
            server = memcached(host="0.0.0.0", port=port)
            watcher.until(lambda now: states(now).count("up") == FLAPPING, "all are back")
        assert watcher.end is None, "it was never too far behind"
        # Each change was told.
        told = [event["kind"] for event in watcher.events]
        assert told.count("ejected") > TIMES * FLAPPING // 2 < told.count("returned")
    browser.shows(f"{FLAPPING} of {FLAPPING}", "up")
    check(browser, proxy.admin)
    assert proxy.memory("VmHWM") < 200 << 20
