"""Many clients mark all that a server can keep for them with tokens of their own, in random order, and look
for those of others. They have few connections between them."""

import random
import re
import threading
import time

import pytest

from harness import SOAK
from harness import mysql_raw as raw
from harness.mysql_raw import Connection
from harness.split import Split, made, schema

pytestmark = [pytest.mark.either_io, pytest.mark.verdict, pytest.mark.timeout(600 if SOAK else 120)]

CLIENTS = 64
SECONDS = 180 if SOAK else 3

TOKEN = re.compile(rb"token\d+x")

OBJECTS = (
    "CREATE TABLE ids (id INT PRIMARY KEY AUTO_INCREMENT, a INT)",
    "CREATE TABLE rows_of (token VARCHAR(20))",
)


def only(reply):
    """The only value of a reply, or None for NULL."""
    row = raw.split(reply)[3][1]
    return None if row == b"\xfb" else row[1:]


class Marker:
    """A client with a token. `has` says what it has marked, by the question that shows it, and the answer."""

    def __init__(self, number, place, name, stop):
        self.token, self.number = f"token{number}x", number
        self._place, self._name, self._stop = place, name, stop
        self._chance = random.Random(number)
        self.wrong, self.steps = [], 0
        self.sees = dict(self.NOTHING)

    NOTHING = {
        "SELECT @mark": None,
        "SELECT @@group_concat_max_len": b"1048576",
        "SELECT @@time_zone": b"SYSTEM",
        "SELECT LAST_INSERT_ID()": b"0",
        "SELECT @@lock_wait_timeout": b"86400",
        "SELECT @@sql_select_limit": b"18446744073709551615",
        "SELECT token FROM own": 1146,
        "EXECUTE own": 1243,
    }

    def run(self):
        try:
            while not self._stop.is_set():
                address = self._chance.choice(self._place.proxy.addresses[::2])
                self.client = Connection(address, schema=self._name)
                self.sees = dict(self.NOTHING)
                for _ in range(self._chance.randrange(1, 25)):
                    self._chance.choice((self.mark, self.look, self.look, self.pass_by, self.be_reset))()
                    self.steps += 1
                self._chance.choice((self.client.abort, self.leave))()
        except Exception as error:
            self.wrong.append(f"{type(error).__name__}: {error}")

    def leave(self):
        self.client.write(raw.QUIT)
        self.client.rest()
        self.client.close()

    def ask(self, text):
        reply = self.client.query(text)
        foreign = {token for token in TOKEN.findall(reply) if token != self.token.encode()}
        if foreign:
            self.wrong.append(f"{text}: {foreign}")
        return reply

    def must(self, text):
        reply = self.ask(text)
        if raw.numbers(reply):
            self.wrong.append(f"{text}: {raw.shown(reply)}")
        return reply

    def mark(self):
        n, token, sees = self.number, self.token, self.sees
        kind = self._chance.randrange(10)
        if kind == 0:
            self.must(f"SET @mark = '{token}'")
            sees["SELECT @mark"] = token.encode()
        elif kind == 1:
            self.must(f"SET group_concat_max_len = {5000 + n}")
            sees["SELECT @@group_concat_max_len"] = b"%d" % (5000 + n)
        elif kind == 2:
            self.must(f"SET time_zone = '+{n % 13:02}:{n % 60:02}'")
            sees["SELECT @@time_zone"] = b"+%02d:%02d" % (n % 13, n % 60)
        elif kind == 3:
            _, ok = raw.split(self.must(f"INSERT INTO ids (a) VALUES ({n})"))[0]
            sees["SELECT LAST_INSERT_ID()"] = b"%d" % raw.number(ok, raw.number(ok, 1)[1])[0]
        elif kind == 4:
            self.must(f"SET lock_wait_timeout = {7000 + n}, sql_select_limit = {9000 + n}")
            sees["SELECT @@lock_wait_timeout"] = b"%d" % (7000 + n)
            sees["SELECT @@sql_select_limit"] = b"%d" % (9000 + n)
        elif kind == 5:
            self.must(f"CREATE OR REPLACE TEMPORARY TABLE own SELECT '{token}' AS token")
            sees["SELECT token FROM own"] = token.encode()
        elif kind == 6:
            self.must(f"PREPARE own FROM 'SELECT ''{token}'''")
            sees["EXECUTE own"] = token.encode()
        elif kind == 7:
            # The connection may be wanted by others, and then its warning is nobody's.
            self.ask(f"SELECT CAST('{token}' AS INT)")
            self.must("SHOW WARNINGS")
        elif kind == 8:
            self.ask(f"SELECT {token} FROM missing")
            self.must("SHOW ERRORS")
        else:
            self.must("BEGIN")
            self.must(f"INSERT INTO rows_of VALUES ('{token}')")
            if only(self.must("SELECT COUNT(*) FROM rows_of")) != b"1":
                self.wrong.append("rows of a transaction of another client")
            self.must("ROLLBACK")

    def look(self):
        question, expected = self._chance.choice(list(self.sees.items()))
        reply = self.ask(question)
        numbers = raw.numbers(reply)
        found = numbers[0] if numbers else only(reply)
        if found != expected:
            self.wrong.append(f"{self.token}: {question}: {found}, not {expected}")

    def pass_by(self):
        """Asks for what the statement before has left, when that was another client's or nothing."""
        self.must(self._chance.choice(("BEGIN", "SET @@sql_notes = 1", "SELECT 1", "DO 1")))
        asks = ("SHOW WARNINGS", "SELECT FOUND_ROWS(), ROW_COUNT(), @@warning_count", "SHOW ERRORS")
        self.must(self._chance.choice(asks))
        self.must("COMMIT")

    def be_reset(self):
        if self._chance.randrange(3) == 0:
            if self._chance.randrange(2):
                self.client.ask(raw.RESET_CONNECTION)
            elif raw.change_user(self.client, "app", "secret", self._name)[:1] != b"\0":
                self.wrong.append("it cannot become the same user again")
            self.sees = dict(self.NOTHING)


def test_no_client_of_many_ever_sees_what_another_one_has_marked(mysql_pair, proxima, tmp_path):
    """Reads and writes are at one server, so that all find their tables."""
    server, _ = mysql_pair
    keys = {"dedicated": {"max": 12, "wait": "60s"}}
    config = made(tmp_path, server, server, Split.LISTENERS)
    for pool in config["pools"].values():
        pool.update(keys)
    with schema(server) as name:
        server.run(f"USE {name}", *OBJECTS)
        proxy = proxima(config)
        stop = threading.Event()
        place = Split(proxy, server, server)
        markers = [Marker(number, place, name, stop) for number in range(1, CLIENTS + 1)]
        threads = [threading.Thread(target=marker.run) for marker in markers]
        for thread in threads:
            thread.start()
        time.sleep(SECONDS)
        stop.set()
        for thread in threads:
            thread.join()
    wrong = [f"{marker.token}: {text}" for marker in markers for text in marker.wrong]
    assert not wrong, "\n".join([f"{len(wrong)} times", *wrong[:40]])
    assert sum(marker.steps for marker in markers) > CLIENTS
