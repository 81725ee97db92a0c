"""Each fault of a Galera cluster, judged by what its clients saw: clients write, read and remember meanwhile.

A sample of the cells runs, each on one back end. With PROXIMA_SOAK, which `make soak` sets, all of them run.
The figures go to target/mysql-matrix-*.md, one file for each module and process of pytest. Lost packets and
slow disks have modules of their own, as they need servers of their own.
"""

import functools
import itertools

import pytest

from harness import SOAK, until
from harness.established import established
from harness.galera_door import begin
from harness.galera_faults import OTHERS, SERVERS, WHERE
from harness.galera_node import ELSEWHERE
from harness.galera_verdict import judge, meets, more
from harness.galera_witnesses import Witnesses
from harness.names import System, may_mount

pytestmark = [pytest.mark.verdict, pytest.mark.either_io, pytest.mark.timeout(300)]

SAMPLE = [
    ("stopped", "writer"),
    ("killed", "writer"),
    ("frozen", "reader"),
    ("cut off from the others", "writer"),
    ("read-only", "writer"),
    ("rejecting queries", "readers"),
    ("full", "writer"),
]
CELLS = list(itertools.product(SERVERS, WHERE)) if SOAK else SAMPLE


@pytest.mark.parametrize(("fault", "where"), CELLS, ids=["-".join(cell) for cell in CELLS])
def test_a_fault_of_servers(galera_alone, before, figures, fault, where):
    meets(galera_alone, before(galera_alone), figures, fault, where, SERVERS[fault], WHERE[where])


@pytest.mark.parametrize("fault", OTHERS if SOAK else ["the proxy was killed"])
def test_a_fault_of_the_proxy_or_of_the_data(galera_alone, before, proxima, figures, fault):
    door = before(galera_alone)
    does = OTHERS[fault]
    with Witnesses(door) as witnesses:
        more(witnesses)
        does.begin(door, galera_alone, proxima)
        more(witnesses)
    judge(galera_alone, door, witnesses, figures, (fault, "—"), does.spares)


@pytest.mark.skipif(not SOAK, reason="names that move are part of `make soak`")
@pytest.mark.skipif(not may_mount(), reason="only root has a resolv.conf of its own, and port 53")
def test_all_servers_have_other_addresses(galera_alone, proxima, tmp_path, cleanup, figures):
    """The names of all servers move at once, and with them all connections, while the servers go on."""
    system = System(tmp_path)
    cleanup.callback(system.stop)
    nodes = {f"{node.name}.galera.cluster.local": node for node in galera_alone.nodes}

    def move(host):
        for name in nodes:
            system.names.set(name, host)

    def connections(host):
        return [established(f"{host}:{node.port}") for node in nodes.values()]

    move("127.0.0.1")
    servers = [f"{name}:{node.port}" for name, node in nodes.items()]
    door = begin(functools.partial(proxima, before=system.before), tmp_path, galera_alone, servers=servers)
    with Witnesses(door) as witnesses:
        more(witnesses)
        assert all(connections("127.0.0.1")) and not any(connections(ELSEWHERE))
        move(ELSEWHERE)
        until(lambda: all(connections(ELSEWHERE)), "all are reached at their new addresses")
        until(lambda: not any(connections("127.0.0.1")), "no connection is left at the former ones")
        more(witnesses)
    judge(galera_alone, door, witnesses, figures, ("all names move to other addresses", "—"), True)
