"""The mcrouter chart as its users have it (`bash -c`, init container, sidecar) runs with our image in the
place of mcrouter's, and with nothing else changed."""

import pytest

from harness import until
from harness.lab.mcrouter_chart import MCROUTER, MEMCACHED, client

# One process has the lab.
pytestmark = pytest.mark.alone


def test_what_is_written_on_a_node_is_read_on_one_that_has_come_later(lab, mcrouter_chart):
    first, second = sorted(lab.nodes)[:2]
    mcrouter_chart.begin(first)
    with client(lab, first, MCROUTER) as here:
        here.set("k", "alone")
    mcrouter_chart.begin(first, second)

    def written_to_both():
        with client(lab, first, MCROUTER) as here, client(lab, second, MEMCACHED) as there:
            here.set("k", "by one")
            return there.get("k") == b"by one"

    until(written_to_both, "the sidecar has put the new node into the list of the old one", every=0.1)
    with client(lab, second, MCROUTER) as there:
        assert there.get("k") == b"by one"
        there.set("k", "by the other")
    for port in (MCROUTER, MEMCACHED):
        with client(lab, first, port) as here:
            assert here.get("k") == b"by the other"
