"""A leader that ends in order is no error for the clients of the others."""

import contextlib
import threading

import pytest

from harness import SOAK, until
from harness.fleet import SHORT

pytestmark = pytest.mark.either_io

GOODBYES = 20 if SOAK else 5


@contextlib.contextmanager
def writing(nodes):
    """Clients of these nodes that write, and tell what they were answered."""
    ended, answers = threading.Event(), {node.name: [] for node in nodes}

    def write(node):
        with node.raw() as client:
            while not ended.is_set():
                client.send(b"set k 0 0 1\r\n1\r\n")
                answers[node.name].append(client.line())

    threads = [threading.Thread(target=write, args=(node,)) for node in nodes]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_a_leader_that_says_goodbye_leaves_the_others_their_leases(fleet):
    nodes = fleet(fleet=SHORT)
    nodes.until_settled()
    for _ in range(GOODBYES):
        leader = next(node for node in nodes if node.status()["leader"] == node.name)
        others = [node for node in nodes if node is not leader]
        with writing(others) as answers:
            until(lambda answers=answers: all(map(len, answers.values())), "they write")
            leader.stop_softly()
            until(
                lambda leader=leader, others=others: all(
                    node.status()["leader"] not in (None, leader.name) for node in others
                ),
                "another one leads",
            )
            counts = {name: len(told) for name, told in answers.items()}
            until(
                lambda answers=answers, counts=counts: all(
                    len(told) > counts[name] + 200 for name, told in answers.items()
                ),
                "they go on",
            )
        assert {answer for told in answers.values() for answer in told} == {b"STORED\r\n"}
        leader.start()
        nodes.until_settled()
