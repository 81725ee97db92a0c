"""Connections to a server are limited for all workers together, and every statement gets one in its turn."""

import concurrent.futures

import pymysql
import pytest

from harness import until
from harness.split import connect, made, rows, users_of, value, wait_for_members

pytestmark = pytest.mark.either_io

TOO_MANY = 1040


@pytest.fixture
def limited(mysql_pair, proxima, tmp_path):
    """Starts a proxy of two workers with these limits on connections to the writer, where everything goes."""

    def start(**limits):
        config = made(tmp_path, *mysql_pair, [{"reads": "writer"}])
        config["pools"]["writer"]["dedicated"] = limits
        proxy = proxima(config)
        wait_for_members(proxy, *mysql_pair)
        return proxy

    return start


def in_use(proxy):
    return proxy.metric("dedicated_lanes", pool="writer")


def begun(proxy):
    """A client that keeps its connection; None if it has got none."""
    try:
        # The driver sends a statement of its own.
        client = connect(proxy.address, autocommit=True)
        rows(client, "BEGIN")
        return client
    except pymysql.err.OperationalError as error:
        assert error.args[0] == TOO_MANY
        return None


def test_statements_of_many_clients_of_all_workers_take_turns_on_few_connections(mysql_pair, limited):
    proxy = limited(total=2, wait="30s")
    writer, _ = mysql_pair

    def ask(number):
        with connect(proxy.address, autocommit=True) as client:
            answers = [value(client, f"SELECT {number} + SLEEP(0.005)") for _ in range(10)]
        return answers == [number] * 10

    with concurrent.futures.ThreadPoolExecutor(24) as clients:
        answered = [clients.submit(ask, number) for number in range(24)]
        most = 0
        while not all(one.done() for one in answered):
            most = max(most, len(users_of(writer)))
        assert all(one.result() for one in answered)
    assert 0 < most <= 2
    assert proxy.metric("dedicated_refusals_total", pool="writer") == 0


def test_a_worker_below_its_share_gets_a_connection_of_one_that_has_more(mysql_pair, limited):
    """Clients that keep nothing have all connections, whichever worker they are at."""
    proxy = limited(total=4, wait="30s")
    busy = [connect(proxy.address, autocommit=True) for _ in range(12)]
    with concurrent.futures.ThreadPoolExecutor(12) as clients:
        for _ in range(5):
            asked = [clients.submit(rows, client, "SELECT SLEEP(0.01)") for client in busy]
            with connect(proxy.address, autocommit=True) as late:
                assert value(late, "SELECT 1") == 1
            assert all(one.result() for one in asked)
    for client in busy:
        client.close()


def test_a_server_tells_how_many_connections_clients_may_have(mysql_pair, limited):
    writer, _ = mysql_pair
    writer.run("SET GLOBAL max_connections = 20")
    try:
        proxy = limited(wait="1s")
        # The first login tells the number.
        with connect(proxy.address, autocommit=True) as first:
            assert value(first, "SELECT 1") == 1
        until(lambda: in_use(proxy) == 0, "its connection is free")
        clients = [begun(proxy) for _ in range(18)]
        assert [client is not None for client in clients] == [True] * 16 + [False] * 2
        # There is room for administrators, and for the proxy to end what runs.
        assert len(users_of(writer)) == 16
        for client in filter(None, clients):
            client.close()
        until(lambda: in_use(proxy) == 0, "their connections are free")
        with connect(proxy.address, autocommit=True) as last:
            assert value(last, "SELECT 1") == 1
    finally:
        writer.run("SET GLOBAL max_connections = DEFAULT")


def test_a_client_for_each_request_needs_no_connection_of_its_own(mysql_pair, limited):
    proxy = limited(total=8)
    for _ in range(60):
        with connect(proxy.address, autocommit=True) as client:
            assert value(client, "SELECT 1") == 1
    # Each worker may have opened one, and one ahead.
    assert proxy.metric("dedicated_opened_total", pool="writer") <= 6


def test_an_idle_connection_is_closed_before_its_server_does_that(mysql_pair, limited):
    writer, _ = mysql_pair
    writer.run("SET GLOBAL wait_timeout = 8")
    try:
        proxy = limited()
        ages = []

        def is_closed():
            with writer.connect() as direct:
                asks = "SELECT time FROM information_schema.processlist WHERE user = 'app'"
                found = [age for (age,) in rows(direct, asks)]
            ages.extend(found)
            return not found

        with connect(proxy.address, autocommit=True) as client:
            assert value(client, "SELECT 1") == 1
            until(is_closed, "its connection is closed")
            # The server would have closed it in its eighth second.
            assert ages and max(ages) < 7
            assert value(client, "SELECT 1") == 1
    finally:
        writer.run("SET GLOBAL wait_timeout = DEFAULT")
