"""Each fault of a Galera cluster, judged by what its clients saw: clients write, read and remember meanwhile.

A sample of the cells runs, each on one back end. With PROXIMA_SOAK, which `make soak` sets, all of them run.
The figures go to target/mysql-matrix-*.md, one file for each module and process of pytest. Lost packets and
slow disks have modules of their own, as they need servers of their own.
"""

import itertools

import pytest

from harness import SOAK
from harness.galera_faults import OTHERS, SERVERS, WHERE
from harness.galera_verdict import judge, meets, more
from harness.galera_witnesses import Witnesses

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
