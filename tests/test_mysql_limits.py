"""Connections to a server are limited for all workers together, and every statement gets one in its turn."""

import concurrent.futures
import functools
import json
import threading

import pymysql
import pytest

from harness import mysql_raw as raw
from harness import until
from harness.split import PASSWORDS, connect, made, rows, runs, users_of, value, wait_for_members

pytestmark = pytest.mark.either_io

TOO_MANY = 1040


@pytest.fixture
def limited(mysql_pair, proxima, tmp_path):
    """Starts a proxy, of two workers by default, with these limits on connections to the writer, where
    everything goes."""

    def start(workers=2, **limits):
        config = made(tmp_path, *mysql_pair, [{"reads": "writer"}], workers=workers)
        config["pools"]["writer"]["dedicated"] = limits
        proxy = proxima(config)
        wait_for_members(proxy, *mysql_pair)
        return proxy

    return start


def in_use(proxy):
    return proxy.metric("dedicated_lanes", pool="writer")


def waiting(proxy):
    return proxy.metric("dedicated_queued", pool="writer")


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


def workers_of(proxy):
    """The worker of each session, by the number of the session."""
    listed = json.loads(proxy.http("/mysql/sessions")[1])["sessions"]
    return {session["number"]: session["worker"] for session in listed}


def test_a_worker_below_its_share_gets_a_connection_of_one_that_has_more(mysql_pair, limited):
    """The clients of one worker keep all connections busy until one of the other has been served."""
    proxy = limited(total=4, wait="10s")
    clients = [connect(proxy.address, autocommit=True) for _ in range(24)]
    workers = workers_of(proxy)
    busy = [client for client in clients if workers[client.thread_id()] == 0][:8]
    late = next(client for client in clients if workers[client.thread_id()] == 1)
    assert len(busy) > 4
    is_served = threading.Event()

    def goes_on(client):
        count = 0
        while not is_served.is_set():
            rows(client, "SELECT SLEEP(0.01)")
            count += 1
        return count

    with concurrent.futures.ThreadPoolExecutor(len(busy)) as pool:
        going = [pool.submit(goes_on, client) for client in busy]
        try:
            # The first worker has them all.
            until(lambda: in_use(proxy) == 4 and waiting(proxy) > 0, "all connections are in use")
            assert value(late, "SELECT 1") == 1
        finally:
            is_served.set()
        assert all(one.result() for one in going)
    for client in clients:
        client.close()


def test_kill_has_a_connection_besides_when_all_are_in_use(mysql_pair, limited):
    proxy = limited(total=1, wait="10s")
    writer, _ = mysql_pair
    with connect(proxy.address, autocommit=True) as other:
        with raw.Connection(proxy.address) as sleeps:
            sleeps.write(raw.QUERY, "SELECT SLEEP(50)")
            until(lambda: runs(writer, "SLEEP(50)"), "it runs")
            rows(other, f"KILL QUERY {sleeps.greeting.number}")
            assert raw.numbers(sleeps.reply()) in ([1317], [])


def test_logins_that_fail_at_the_server_harm_no_other_account(mysql_pair, proxima, tmp_path):
    """The file of users has another password of one of them than the server."""
    users = {"app": {"password": PASSWORDS["app"]}, "other": {"password": "not the server's"}}
    config = made(tmp_path, *mysql_pair, [{"reads": "writer"}], users)
    config["pools"]["writer"]["dedicated"] = {"total": 2, "wait": "10s"}
    proxy = proxima(config)
    wait_for_members(proxy, *mysql_pair)
    is_over = threading.Event()

    def fails():
        while not is_over.is_set():
            with pytest.raises(pymysql.err.OperationalError) as caught:
                connect(proxy.address, "other", password="not the server's", autocommit=True)
            assert caught.value.args[0] == 1045

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        failing = [pool.submit(fails) for _ in range(6)]
        try:
            for number in range(100):
                with connect(proxy.address, autocommit=True) as client:
                    assert value(client, f"SELECT {number}") == number
        finally:
            is_over.set()
        assert [one.result() for one in failing] == [None] * 6
    assert all(proxy.member(server.address)["state"] == "up" for server in mysql_pair)


def test_a_connection_that_is_reset_is_counted(mysql_pair, limited):
    proxy = limited(workers=1, total=1)
    with connect(proxy.address, autocommit=True) as client:
        rows(client, "SET @x = 1")
    counted = functools.partial(proxy.metric, "own_requests_total", pool="writer", command="reset")
    until(lambda: counted() == 1, "the connection is reset")
    with connect(proxy.address, autocommit=True) as client:
        assert value(client, "SELECT @x") is None
    assert proxy.metric("dedicated_opened_total", pool="writer") == 1


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

    def aborted():
        with writer.connect() as direct:
            return rows(direct, "SHOW GLOBAL STATUS LIKE 'Aborted_clients'")[0][1]

    try:
        proxy = limited()
        before = aborted()
        ages = []

        def is_closed():
            with writer.connect() as direct:
                asks = "SELECT time FROM information_schema.processlist WHERE user = 'app'"
                found = [age for (age,) in rows(direct, asks)]
            ages.extend(found)
            return not found

        with connect(proxy.address, autocommit=True) as client:
            assert value(client, "SELECT 1") == 1
        # No client is left, and the server would close it in its eighth second.
        until(is_closed, "its connection is closed")
        assert ages and max(ages) < 7
        assert aborted() == before, "its server was told"
    finally:
        writer.run("SET GLOBAL wait_timeout = DEFAULT")
