"""Others are connected to the server of a copy, and may write past the proxies that keep copies equal."""

import pytest

from harness import until
from harness.copies import replicated

pytestmark = pytest.mark.either_io

BEGINS = "others are connected to the server of a copy: "
ENDS = "nobody else is connected to the server of a copy any more"


@pytest.mark.parametrize("unix", [True, False], ids=["unix-socket", "port"])
def test_keeper_tells_of_connections_that_are_not_its_own_while_they_last(fleet, unix):
    nodes = fleet(2, unix=unix)
    watched, other = nodes
    with watched.raw() as client:
        client.set("k", "v")
        stranger = watched.server.raw()
        until(lambda: watched.proxy.metric("fleet_foreign_connections") == 1, "the metric counts it")
        until(lambda: watched.proxy.log().count(BEGINS) == 1, "the log tells of it")
        assert f"{BEGINS}no peer of the fleet sees what they write there" in watched.proxy.log()
        assert other.proxy.metric("fleet_foreign_connections") == 0
        stranger.close()
        until(lambda: watched.proxy.metric("fleet_foreign_connections") == 0, "it is gone")
        until(lambda: watched.proxy.log().count(ENDS) == 1, "the log tells of it")
    assert BEGINS not in other.proxy.log()


def test_proxy_without_a_fleet_warns_of_another_one_at_the_servers_of_its_copies(memcached, proxima):
    servers = memcached.several(2)
    proxies = [proxima(replicated(servers, timeout="20s")) for _ in range(2)]
    for proxy in proxies:
        with proxy.raw() as client:
            client.set("k", "v")
    for proxy in proxies:
        until(lambda proxy=proxy: proxy.log().count(BEGINS) == len(servers), "it warns of each server")
        assert "proxies of one fleet do" in proxy.log()
