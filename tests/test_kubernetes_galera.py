"""A Galera pool whose servers are the endpoints of a Service: a pod that is about to end drains."""

import functools

import pytest

from harness import until
from harness.api_server import endpoint
from harness.galera_door import begin, clients
from harness.names import may_mount

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(not may_mount(), reason="only root can give a process the account of a pod"),
]


@pytest.mark.parametrize("role", ["writer", "reader"])
def test_a_pod_that_ends_drains_and_no_client_sees_an_error(galera, api, proxima, tmp_path, role):
    nodes = {node.name: node for node in galera.nodes}

    def tell(name, **conditions):
        # A slice for each, as their ports differ here.
        api.set(name, endpoint("127.0.0.1", pod=name, **conditions), port=nodes[name].port)

    for name in nodes:
        tell(name)
    start = functools.partial(proxima, before=api.before)
    door = begin(start, tmp_path, galera, source={"kubernetes": "mc"})
    writer = door.writer()
    ending = writer if role == "writer" else next(name for name in nodes if name != writer)

    def drains(name):
        address = nodes[name].address
        return any(member["drains"] for member in door.members() if member["address"] == address)

    def work(client, number, turn):
        client.query("UPDATE t SET a = a + 1")
        with client.cursor() as cursor:
            cursor.execute("SELECT a FROM t")
            return cursor.fetchone()[0]

    with clients(door, work, 4) as done:
        until(lambda: len(done) > 50, "they write and read")
        tell(ending, terminating=True)
        until(lambda: drains(ending), "it drains")
        until(lambda: door.writer() != ending, "another one takes writes")
        until(
            lambda: not any(m["in_use"] for m in door.members() if m["address"] == nodes[ending].address),
            "left",
        )
        so_far = len(done)
        until(lambda: len(done) > so_far + 50, "they go on")
        # Another pod takes its place.
        tell(ending, uid="another")
        until(lambda: not drains(ending), "it serves again")
