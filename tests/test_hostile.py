"""Hostile clients of every kind, and twenty well-behaved ones that must not notice them.

All attacks run at once for a short time. With PROXIMA_SOAK they run for longer, and each alone before that.
Every reply to a well-behaved client is checked and timed: see `proxima-bench hostile --help`.
"""

import pytest

from harness import hostile, until
from harness.copies import copy_state
from harness.hostile import EACH, ONCE, Connections, Halting, Live
from harness.newest import newest
from harness.proxy import config

pytestmark = [pytest.mark.alone, pytest.mark.verdict, pytest.mark.either_io]

TIMEOUT = 1.0
"""Seconds within which every well-behaved client is answered, when the machine does not stand still: the
pool's `timeout`, as a slow reader delays others by up to half of it."""
CONNECTING = 5.0
"""Seconds: the pool's `connect_timeout`, 500 ms otherwise. The attacks and the servers share two processors,
and a new connection waits until a server's thread has had its turn to take it."""
WORKERS = 2
TOTAL = 64
"""MiB: `limits.total_bytes`."""
EMBEDDED = 64
"""MiB: `embedded.memory`."""
ROOM = 64
"""MiB that the process may take beyond the limits of the configuration."""
DESCRIPTORS = 500
"""Open files that the process may have: fewer than the attackers' connections."""
ADMIN = 5.0
"""Seconds within which the admin port answers, whatever clients do."""
LANES = WORKERS * 5
"""Connections that the proxy promises not to exceed to each server."""
OTHERS = 4
"""Further connections to a server: those of probes, of repair, and of the control client."""


class Cell:
    """A proxy with the servers behind it."""

    def __init__(self, shape, memcached, proxima, **options):
        # The servers have room for everything, so that nothing is evicted.
        self.servers = [] if shape == "embedded" else memcached.several(3, threads=4, memory=1024, **options)
        self.copies = shape == "copies"
        self.limit = TOTAL + ROOM + (0 if self.servers else EMBEDDED)
        pool = {
            "servers": [server.address for server in self.servers],
            "timeout": f"{TIMEOUT}s",
            "connect_timeout": f"{CONNECTING}s",
            "replicated": self.copies,
        }
        pools = {"cache": pool} if self.servers else None
        made = config(
            "cache" if pools else "embedded", pools, workers=WORKERS, limits={"total_bytes": f"{TOTAL}MiB"}
        )
        self.proxy = proxima(made, before=("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}"))
        if self.copies:
            until(self.are_current, "all copies are read")

    def are_current(self):
        return all(copy_state(self.proxy, server) == "current" for server in self.servers)

    def attack(self, folder, *more, seconds):
        """Attacks the proxy and returns the report. Fails if a well-behaved client noticed, or the proxy
        blamed a server."""
        more = [
            "--timeout",
            f"{TIMEOUT}s",
            "--pid",
            str(self.proxy.process.pid),
            "--rss-limit",
            str(self.limit),
            *more,
        ]
        if self.servers:
            more += ["--control", self.servers[0].address, "--no-misses"]
        live = Live(self.proxy)
        try:
            report = hostile.attack(self.proxy.address, folder, *more, seconds=seconds)
        finally:
            live.stop()
        assert report.code == 0, f"{report.data['failures']}\n{report.words}\n{self.proxy.log()[-5_000:]}"
        assert not live.failures and live.longest < ADMIN, (live.longest, live.failures[:5])
        # If a server was late by itself, the proxy is right to blame it.
        if self.servers and report.control() < TIMEOUT / 2:
            assert self.proxy.metric("member_ejections_total") == 0, self.proxy.log()[-5_000:]
            assert self.proxy.metric("member_failures_total") == 0, self.proxy.log()[-5_000:]
            if self.copies:
                assert self.proxy.metric("copy_stale_total") == 0, self.proxy.log()[-5_000:]
        if self.copies:
            until(self.are_current, "all copies are read")
        return report


@pytest.mark.timeout(ONCE + 12 * (EACH + 20) + 120)
@pytest.mark.parametrize("shape", ["plain", "copies", "embedded"])
def test_well_behaved_clients_notice_no_attack(memcached, proxima, cleanup, tmp_path, shape):
    cell = Cell(shape, memcached, proxima)
    watched = [Connections(server) for server in cell.servers]
    for connections in watched:
        cleanup.callback(connections.stop)
    if EACH:
        report = cell.attack(tmp_path, "--in-turn", seconds=EACH)
        [garbage] = [
            done
            for round in report.data["rounds"]
            for done in round["attacks"]
            if done["attack"] == "garbage"
        ]
        assert garbage["unanswered"] == 0, "greetings of other protocols without an answer or an end"
    cell.attack(tmp_path, seconds=ONCE)
    for connections in watched:
        assert connections.most <= LANES + OTHERS
    # Nothing is left of the attackers.
    until(lambda: cell.proxy.metric("clients") == 0, "all clients have left")
    until(lambda: cell.proxy.metric("requests_in_flight") == 0, "nothing is under way")


@pytest.mark.timeout(ONCE + 60)
@pytest.mark.parametrize("shape", ["plain", "copies"])
def test_a_flood_towards_a_slow_server_ejects_no_server(memcached, proxima, cleanup, tmp_path, shape):
    cell = Cell(shape, memcached, proxima)
    halting = Halting(cell.servers[1])
    cleanup.callback(halting.stop)
    cell.attack(tmp_path, "--attack=floods", seconds=ONCE / 2)


@pytest.mark.timeout(ONCE + 60)
@pytest.mark.parametrize("shape", ["plain", "copies"])
def test_no_command_is_smuggled_to_the_newest_memcached(memcached, proxima, tmp_path, shape):
    """Servers from 1.6.40 on refuse lines, and do not swallow their values, where older ones do."""
    cell = Cell(shape, memcached, proxima, program=newest())
    cell.attack(tmp_path, "--attack=smuggling,garbage", seconds=ONCE / 2)
