"""The example `galera-causal`: its demo shows no stale read in any way that promises none."""

import re
import shutil
import subprocess

import pytest

from harness import SOAK
from harness.galera import why_not
from harness.proxy import BINARY, ROOT, environment

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/sbin:/bin")
OLD = {"HAProxy, two addresses", "Proxima, eventual"}
"""The ways whose reads wait for nothing, so that chance decides how many are stale."""
FRESH = {
    "HAProxy, wsrep_sync_wait=3",
    "direct, wsrep_sync_wait=3",
    "Proxima, one address",
    "Proxima, two addresses",
    "Proxima, session",
    "Proxima, causal",
}

pytestmark = [
    pytest.mark.skipif(not HAPROXY, reason="haproxy is missing: scripts/prepare.sh installs it"),
    pytest.mark.timeout(300),
]


def demo(**settings):
    """What the demo prints, in tables by their first words: the cells of each line by its own first word."""
    script = ROOT / "examples/galera-causal/demo.sh"
    env = {**environment(), "PROXIMA_BIN": BINARY, **settings}
    ran = subprocess.run(["bash", script], capture_output=True, text=True, env=env)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    tables = {}
    for line in re.findall(r"^\| (.*) \|$", ran.stdout, re.M):
        name, *cells = (cell.strip() for cell in line.split(" | "))
        if name in ("way", "ms"):
            rows = tables[name] = {}
        else:
            rows[name] = cells
    return tables


def check(tables, reads):
    """All reads of these tables are counted, and none is stale that must not be."""
    stale = {}
    for way, (counted, *_) in tables["way"].items():
        stale[way], made = map(int, re.match(r"(\d+) of (\d+) \(", counted).groups())
        assert made == reads
    assert set(stale) == set(tables["ms"]) == FRESH | OLD
    assert [stale[way] for way in FRESH] == [0] * len(FRESH), stale


def test_the_demo_shows_what_it_says(galera):
    servers = ",".join(node.address for node in galera.nodes)
    account = galera.account
    user = {"DB_USER": account.name, "DB_PASSWORD": account.password, "DB_NAME": account.name}
    check(demo(READS="80", SERVERS=servers, **user), 80)


@pytest.mark.skipif(not SOAK, reason="it starts a cluster of its own")
@pytest.mark.skipif(bool(why_not()), reason=str(why_not()))
def test_the_demo_starts_a_cluster_of_its_own():
    check(demo(READS="80"), 80)
