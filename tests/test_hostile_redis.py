"""Hostile clients of Redis: 1 MiB of each kind of request, beside twenty well-behaved clients.

Every reply to a well-behaved client is checked: see `proxima-bench hostile --protocol redis --help`. How much
longer they wait than in a quiet round is a figure of the report, for machines that are not busy.
"""

import pytest

from harness import hostile, until
from harness.hostile import EACH
from harness.redis import config, pools

pytestmark = [pytest.mark.alone, pytest.mark.either_io]

SECONDS = EACH or 3
TIMEOUT = 30
"""Seconds, the pool's as well: the servers answer some of these requests slowly, and how late replies are is
not judged here."""
ATTACKS = {
    "stopped-readers",
    "half-requests",
    "garbage",
    "large-mget",
    "large-mset",
    "large-del",
    "large-exists",
    "large-eval",
    "large-sinter",
    "large-watch",
    "large-subscribe",
    "transactions",
    "large-transaction",
    "scans",
    "tiny-gets",
    "inline-commands",
}


@pytest.mark.timeout(len(ATTACKS) * (EACH + 10) + 120)
@pytest.mark.parametrize("route", ["redis", {"log": "redis"}], ids=["pool", "log"])
def test_well_behaved_clients_of_redis_notice_no_large_request(redis_server, proxima, tmp_path, route):
    servers = redis_server.several(3)
    proxy = proxima(config(servers, route=route, pools=pools(servers, timeout=f"{TIMEOUT}s")))
    turns = ["--in-turn"] if EACH else []
    report = hostile.attack(
        proxy.address,
        tmp_path,
        "--protocol=redis",
        "--no-misses",
        f"--timeout={TIMEOUT}s",
        f"--most-delay={TIMEOUT}s",
        f"--pid={proxy.process.pid}",
        f"--control={servers[0].address}",
        *turns,
        seconds=SECONDS,
    )
    assert report.code == 0, f"{report.data['failures']}\n{report.words}\n{proxy.log()[-5_000:]}"
    quiet, *attacked = report.data["rounds"]
    assert quiet["attacks"] == [] and quiet["delay_seconds"] is None
    assert all(round["delay_seconds"] >= 0 for round in attacked)
    made = {done["attack"]: done for round in attacked for done in round["attacks"]}
    assert made.keys() == ATTACKS
    idle = {name for name, done in made.items() if not done["requests"] or not done["bytes_sent"]}
    assert not idle, f"attacks that sent no request: {idle}\n{report.words}"
    until(lambda: proxy.metric("clients") == 0, "all clients have left")
    assert proxy.metric("member_ejections_total") == 0, proxy.log()[-5_000:]
