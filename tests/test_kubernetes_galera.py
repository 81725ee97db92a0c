"""A Galera pool whose servers are the endpoints of a Service: pods that end drain, and readiness says
nothing."""

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


class Endpoints:
    """The servers of a cluster as the endpoints of a Service, and a proxy that follows them."""

    def __init__(self, galera, api, proxima, folder):
        self._api, self.nodes = api, {node.name: node for node in galera.nodes}
        for name in self.nodes:
            self.tell(name)
        start = functools.partial(proxima, before=api.before)
        self.door = begin(start, folder, galera, source={"kubernetes": "mc"})
        self.writer = self.door.writer()
        self.reader = next(name for name in self.nodes if name != self.writer)

    def tell(self, name, **conditions):
        # A slice for each, as their ports differ here.
        told = endpoint("127.0.0.1", pod=name, **conditions)
        self._api.set(name, told, port=self.nodes[name].port)

    def member(self, name):
        """What the proxy says of this server; an empty map: nothing."""
        address = self.nodes[name].address
        return next((each for each in self.door.members() if each["address"] == address), {})

    def drains(self, name):
        return self.member(name).get("drains")


@pytest.fixture
def endpoints(galera, api, proxima, tmp_path):
    return Endpoints(galera, api, proxima, tmp_path)


@pytest.mark.parametrize("role", ["writer", "reader"])
def test_a_pod_that_ends_drains_and_no_client_sees_an_error(endpoints, role):
    door, ending = endpoints.door, getattr(endpoints, role)

    def work(client, number, turn):
        client.query("UPDATE t SET a = a + 1")
        with client.cursor() as cursor:
            cursor.execute("SELECT a FROM t")
            return cursor.fetchone()[0]

    with clients(door, work, 4) as done:
        until(lambda: len(done) > 50, "they write and read")
        endpoints.tell(ending, terminating=True)
        until(lambda: endpoints.drains(ending), "it drains")
        until(lambda: door.writer() != ending, "another one takes writes")
        until(lambda: not endpoints.member(ending)["in_use"], "left")
        so_far = len(done)
        until(lambda: len(done) > so_far + 50, "they go on")
        # Another pod takes its place.
        endpoints.tell(ending, uid="another")
        until(lambda: not endpoints.drains(ending), "it serves again")


def test_a_pod_that_is_not_ready_stays_the_writer_while_its_server_says_that_all_is_well(endpoints):
    with endpoints.door.connect() as client:
        client.begin()
        client.query("INSERT INTO t VALUES (2, 0)")
        endpoints.tell(endpoints.writer, serving=False)
        # The proxy has heard that when it has heard what was told behind it.
        endpoints.tell(endpoints.reader, terminating=True)
        until(lambda: endpoints.drains(endpoints.reader), "the other one drains")
        assert endpoints.member(endpoints.writer).get("role") == "writer"
        client.query("INSERT INTO t VALUES (3, 0)")
        client.commit()
    assert endpoints.door.writer() == endpoints.writer
