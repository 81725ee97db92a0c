"""Children that answer at once: their parents ask the next ones within the answer, and however many do, the
process lives."""

import pytest

from harness.proxy import config

pytestmark = pytest.mark.either_io

MANY = 1_000


@pytest.fixture
def proxy(proxima):
    """Starts a proxy with this route."""

    def start(route):
        return proxima(config(route, embedded={"memory": "256MiB"}))

    return start


def test_a_value_of_thousands_of_pieces_in_the_embedded_store(proxy):
    value = bytes(range(256)) * 40_000
    route = {"big_value": {"child": "embedded", "threshold": "1KiB", "batch": 1}}
    with proxy(route).raw() as client:
        for _ in range(2):
            client.set("k", value)
            assert client.get("k") == value


@pytest.mark.parametrize("kind", ["failover", "miss_failover"])
def test_many_children_that_have_nothing(proxy, kind):
    child = {"error": "no"} if kind == "failover" else "null"
    with proxy({kind: {"children": [child] * MANY}}).raw() as client:
        expected = b"SERVER_ERROR no\r\n" if kind == "failover" else b"END\r\n"
        for _ in range(3):
            assert client.ask(b"get k\r\n") == expected
            assert client.ask(b"get k\r\n" * 20) == expected * 20
