"""Four faults are found on the console's pages by who has never seen it: their text alone has the answers."""

import pytest

from harness import until
from harness.asking import asking
from harness.console import check
from harness.ejecting import ejecting, until_ejected
from harness.proxy import config

pytestmark = pytest.mark.either_io


def test_which_server_is_out_and_why(proxima, memcached, browser):
    servers = memcached.several(4)
    proxy = proxima(config("cache", {"cache": ejecting(servers)}))
    servers[2].kill()
    until_ejected(proxy, servers[2])
    browser.open(proxy.admin)
    text = browser.shows("Out of order: 1 of 4 servers")
    sentence = text.splitlines()[0]
    assert servers[2].address in text and "1 of 4 servers of cache" in sentence
    assert proxy.member(servers[2].address)["why"] in sentence
    browser.picture("fault-out")


def test_why_reads_miss_on_one_node(proxima, memcached, browser):
    """A rule of the near cache was switched off on this node: its readers wait for the servers."""
    near = {"near": {"child": "cache", "rules": [{"name": "maps", "prefix": "map:", "ttl": "30s"}]}}
    pools = {"cache": {"servers": [memcached().address]}}
    nodes = [proxima(config("kept", pools, near={"memory": "4MiB"}, routes={"kept": near})) for _ in range(2)]
    for node in nodes:
        with node.raw() as client:
            client.set("map:osd", "epoch 1")
            for _ in range(9):
                client.get("map:osd")
    assert nodes[1].http("/near/off?rule=maps", "POST")[0] == 200
    browser.open(nodes[1].admin)
    browser.shows(
        "Set otherwise than the file says", "rule maps: off, so that all its reads go to the servers"
    )
    browser.go("near")
    browser.shows("off: nothing is kept", "the file says ttl 30s")
    browser.picture("fault-near")
    browser.open(nodes[0].admin, "near")
    text = browser.shows("maps")
    assert "nothing is kept" not in text


def test_which_key_is_hot(proxima, memcached, browser, cleanup):
    proxy = proxima(config("cache", {"cache": {"servers": [memcached().address]}}))
    # Half of all requests are for one key.
    others = (b"get user:%d\r\n" % number for number in range(1000))
    cleanup.enter_context(asking(proxy, *(one for other in others for one in (b"get celebrity\r\n", other))))
    browser.open(proxy.admin)

    def hottest():
        rows = browser.rows("Hot keys")
        return rows and rows[0][0] == "celebrity"

    until(hottest, "the key that is asked for most stands first")
    assert browser.rows("Hot keys")[0][1] == "cache"
    check(browser, proxy.admin)
    browser.picture("fault-hot")


def test_which_configuration_was_refused(proxima, memcached, browser):
    proxy = proxima(config("cache", {"cache": {"servers": [memcached().address]}}))
    version = proxy.version()
    proxy.write(
        {**proxy.config, "pools": {"cache": {"servers": ["127.0.0.1"], "protocol_name": "memcached"}}}
    )
    status, words = proxy.reload()
    assert status == 422
    browser.open(proxy.admin)
    text = browser.shows("A change was refused at", version)
    for line in words.splitlines():
        assert line.strip() in text, line
    sentence = text.splitlines()[0]
    assert "the configuration was refused" in sentence and "(and 1 more)" in sentence
    browser.picture("fault-refused")
