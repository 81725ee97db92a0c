"""Clients that write the same keys at all peers of a fleet, and what must hold of what they leave."""

import threading
import time

from .judge import Judge
from .raw import Closed

RACED = [f"raced{number}" for number in range(200)]


class Racers:
    """Clients at all peers that write the same keys until `stop`, whatever happens to the peers."""

    def __init__(self, nodes):
        self._over = False
        self._threads = [
            threading.Thread(target=self._write, args=(node, number), daemon=True)
            for number, node in enumerate(nodes)
        ]
        for thread in self._threads:
            thread.start()

    def _write(self, node, number):
        rounds = 0
        while not self._over:
            try:
                with node.raw() as client:
                    client.sock.settimeout(6)
                    while not self._over:
                        rounds += 1
                        key = RACED[(rounds * 7 + number) % len(RACED)]
                        value = f"{number}.{rounds}"
                        request = f"set {key} 0 0 {len(value)}\r\n{value}\r\n"
                        if rounds % 5 == 0:
                            request = f"delete {key}\r\n"
                        client.send(request.encode())
                        client.line()
            except (OSError, Closed):
                time.sleep(0.05)

    def stop(self):
        self._over = True
        for thread in self._threads:
            thread.join(20)


def check_equal(nodes):
    """No two copies hold different values of a key. A copy that was repaired may lack it."""
    different = []
    for key in RACED:
        held = [node.server.get(key) for node in nodes]
        if len(set(held) - {None}) > 1:
            different.append((key, held))
    assert not different, f"{len(different)} of {len(RACED)} keys differ, as {different[:3]}"


def check_promise(nodes, tmp_path, cleanup, faults, before=()):
    """Writes and reads everywhere while these faults happen, and checks what clients saw and what is left.

    A fault is called, and is over when it returns. `before` is a command that runs the judge.
    """
    judge = Judge(",".join(node.address for node in nodes), tmp_path, writers=10, readers=20, before=before)
    cleanup.callback(judge.stop)
    racers = Racers([*nodes, *nodes])
    time.sleep(1)
    for fault in faults:
        fault()
        time.sleep(0.5)
    nodes.until_settled()
    time.sleep(0.5)
    racers.stop()
    # A peer that was lost again meanwhile is not read, and at rest only when it is back.
    nodes.until_settled()
    report = judge.report()
    assert report["stale_reads"] == 0 and report["wrong"] == 0, report
    assert report["acknowledged_writes"] > 0, report
    check_equal(nodes)
    return report
