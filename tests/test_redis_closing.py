"""A server that closes or refuses one connection is not a failed server: others go on to be served."""

import re
import threading

import pytest

from harness import until
from harness.redis import Closed, Connection, array, config, pools

pytestmark = pytest.mark.either_io

VALUE = b"$1\r\n1\r\n"
# So many requests each of the others has on its way at a time.
PIPELINE = 5


class Others:
    """Clients that ask for a key all the time, and note every other answer than its value."""

    def __init__(self, proxy, count=3, login=()):
        self.failed = []
        self.asked = 0
        self._ends = threading.Event()
        threads = [threading.Thread(target=self._ask, args=(proxy, login)) for _ in range(count)]
        self._threads = threads

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        until(lambda: self.asked > 10, "they are served")
        return self

    def __exit__(self, *_):
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, proxy, login):
        with Connection(proxy.address) as client:
            if login:
                client.ask(*login)
            while not self._ends.is_set():
                client.send(PIPELINE * array("GET", "x"))
                for _ in range(PIPELINE):
                    answer = client.reply()
                    self.asked += 1
                    if answer != VALUE:
                        self.failed.append(answer)

    def go_on(self, requests=20):
        """Waits until they have asked some more."""
        before = self.asked
        until(lambda: self.asked > before + requests, "they are served on")


@pytest.fixture
def start(redis_server, proxima):
    """Starts a server with these options, which has the key of the others, and a proxy before it."""

    def start(*options, listener=None):
        server = redis_server(options=options)
        assert server.ask("SET", "x", "1") == b"+OK\r\n"
        settings = config([server], workers=1)
        settings["listeners"][0] |= listener or {}
        return server, proxima(settings)

    return start


