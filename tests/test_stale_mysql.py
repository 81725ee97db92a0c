"""`proxima-bench stale` finds faults of MySQL: a relay in front of a server commits one of each kind."""

import json
import re
import signal
import struct
import subprocess
import threading

import pytest

from harness import until
from harness.judge import BENCH
from harness.mysql_between import Between
from harness.mysql_raw import DEPRECATE_EOF, EXECUTE, PLAIN, PREPARE, QUERY, Connection, packets
from harness.proxy import environment

pytestmark = pytest.mark.timeout(300)

STORED = packets(b"\0\1\0\2\0\0\0", 1)
"""The reply of a server that has inserted a row."""

USUAL = 10
"""Requests of a kind before the one with the fault."""


class Faulty:
    """A relay that commits a fault at one request, a read or a write, in a text or prepared."""

    def __init__(self, server, commit, is_read):
        self._server, self._commit = server, commit
        self._verb = b"SELECT v," if is_read else b"INSERT INTO stale "
        self._lock, self._seen = threading.Lock(), 0
        self.is_done = False
        self.relay = Between(server.address, self._answer)

    def again(self, packet):
        """The reply to this request on a connection of its own."""
        place = {"schema": "proxima_bench", "capabilities": PLAIN | DEPRECATE_EOF}
        with Connection(self._server.address, **place) as other:
            if packet[:1] == bytes([QUERY]):
                return other.ask(QUERY, packet[1:])
            number = struct.unpack_from("<I", other.ask(PREPARE, self._prepared()), 5)[0]
            return other.ask(EXECUTE, struct.pack("<I", number) + packet[5:])

    def _prepared(self):
        texts = (packet[1:] for packet in self.relay.log if packet[:1] == bytes([PREPARE]))
        return next(text for text in texts if text.startswith(self._verb))

    def _is_meant(self, packet):
        if packet[:1] == bytes([EXECUTE]):
            # Only a write has a value, which is filled up.
            return (b"...." in packet) != self._verb.startswith(b"SELECT")
        return packet[:1] == bytes([QUERY]) and packet[1:].startswith(self._verb)

    def _answer(self, packet):
        if not self._is_meant(packet):
            return None
        with self._lock:
            self._seen += 1
            if self._seen != USUAL:
                return None
        answer = self._commit(self, packet)
        self.is_done = True
        return answer


def twice(relay, write):
    """Applies a write before it is passed on. Its client sees one reply."""
    assert relay.again(write)[4] == 0


def lost(_, write):
    """Says that a write is stored, and does not pass it on."""
    return STORED


def foreign(relay, read):
    """Gives the reply to a read that differs by the number that belongs to its request."""
    changed = re.sub(rb"\d{19}", lambda found: found[0][::-1], read, count=1)
    assert changed != read
    return relay.again(changed)


FAULTS = {
    "writes_applied_twice": (twice, False),
    "lost_acknowledged_writes": (lost, False),
    "foreign_replies": (foreign, True),
}


@pytest.fixture
def server(mysql_pair):
    mysql_pair[0].run("CREATE DATABASE IF NOT EXISTS proxima_bench")
    yield mysql_pair[0]
    mysql_pair[0].run("DROP DATABASE proxima_bench")


@pytest.mark.parametrize("protocol", ["mysql", "mysql-prepared"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_checker_counts_one_fault_as_one_and_as_nothing_else(server, cleanup, fault, protocol):
    relay = Faulty(server, *FAULTS[fault])
    cleanup.callback(relay.relay.stop)
    command = [BENCH, "stale", "--protocol", protocol, "--write", relay.relay.address, "--keys", "8"]
    command += ["--timeout", "2s", "--duration", "1h", "--quiet", "--json", "-"]
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    cleanup.callback(run.kill)
    until(lambda: relay.is_done or run.poll() is not None, "the fault is committed")
    run.send_signal(signal.SIGINT)
    out, error = run.communicate()
    assert run.returncode == 1, out + error
    said = json.loads(out)
    assert {name: said[name] for name in [*FAULTS, "wrong"] if said[name]} == {fault: 1}, said
