"""Many peers on one host."""

import pytest

from harness import SOAK, until
from harness.fleet import Fleet

pytestmark = [pytest.mark.either_io, pytest.mark.heavy]

PEERS = 50


@pytest.mark.skipif(not SOAK, reason=f"{PEERS} proxies are part of `make soak`")
@pytest.mark.timeout(1800)
def test_fifty_peers_have_one_view_and_equal_copies_and_bear_the_loss_of_one(io, folder, cleanup):
    nodes = Fleet(PEERS, io, folder, cleanup, workers=1)
    names = sorted(node.name for node in nodes)
    assert all(node.view() == names for node in nodes)
    for number, node in enumerate(nodes):
        with node.raw() as client, nodes[(number + 7) % PEERS].raw() as reader:
            client.set(f"k{number}", node.name)
            assert reader.get(f"k{number}") == node.name.encode()
    for number, node in enumerate(nodes):
        held = {one.server.get(f"k{number}") for one in nodes}
        assert held == {node.name.encode()}, f"k{number}: {held}"
    lost = nodes[PEERS // 2]
    lost.stop_softly()
    rest = [name for name in names if name != lost.name]
    nodes.until_view(rest)
    lost.start()
    nodes.until_settled()
    until(lambda: all(node.view() == names for node in nodes), "all have the view with all")