PASSING = {"auth": "pass"}
STRANGE = {
    "more words than servers take": array("MGET", *range(12)),
    "behind a request that is answered": array("GET", "a") + array("MGET", *range(12)),
    "a word that is longer than servers take": array("SET", "a", "v" * 16_385),
    "a value that is passed on as it comes": array("SET", "a", "v" * 100_000),
    "a script with many words": array("EVAL", "return 1", 0, *range(12)),
    "no more than servers take": array("SET", "a", "v" * 16_384) + array("MGET", *range(9)) + array("QUIT"),
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_client_without_a_login_is_answered_as_by_the_server_and_harms_nobody(start, what):
    server, proxy = start("--requirepass", "secret", listener=PASSING)
    with Others(proxy, login=("AUTH", "secret")) as others:
        for _ in range(5):
            heard = []
            for stranger in (server.plain(), Connection(proxy.address)):
                with stranger:
                    stranger.send(STRANGE[what])
                    heard.append(stranger.rest())
            assert heard[0] == heard[1] != b""
            others.go_on()
    assert others.failed == []
    assert "ejected" not in proxy.log()
    assert proxy.member(server.address)["failures_in_a_row"] == 0


def test_who_has_not_logged_in_is_served_at_any_length_by_a_server_that_asks_for_no_login(start):
    server, proxy = start(listener=PASSING)
    with Connection(proxy.address) as client:
        value = "v" * 100_000
        assert client.ask("SET", "large", value) == b"+OK\r\n"
        assert client.ask("MGET", *("x" for _ in range(20))) == b"*20\r\n" + 20 * VALUE
        assert client.ask("SELECT", 2) == b"+OK\r\n"
        assert client.ask("SET", "there", "1") == b"+OK\r\n"
    assert server.ask("EXISTS", "there") == b":0\r\n"
    with server.connect() as direct:
        assert direct.ask("SELECT", 2) == b"+OK\r\n"
        assert direct.ask("EXISTS", "there") == b":1\r\n"


def test_a_server_that_was_away_returns_although_only_its_clients_have_logins(start, redis_server):
    server, proxy = start("--requirepass", "secret", listener=PASSING)
    with Connection(proxy.address) as client:
        assert client.ask("AUTH", "secret") == b"+OK\r\n"
        server.kill()
        assert client.ask("GET", "x").startswith(b"-ERR ")
        until(lambda: proxy.member(server.address)["state"] == "ejected", "it is ejected")
    server.start()

    def returns():
        with Connection(proxy.address) as client:
            return client.ask("AUTH", "secret") == b"+OK\r\n"

    until(returns, "it is asked again")


def larger_than_the_server_takes(proxy):
    with Connection(proxy.address) as client:
        client.send(array("SET", "large", "v" * 3_000_000))
        assert client.reply().startswith(b"-ERR ")


def more_than_the_server_sends(proxy):
    with Connection(proxy.address) as client:
        client.ask("HELLO", 3)
        assert client.ask("LRANGE", "list", 0, -1).startswith(b"-ERR ")


LIMITS = {
    "proto-max-bulk-len": ("1mb", larger_than_the_server_takes),
    "client-query-buffer-limit": ("1mb", larger_than_the_server_takes),
    "client-output-buffer-limit": ("normal 1mb 0 0", more_than_the_server_sends),
    "maxmemory-clients": ("1mb", larger_than_the_server_takes),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_client_beyond_a_limit_of_the_server_harms_nobody(start, limit):
    most, exceed = LIMITS[limit]
    server, proxy = start(f"--{limit}", most)
    for _ in range(30):
        server.ask("RPUSH", "list", *("v" * 1000 for _ in range(100)))
    with Others(proxy) as others:
        for _ in range(5):
            exceed(proxy)
            others.go_on()
    assert others.failed == []
    assert "ejected" not in proxy.log()


def test_connections_that_an_operator_closes_are_made_anew(start):
    server, proxy = start()
    with Others(proxy) as others:
        for _ in range(40):
            server.ask("CLIENT", "KILL", "TYPE", "normal")
            others.go_on(5)
    assert others.failed == []
    assert "ejected" not in proxy.log()
    assert proxy.member(server.address)["state"] == "up"


def test_a_change_on_a_connection_that_an_operator_closes_is_made_once_at_most(start):
    server, proxy = start()
    with Others(proxy) as others, Connection(proxy.address) as client:
        done = lost = 0
        for _ in range(300):
            server.ask("CLIENT", "KILL", "TYPE", "normal")
            client.send(10 * array("INCR", "n"))
            for answer in [client.reply() for _ in range(10)]:
                done += answer.startswith(b":")
                lost += answer.startswith(b"-ERR ") and b": Connection " in answer
            # A read at which two connections in a row end is asked of nobody any more.
            others.go_on(5)
        assert done + lost == 3000
        counted = int(server.ask("GET", "n").split()[1])
        assert done <= counted <= done + lost
    assert others.failed == []


def test_a_request_at_which_servers_close_is_not_asked_of_another_one(redis_server, proxima):
    options = ("--client-output-buffer-limit", "normal 1mb 0 0")
    servers = [redis_server(options=options) for _ in range(2)]
    for server in servers:
        server.ask("SET", "x", "1")
        for _ in range(30):
            server.ask("RPUSH", "list", *("v" * 1000 for _ in range(100)))
        server.ask("CONFIG", "RESETSTAT")
    settings = config(servers[:1], workers=1)
    settings["pools"]["other"] = settings["pools"]["redis"] | {"servers": [servers[1].address]}
    settings["listeners"][0]["route"] = {"failover": [settings["listeners"][0]["route"], "other"]}
    proxy = proxima(settings)

    def calls(server):
        found = re.search(rb"cmdstat_lrange:calls=(\d+)", server.ask("INFO", "commandstats"))
        return int(found[1]) if found else 0

    with Others(proxy) as others:
        more_than_the_server_sends(proxy)
        assert [calls(server) for server in servers] == [2, 0]
        others.go_on()
        # A server that is not there is another matter.
        servers[0].kill()
        until(lambda: proxy.member(servers[0].address)["state"] == "ejected", "it is ejected")
        others.go_on()
    assert others.failed == []


def test_one_connection_more_than_the_server_takes_is_refused_alone(start):
    server, proxy = start("--maxclients", "6")
    with Others(proxy) as others:
        clients = [Connection(proxy.address) for _ in range(8)]
        answers = [client.ask("WATCH", "x") for client in clients]
        assert answers.count(b"+OK\r\n") >= 3
        refused = [answer for answer in answers if b"max number of clients reached" in answer]
        assert len(refused) == 8 - answers.count(b"+OK\r\n") > 0
        for number in range(4):
            with Connection(proxy.address) as client:
                assert b"max number of clients reached" in client.ask("SELECT", number + 1)
            others.go_on()
    assert others.failed == []
    assert "ejected" not in proxy.log()


def test_a_server_that_ends_idle_connections_is_asked_again(start):
    server, proxy = start("--timeout", "1")
    with Connection(proxy.address) as client:
        for _ in range(3):
            assert client.ask("GET", "x") == VALUE
            until(lambda: b"name=proxima" not in server.ask("CLIENT", "LIST"), "its connection is closed")
    assert "ejected" not in proxy.log()


def test_a_server_that_dies_is_ejected_at_once(start):
    server, proxy = start()
    with Connection(proxy.address) as client:
        assert client.ask("GET", "x") == VALUE
        server.kill()
        assert client.ask("GET", "x").startswith(b"-ERR ")
        until(lambda: proxy.member(server.address)["state"] == "ejected", "it is ejected")
        assert client.ask("GET", "x").endswith(b": ejected\r\n")


def test_a_hung_server_is_ejected_when_all_its_connections_are_dedicated(redis_server, proxima):
    server = redis_server()
    own = pools([server], timeout="200ms", eject={"failures": 3})
    proxy = proxima(config([server], workers=1, pools=own))
    server.freeze()

    def is_ejected():
        with Connection(proxy.address) as client:
            client.send(array("WATCH", "a"))
            try:
                assert client.reply().startswith(b"-ERR ")
            except Closed:
                pass
        return proxy.member(server.address)["state"] == "ejected"

    until(is_ejected, "it is ejected")
    server.thaw()
    until(lambda: proxy.member(server.address)["state"] == "up", "it is back")


def test_connections_of_single_clients_that_a_server_ends_eject_nobody(redis_server, proxima):
    server = redis_server()
    proxy = proxima(config([server], workers=1, pools=pools([server], eject={"failures": 1})))
    for _ in range(10):
        with Connection(proxy.address) as client:
            assert client.ask("WATCH", "a") == b"+OK\r\n"
            server.ask("CLIENT", "KILL", "TYPE", "normal")
            with pytest.raises(Closed):
                client.reply()
    assert proxy.member(server.address)["state"] == "up"
    assert "ejected" not in proxy.log()


def test_a_database_that_is_selected_needs_no_other_connection_for_what_blocks(start):
    server, proxy = start()

    def connections():
        return int(re.search(rb"total_connections_received:(\d+)", server.ask("INFO", "stats"))[1])

    with Connection(proxy.address) as client:
        before = connections()
        assert client.ask("SELECT", 5) == b"+OK\r\n"
        assert client.ask("BLPOP", "none", "0.01") == b"*-1\r\n"
        client.send(array("MULTI") + array("INCR", "n") + array("EXEC"))
        assert [client.reply() for _ in range(3)][2] == b"*1\r\n:1\r\n"
        # One is for SELECT and BLPOP, and one is shared by those who use this database. Two are ours.
        assert connections() - before <= 3
        assert client.ask("SELECT", 0) == b"+OK\r\n"
        assert client.ask("BLPOP", "none", "0.01") == b"*-1\r\n"
        assert client.ask("GET", "n") == b"$-1\r\n"


@pytest.mark.parametrize("database", [0, 9])
def test_clients_that_block_on_one_list_are_served_in_the_order_in_which_they_came(start, database):
    server, proxy = start()

    def waits(count):
        text = b"blocked_clients:%d\r\n" % count
        until(lambda: text in server.ask("INFO", "clients"), f"{count} wait")

    wrong = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
    for _ in range(10):
        with Connection(proxy.address) as pusher, Connection(proxy.address) as first:
            with Connection(proxy.address) as second:
                for client in (pusher, first, second):
                    assert client.ask("SELECT", database) == b"+OK\r\n"
                pusher.ask("FLUSHALL")
                pusher.ask("SET", "string", "1")
                first.send(array("BRPOPLPUSH", "list", "string", 0))
                waits(1)
                second.send(array("BRPOPLPUSH", "list", "other", 0))
                waits(2)
                pusher.ask("LPUSH", "list", "value")
                assert second.reply() == b"$5\r\nvalue\r\n"
                assert first.reply() == wrong
                assert pusher.ask("LRANGE", "other", 0, -1) == b"*1\r\n$5\r\nvalue\r\n"


def test_what_a_client_has_watched_is_lost_with_its_connection_alone(start):
    server, proxy = start()
    with Others(proxy) as others, Connection(proxy.address) as client:
        assert client.ask("WATCH", "x") == b"+OK\r\n"
        own = [line for line in server.ask("CLIENT", "LIST").split(b"\n") if b"cmd=watch" in line]
        number = re.search(rb"id=(\d+)", own[0])[1]
        assert server.ask("CLIENT", "KILL", "ID", number) == b":1\r\n"
        with pytest.raises((Closed, ConnectionResetError)):
            while True:
                client.ask("PING")
        others.go_on()
    assert others.failed == []
