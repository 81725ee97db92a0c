"""Whatever a session leaves at its server, however it leaves, and whoever is served next by that connection:
the next one sees what a client sees on a new connection to the server, and the first one has what it had."""

import itertools
import time

import pymysql
import pytest

from harness import mysql_matrix as matrix
from harness import mysql_raw as raw
from harness import until
from harness.mysql_between import Between
from harness.mysql_matrix import (
    COMERS,
    FREE,
    HELD,
    KINDS,
    LOOSE,
    OTHER,
    RESULT,
    RULES,
    SAME,
    STAYS,
    WAYS,
    Client,
)
from harness.proxy import Proxy
from harness.split import PASSWORDS, made, rows, schema, value

pytestmark = pytest.mark.either_io

LOCKED = 1205
"""The number of the error of a lock that is not waited for."""

NO_ROOM = {1040, 1041}
"""The numbers of the errors that say that all connections are in use."""

OBJECTS = (
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)",
    "CREATE TABLE who (name VARCHAR(20) PRIMARY KEY)",
    "INSERT INTO who VALUES ('this one')",
    "CREATE TABLE aside (a INT) ENGINE = MEMORY",
    "CREATE TABLE ids (id INT PRIMARY KEY AUTO_INCREMENT, a INT) ENGINE = MEMORY",
    "CREATE FUNCTION sets() RETURNS INT BEGIN SET @own = 'mine'; RETURN 1; END",
    "CREATE PROCEDURE makes() CREATE TEMPORARY TABLE own (id INT)",
    "CREATE PROCEDURE begins() START TRANSACTION",
    "CREATE PROCEDURE shifts() SET time_zone = '-07:00'",
)

READ = "SELECT * FROM who"

SETTABLE = (
    "SELECT GROUP_CONCAT(variable_name, ' = @@', variable_name SEPARATOR ', ') FROM (SELECT variable_name"
    " FROM information_schema.system_variables WHERE variable_scope = 'SESSION' AND read_only = 'NO'"
    " AND variable_type IN ('BIGINT UNSIGNED', 'INT UNSIGNED') AND default_value = global_value"
    " AND variable_name NOT LIKE 'gtid%' AND variable_name NOT LIKE 'wsrep%'"
    " AND variable_name NOT IN ('insert_id', 'last_insert_id', 'pseudo_thread_id', 'rand_seed1',"
    " 'rand_seed2', 'timestamp', 'server_id', 'max_user_connections', 'max_allowed_packet',"
    " 'net_buffer_length', 'tmp_memory_table_size', 'identity', 'max_sort_length')"
    " ORDER BY variable_name LIMIT 70) names"
)


