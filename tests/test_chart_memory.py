"""The chart in a cluster: the kernel kills a container that takes more memory than its limit."""

import contextlib

import pytest

from harness import SOAK, until
from harness.lab.release import stored
from harness.lab.witness import OF_SERVER, Witness
from harness.raw import Closed, Raw

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


def fill_memcached(address):
    """Stores more than the cache had."""
    with Raw(address) as client:
        for number in range(100):
            stored(client, b"large-%d" % number, b"x" * 500_000)


def fill_proxy(address):
    """Asks for more than is read, and waits for the end."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Raw(address, receive=4096)) for _ in range(100)]
        stored(clients[0], b"asked-for", b"x" * 10_000)
        for client in clients:
            client.send(b"get asked-for\r\n" * 1000)
        clients[0].rest()


@pytest.mark.skipif(not SOAK, reason="a container that is killed in another way is part of `make test`")
@pytest.mark.parametrize(
    ("name", "program", "fill"),
    [
        ("memcached", "/usr/bin/memcached", fill_memcached),
        ("proxima", "/usr/local/bin/proxima", fill_proxy),
    ],
)
def test_a_container_that_is_killed_for_memory_comes_back_and_nothing_is_stale(
    lab, release, name, program, fill
):
    lab.at_least(3)
    release.wait_until_coherent()
    hit = max(lab.nodes)
    [process] = lab.nodes[hit].processes(program)
    group = lab.nodes[hit].cgroup.memory_of(process)
    used = int((group / "memory.usage_in_bytes").read_text())
    (group / "memory.limit_in_bytes").write_text(str(used + (256 << 10)))
    address = f"{release.pod(hit)['status']['podIP']}:11311"

    def killed():
        status = release.pod(hit)["status"]
        all_of_them = status["containerStatuses"] + status["initContainerStatuses"]
        [container] = [each for each in all_of_them if each["name"] == name]
        return container["lastState"].get("terminated", {}).get("reason") == "OOMKilled"

    with Witness(release, sorted(lab.nodes)) as witness:
        with lab.switch.entered(), contextlib.suppress(OSError, Closed):
            fill(address)
        until(killed, "the kernel has killed it", every=0.1)
        release.ready(len(lab.nodes))
        release.wait_until_coherent()
        witness.more()
    print(name, witness)
    assert witness.wrong == []
    assert witness.answered(but=OF_SERVER) == []
