"""Measures planned moves of the writer of a Galera cluster: how long the order takes, and the slowest
transaction that is under way meanwhile, beside the slowest one of as long a time without a move.

Clients run transactions of two statements all the time. What they were told is compared with what is stored
at the end: an error, or a transaction that is not there, or is there twice, ends the run with an error
(`three_servers.py` says what runs where).

Usage: .venv/bin/python bench/moves.py [MOVES, 100] [CLIENTS, 32] [PAUSE of a client in ms, 20]
"""

import contextlib
import statistics
import sys
import time

from three_servers import ThreeServers

from harness import until
from harness.galera import rows
from harness.galera_door import clients

APART = 0.3
"""Seconds between two moves, in which the slowest transaction without a move is looked for."""


def slowest(done, since, to):
    """The longest time of a transaction that was under way between these two moments, in ms; 0: there was
    none."""
    return max(((end - start) * 1e3 for *_, start, end in done if end >= since and start <= to), default=0.0)


def move(door, nodes, done):
    """Moves the writer to a server that is not it. Returns when that was ordered and when it was over."""
    writer = door.writer()
    to = next(node for node in nodes if node.name != writer)
    time.sleep(APART)
    since = time.monotonic()
    status, text = door.proxy.http(f"/orders/writer?pool=db&member={to.address}", "POST")
    ended, already = time.monotonic(), len(done)
    assert status == 200, text
    until(lambda: len(done) > already, "they go on")
    time.sleep(APART)
    return since, ended


def line(name, values):
    p50, p99 = statistics.median(values), statistics.quantiles(values, n=100, method="inclusive")[98]
    return f"{name:<52}{p50:8.1f}{p99:8.1f}{min(values):8.1f}{max(values):8.1f}"


def main(moves="100", count="32", pause="20"):
    with contextlib.ExitStack() as stack:
        three = ThreeServers(stack)
        door = three.door
        with door.connect() as client:
            client.query("CREATE TABLE pairs (client INT, turn INT, half INT)")

        def transaction(client, number, turn):
            time.sleep(int(pause) / 1e3)
            start = time.monotonic()
            client.begin()
            for half in range(2):
                client.query(f"INSERT INTO pairs VALUES ({number}, {turn}, {half})")
            client.commit()
            return number, turn, start, time.monotonic()

        with clients(door, transaction, int(count)) as done:
            until(lambda: len(done) > 10 * int(count), "they write")
            found = []
            for turn in range(int(moves)):
                found.append(move(door, three.cluster.nodes, done))
                print(f"move {turn + 1} of {moves}", file=sys.stderr, flush=True)
        with door.connect() as client:
            stored = rows(client, "SELECT client, turn, half FROM pairs")
        told = [(number, turn, half) for number, turn, *_ in done for half in range(2)]
        assert sorted(stored) == sorted(told), "acknowledged is stored, and nothing twice"
    print(f"{moves} moves, {count} clients, {len(done)} transactions: 0 errors, all stored, none twice")
    print(f"{'ms':<52}{'p50':>8}{'p99':>8}{'least':>8}{'most':>8}")
    print(line("order, until it is answered", [(ended - since) * 1e3 for since, ended in found]))
    print(line("slowest transaction that met the move", [slowest(done, *times) for times in found]))
    before = [(since - APART, ended - APART) for since, ended in found]
    print(line("slowest one of as long a time just before", [slowest(done, *times) for times in before]))


if __name__ == "__main__":
    main(*sys.argv[1:])