class Place:
    """A proxy over a server, with listeners for one connection to it and for two, and for one that is read
    beside another one. Its accounts are nobody else's."""

    def __init__(self, io, folder, server, words):
        self.server, self.words = server, words
        users = {words[name]: {"password": "secret"} for name in ("first", "second")}
        config = made(folder, server, server, [{}] * 3, users, workers=1)
        common = {**config["pools"].pop("writer"), "timeout": "20s"}
        config["pools"] = {
            name: {**common, "dedicated": {"max": most, "wait": "3s"}}
            for name, most in (("one", 1), ("two", 2), ("writer", 2), ("readers", 1))
        }
        for listener, route in zip(config["listeners"], ("one", "two", "split")):
            listener["route"] = route
        self.proxy = Proxy(config, io, folder)
        self._one, self._two, self._split = self.proxy.addresses
        self._direct = server.connect(database=words["own"], autocommit=True)
        self._fresh, self._state = {}, {}
        # A server is asked at a login whether it has a schema, on a connection for that.
        for comer in COMERS.values():
            Client(self._one, words, **comer.options).close()

    def stop(self):
        self._direct.close()
        self.proxy.stop()

    def connections(self):
        """The numbers of the connections that this proxy has to the server for its clients."""
        asks = "SELECT id FROM information_schema.processlist WHERE user IN (%s, %s)"
        return {id for (id,) in rows(self._direct, asks, (self.words["first"], self.words["second"]))}

    def lasting(self, connections):
        """Those of them that stay. One by which a server is asked for a login, once a minute, does not."""
        for _ in range(40):
            if connections:
                time.sleep(0.025)
                connections = connections & self.connections()
        return connections

    def wait_for_sleep(self):
        asks = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = %s AND info LIKE 'DO SLE%%'"
        until(lambda: value(self._direct, asks, self.words["first"]), "it runs", every=0.002)

    def settle(self):
        """Waits until nobody has locked anything at the server, and nothing of a transaction is left."""

        def is_free():
            if not value(self._direct, "SELECT IS_FREE_LOCK('kept')"):
                return False
            try:
                rows(self._direct, "LOCK TABLES t WRITE, aside WRITE, who WRITE NOWAIT")
            except pymysql.err.OperationalError as error:
                assert error.args[0] == LOCKED
                return False
            rows(self._direct, "UNLOCK TABLES")
            return True

        until(is_free, "nothing is locked", every=0.002)
        assert value(self._direct, "SELECT COUNT(*) FROM t") == 0, "a transaction was committed"

    def begin(self, kind):
        for statement in (*kind.before, "TRUNCATE TABLE aside"):
            rows(self._direct, statement)

    def clean(self):
        """Ends whatever a failed cell has left."""
        for user in ("first", "second"):
            rows(self._direct, f"KILL USER {self.words[user]}")
        rows(self._direct, "DELETE FROM t")

    def direct(self, comer):
        return Client(self.server.address, self.words, **comer.options)

    def answers(self, comer, kind, client):
        """What a client is answered to all questions."""
        for step in comer.before:
            client.tell(step)
        found = []
        for step in (kind.asks, *matrix.probes(comer)):
            reply = comer.ask(client, step)
            assert not NO_ROOM.intersection(raw.numbers(reply)), "no connection becomes free"
            found.append(matrix.masked(reply, client.capabilities))
        return found

    def fresh(self, name, comer, is_kept=False):
        """The answers on a new connection to the server, with what the first one keeps now, if it does."""
        key = name, comer, is_kept
        if key not in self._fresh:
            with self.direct(COMERS[comer]) as client:
                for step in KINDS[name].new:
                    client.tell(step)
                self._fresh[key] = self.answers(COMERS[comer], KINDS[name], client)
            if not is_kept:
                self.settle()
        return self._fresh[key]

    def state(self, name, then=None, reads=False):
        """The answer to the first one's question on a connection to the server that it has for itself, behind
        a read if it `reads`, and what it does `then`."""
        key = name, then, reads
        if key not in self._state:
            kind = KINDS[name]
            self.begin(kind)
            with self.direct(COMERS["the same account"]) as client:
                for step in kind.sets:
                    client.tell(step)
                if reads:
                    client.query(READ)
                if then:
                    then(client)
                self._state[key] = matrix.masked(client.tell(kind.asks), client.capabilities)
            self.settle()
        return self._state[key]

    @property
    def only(self):
        """The address of the listener that has one connection."""
        return self._one

    def address(self, at):
        return self._split if at == "split" else self._two

    def failures(self, *cell, **options):
        """What is wrong with a cell. Nothing of one that failed is left for others."""
        try:
            found = self.check(*cell, **options)
        except Exception as error:
            found = [f"{type(error).__name__}: {error}".splitlines()[0]]
        if found:
            self.clean()
        return found

    def check(self, name, way, comer, expected=None):
        """Lets one cell happen, and returns what is wrong with it."""
        kind, place = KINDS[name], COMERS[comer]
        # One that loses its connection to another one has lost what its statement has left.
        is_lost, expected = expected is not None, expected or matrix.expectation(name, way, comer)
        address = self._split if place.at == "split" else self._two if expected == OTHER else self._one
        is_kept = way == "idle" and kind.keeps == HELD
        goes_on = way in STAYS and not (kind.lost or is_lost) and not (way != "idle" and kind.stays)
        own = self.state(name, STAYS[way], place.at == "split") if goes_on else None
        fresh = None if is_kept else self.fresh(name, comer)
        self.begin(kind)
        wrong = []
        first = Client(address, self.words)
        try:
            for step in kind.sets:
                first.tell(step)
            if place.at == "split":
                first.query(READ)
            before = self.connections()
            WAYS[way](first, self)
            if expected == FREE and kind.is_seen:
                self.settle()
            fresh = fresh or self.fresh(name, comer, is_kept)
            with Client(address, self.words, **place.options) as second:
                found = self.answers(place, kind, second)
                more = self.connections() - before
                second.write(raw.QUIT)
                second.rest()
            for question, ours, theirs in zip((kind.asks, *matrix.probes(place)), found, fresh):
                if ours != theirs:
                    wrong.append(f"{question}: {matrix.readable(ours)}, not {matrix.readable(theirs)}")
            if expected == SAME and place.shares and self.lasting(more):
                wrong.append("it was given another connection")
            if own:
                found = matrix.masked(first.tell(kind.asks), first.capabilities)
                if found != own:
                    wrong.append(f"first one: {matrix.readable(found)}, not {matrix.readable(own)}")
        finally:
            first.close()
        self.settle()
        return wrong


@pytest.fixture(scope="module")
def place(io, mysql_pair, tmp_path_factory):
    server, _ = mysql_pair
    with schema(server) as own, schema(server) as other, schema(server) as third:
        words = {"own": own, "other": other, "third": third, "role": f"{own}role"}
        words |= {"first": f"{own}one", "second": f"{own}two"}
        server.run(f"USE {own}", *OBJECTS, f"CREATE ROLE {words['role']}")
        for name in ("first", "second"):
            server.run(
                f"CREATE USER {words[name]} IDENTIFIED BY 'secret'",
                f"GRANT ALL ON *.* TO {words[name]}",
                f"GRANT {words['role']} TO {words[name]}",
            )
        with server.connect() as direct:
            words |= {"many": value(direct, SETTABLE), "session": value(direct, matrix.SESSION)}
        found = Place(io, tmp_path_factory.mktemp("matrix"), server, words)
        yield found
        found.stop()
        server.run(f"DROP USER {words['first']}, {words['second']}", f"DROP ROLE {words['role']}")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("comer", COMERS)
@pytest.mark.parametrize("ways", [tuple(WAYS)[:4], tuple(WAYS)[4:]], ids=["leaves", "runs or resets"])
def test_who_comes_next_sees_a_new_session_whatever_the_first_one_has_left(place, comer, ways):
    wrong = []
    for name, way in itertools.product(KINDS, ways):
        found = place.failures(name, way, comer)
        wrong += [f"{name}, {way}: {'; '.join(found)}"] if found else []
    assert not wrong, "\n".join([f"{len(wrong)} cells", *wrong])


@pytest.mark.parametrize("comer", COMERS)
def test_what_a_statement_has_left_is_nobody_elses_where_its_connection_is_wanted_at_once(place, comer):
    """There is one connection, so it does not stay with the first one, which has not left."""
    wrong = []
    for name in (name for name, kind in KINDS.items() if kind.keeps == RESULT):
        found = place.failures(name, "idle", comer, expected=SAME)
        wrong += [f"{name}: {'; '.join(found)}"] if found else []
    assert not wrong, "\n".join(wrong)


ABOUT_VARIABLES = (
    f"SHOW SESSION VARIABLES WHERE variable_name NOT IN {matrix.OF_A_CONNECTION[:6]}",
    "SHOW VARIABLES LIKE 'session_track%'",
    "SHOW VARIABLES LIKE 'tx_read_only'",
    "SELECT @@session_track_schema, @@session_track_state_change, @@session_track_system_variables",
    "SELECT @@session.session_track_transaction_info",
    "SELECT @@tx_read_only, @@wsrep_sync_wait",
)


@pytest.mark.parametrize("asks", ABOUT_VARIABLES)
@pytest.mark.parametrize("at", ["route", "split"])
@pytest.mark.parametrize("before", [READ, "SET @x = 1", "BEGIN"])
def test_questions_about_variables_do_not_show_what_the_proxy_sets(place, asks, at, before):
    answers = []
    for address in (place.server.address, place.address(at)):
        with Client(address, place.words) as client:
            client.query(before)
            reply = client.query(asks)
            answers.append([payload for _, payload in raw.split(reply)])
    assert answers[0] == answers[1]


@pytest.mark.parametrize("before", ["SELECT 1", "BEGIN", "SET @x = 1"])
@pytest.mark.parametrize("at", ["route", "split"])
def test_a_session_is_told_the_number_of_its_greeting_which_kill_takes(place, at, before):
    with Client(place.address(at), place.words) as client, Client(place.address(at), place.words) as other:
        client.query(before)
        reply = client.query("SELECT CONNECTION_ID()")
        number = client.greeting.number
        assert raw.split(reply)[3][1][1:] == str(number).encode()
        assert raw.numbers(other.query(f"KILL QUERY {number}")) == []
        assert raw.numbers(other.query(f"KILL {number}")) == []
        client.rest()


def test_a_client_that_finds_all_connections_in_use_has_an_error_of_its_own(place):
    with Client(place.only, place.words) as first, Client(place.only, place.words) as second:
        first.query("BEGIN")
        assert raw.numbers(second.query("SELECT 1")) == [1040]
        first.query("COMMIT")
        assert raw.numbers(second.query("SELECT 1")) == []


def test_a_pool_that_resets_always_resets_its_connection_before_another_session(
    mysql_pair, proxima, tmp_path, cleanup
):
    between = Between(mysql_pair[0].address)
    cleanup.callback(between.stop)
    users = {"app": {"password": PASSWORDS["app"]}}
    config = made(tmp_path, between, mysql_pair[1], [{"reads": "writer"}], users, workers=1)
    config["pools"]["writer"]["dedicated"] = {"max": 1, "reset": "always"}
    proxy = proxima(config)
    reset = bytes([raw.RESET_CONNECTION])
    with raw.Connection(proxy.address) as first, raw.Connection(proxy.address) as second:
        for turn, client in enumerate((first, second, first, second)):
            assert raw.numbers(client.query(f"SELECT 'turn {turn}' FROM DUAL FOR UPDATE")) == []
    log = [packet for packet in between.log if packet == reset or b"'turn " in packet]
    # The first session of all may find a new connection.
    assert [packet == reset for packet in log[log.index(reset) :]] == [True, False] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_the_question_about_a_kind_of_state_shows_it(place, kind):
    fresh = place.fresh(kind, "the same account")[0]
    assert (place.state(kind) == fresh) == bool(KINDS[kind].hidden)


def test_every_way_has_a_rule_for_every_reason_to_stay():
    assert set(RULES) == set(itertools.product(WAYS, (LOOSE, RESULT, HELD)))
    assert set(RULES.values()) <= {SAME, OTHER, FREE}
    assert {kind.keeps for kind in KINDS.values()} <= {LOOSE, RESULT, HELD}
    for (kind, way, comer), (rule, reason) in matrix.EXCEPTIONS.items():
        assert kind in KINDS and way in WAYS and comer in COMERS and reason
        assert rule != RULES[way, KINDS[kind].keeps], (kind, way, comer)
