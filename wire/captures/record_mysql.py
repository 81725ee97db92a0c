#!/usr/bin/env python3
"""Records what a real MariaDB or MySQL says into the captures in mysql/.

    ./record_mysql.py                   # the MariaDB of this system
    ./record_mysql.py mariadb118        # replies of another server of databases.py, into mariadb118-*.txt

The form is that of `record.py`, but the requests are here and not in the files, since they are binary. Each
file of `REPLIES` is one connection with its own capabilities, which stand in the first line of the file. Its
first exchanges are the greeting and the login. COM_STATISTICS follows every exchange and is not written
down: its text tells where the recorded reply ends. `logins.txt` has the messages of logins one by one,
`clients.txt` has what real clients say first, and `collations.tsv` the numbers of collations.
"""

import contextlib
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from record import encode

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "commands"))
import databases

FOLDER = HERE / "mysql"

# Capabilities by their bits: LONG_PASSWORD, LONG_FLAG, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS,
# SECURE_CONNECTION, multiple statements and results, and PLUGIN_AUTH.
PLAIN = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 16 | 1 << 17 | 1 << 18 | 1 << 19
SESSION_TRACK = 1 << 23
DEPRECATE_EOF = 1 << 24
NATIVE = b"mysql_native_password"

SCHEMA = (
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(100))",
    "INSERT INTO t (a, b) VALUES (1, 'x'), (2, NULL), (NULL, '')",
    "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT a, b FROM t; UPDATE t SET a = 1 WHERE id = 0; END",
    "CREATE PROCEDURE out_p(OUT x INT) BEGIN SET x = 7; SELECT 1; END",
    "CREATE FUNCTION sets() RETURNS INT BEGIN SET @x = 1; RETURN 1; END",
)


def query(text):
    return b"\x03" + text.encode()


def prepare(text):
    return b"\x16" + text.encode()


def execute(*numbers, cursor=0, statement=None):
    """COM_STMT_EXECUTE with parameters of type BIGINT, of the statement that was prepared last."""

    def command(last):
        head = struct.pack("<BIBI", 0x17, statement or last, cursor, 1)
        types = b"\0\1" + b"\x08\0" * len(numbers) if numbers else b""
        return head + types + struct.pack(f"<{len(numbers)}q", *numbers)

    return command


def fetch(rows, statement=None):
    return lambda last: struct.pack("<BII", 0x1C, statement or last, rows)


def of_last(number, rest=b""):
    """Another command about the statement that was prepared last."""
    return lambda last: struct.pack("<BI", number, last) + rest


STATEMENTS = (
    "SELECT 1",
    "SELECT * FROM t",
    "SELECT * FROM t WHERE id = 0",
    "SELECT NULL, '', 'x', 1.5, REPEAT('y', 250), REPEAT('z', 300)",
    "SELECT REPEAT('x', 70000)",
    "SELECT REPEAT('x', 300) FROM t",
    "SELECT " + ", ".join(str(number) for number in range(300)),
    "INSERT INTO t (a, b) VALUES (4, 'new')",
    "UPDATE t SET a = 5 WHERE a = 4",
    "DELETE FROM t WHERE a = 5",
    "SELEC 1",
    "SELECT * FROM nonsense",
    "SELECT id, IF(id > 1, (SELECT 1 UNION SELECT 2), 0) FROM t",
    "SELECT 1 / 0",
    "SHOW WARNINGS",
    "SELECT 1; SELECT 2, 3",
    "SELECT 1; UPDATE t SET a = 1 WHERE id = 0; SELECT 2",
    "DO 1; DO 2; DO 3",
    "SELECT 1; SELEC 2; SELECT 3",
    "CALL p()",
    "CALL p(); SELECT 1",
    "BEGIN",
    "SELECT 1 FROM t",
    "COMMIT",
    "START TRANSACTION READ ONLY",
    "UPDATE t SET a = 1",
    "ROLLBACK",
    "SET session_track_system_variables = 'autocommit,sql_mode,time_zone,tx_isolation', "
    "session_track_schema = 1, session_track_state_change = 1, "
    "session_track_transaction_info = 'CHARACTERISTICS'",
    "SET autocommit = 0",
    "SET autocommit = 1, time_zone = '+00:00'",
    "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    "SET sql_mode = ''",
    "USE test",
    "SET @x = 1",
    "SELECT @y := 1",
    "SELECT sets()",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "BEGIN",
    "SELECT 1 FROM t",
    "ROLLBACK",
    "CREATE TEMPORARY TABLE x (id INT)",
    "SET NAMES utf8mb4",
    "SELECT 'done'; SET autocommit = 1; SELECT 1",
)

COMMANDS = [
    *map(query, STATEMENTS),
    b"\x0e",  # COM_PING
    b"\x02test",  # COM_INIT_DB
    b"\x02nonsense",
    b"\x04t\0",  # COM_FIELD_LIST
    b"\x04nonsense\0",
    b"\x0a",  # COM_PROCESS_INFO
    b"\x1b\x01\x00",  # COM_SET_OPTION
    b"\x1b\x00\x00",
    b"\x1b\x09\x00",
    b"\x0d",  # COM_DEBUG
    b"\x0c\xff\xff\xff\x7f",  # COM_PROCESS_KILL
    b"\x7f",  # No command.
    b"\x1f",  # COM_RESET_CONNECTION
    b"\x02test",
    prepare("SELECT id, a, b FROM t WHERE id > ?"),
    execute(0),
    execute(100),
    execute(0, cursor=1),
    fetch(2),
    fetch(2),
    fetch(2),
    of_last(0x1A),  # COM_STMT_RESET
    of_last(0x18, b"\0\0data"),  # COM_STMT_SEND_LONG_DATA
    of_last(0x19),  # COM_STMT_CLOSE
    execute(0),
    prepare("SELEC 1"),
    prepare("SELECT 1"),
    execute(),
    execute(statement=0xFFFFFFFF),
    prepare("DO 1"),
    execute(),
    prepare("UPDATE t SET a = ? WHERE id = ?"),
    execute(1, 0),
    prepare("CALL p()"),
    execute(),
    prepare("CALL out_p(?)"),
    execute(0),
    prepare("SELECT id FROM t; SELECT 1"),
    fetch(1, statement=99),
]

LARGE = [query("SELECT REPEAT('x', 16777300), 1"), query("SELECT REPEAT('x', 16777211)")]

REPLIES = {
    "plain.txt": (PLAIN, COMMANDS),
    "track.txt": (PLAIN | SESSION_TRACK, COMMANDS),
    "deprecate_eof.txt": (PLAIN | SESSION_TRACK | DEPRECATE_EOF, COMMANDS),
    "large.txt": (PLAIN, LARGE),
}


class Server:
    """A server on a Unix socket of its own."""

    def __init__(self, kind):
        self.kind = kind

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "socket")
        data = pathlib.Path(self.folder.name, "data")
        self.kind.make(data)
        options = ["--skip-networking", "--max-allowed-packet=64M"]
        options += [f"--socket={self.path}", f"--pid-file={self.path}.pid"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(self.kind.start(data, *databases.as_user(), *options), **silent)
        self.prepare()
        return self

    def prepare(self):
        """Makes the objects that the statements are about."""
        with self.connect() as client:
            client.login(PLAIN)
            for statement in SCHEMA:
                client.ask(query(statement))

    def connect(self):
        for _ in range(200):
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                return Client(self.path)
            time.sleep(0.05)
        raise SystemExit("the server does not answer")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


def packet(payload, sequence=0):
    return len(payload).to_bytes(3, "little") + bytes([sequence]) + payload


def login_of(capabilities, method=NATIVE, user=b"root"):
    """A login without a password."""
    head = struct.pack("<IIB23x", capabilities, 1 << 24, 45)
    return packet(head + user + b"\0" + b"\0" + b"test\0" + method + b"\0", 1)


class Client:
    """A connection that sees every byte."""

    def __init__(self, path):
        self.prepared = 0
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def take(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise SystemExit("the server has closed the connection")
            data += part
        return data

    def packet(self):
        """The bytes of the next packet."""
        head = self.take(4)
        return head + self.take(int.from_bytes(head[:3], "little"))

    def send(self, data):
        """The packet that answers this one."""
        self.socket.sendall(data)
        return self.packet()

    def login(self, capabilities):
        """The exchanges of a login."""
        exchanges = [(b"", self.packet()), *answered(self, login_of(capabilities))]
        if exchanges[-1][1][4] != 0:
            raise SystemExit(f"the login failed: {exchanges}")
        return exchanges

    def ask(self, command):
        """The request and the reply to a command, or to what makes one of the last prepared statement's
        number."""
        request = packet(command(self.prepared) if callable(command) else command)
        self.socket.sendall(request + packet(b"\x09"))
        reply = []
        while True:
            part = self.packet()
            if part[3] == 1 and part[4:].startswith(b"Uptime: "):
                break
            reply.append(part)
        if request[4] == 0x16 and reply[0][4] == 0:
            (self.prepared,) = struct.unpack("<I", reply[0][5:9])
        return request, b"".join(reply)


def line(mark, data):
    text = encode(data)
    # A blank at the end of a line is easily lost.
    return f"{mark} {text[:-1]}\\x20" if text.endswith(" ") else f"{mark} {text}".rstrip()


def write(name, head, exchanges):
    lines = [f"# {head}", ""]
    for request, reply in exchanges:
        lines += [line(">", request), line("<", reply)]
    (FOLDER / name).write_text("\n".join(lines) + "\n", "ascii")


def record_replies(server, name, capabilities, commands):
    with server.connect() as client:
        exchanges = client.login(capabilities)
        exchanges += [client.ask(command) for command in commands]
    write(name, f"capabilities {capabilities:#x}", exchanges)


def answered(client, request):
    """The exchanges of a login, in which the server may ask for another method. The password is empty."""
    exchanges = [(request, client.send(request))]
    while exchanges[-1][1][4] == 0xFE:
        answer = packet(b"", exchanges[-1][1][3] + 1)
        exchanges.append((answer, client.send(answer)))
    return exchanges


def record_logins(server):
    """Logins that the server answers by a question or an error, and changes of the user."""
    with server.connect() as client:
        exchanges = [(b"", client.packet())]
        exchanges += answered(client, login_of(PLAIN, b"mysql_clear_password"))
        for method in (NATIVE, b"mysql_clear_password"):
            exchanges += answered(client, packet(b"\x11root\0\0test\0\x2d\0" + method + b"\0"))
        exchanges += answered(client, packet(b"\x11stranger\0\0\0\x2d\0" + NATIVE + b"\0"))
    for request in (login_of(PLAIN, user=b"stranger"), packet(b"GET / HTTP/1.1\r\n\r\n", 1)):
        with server.connect() as client:
            exchanges.append((b"", client.packet()))
            exchanges += answered(client, request)
    write("logins.txt", "logins", exchanges)


def record_clients(server):
    """The first messages of real clients, which log in through a socket of this process."""
    path = server.path + ".relay"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    exchanges = []

    def relay():
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with server.connect() as upstream, client:
                    greeting = upstream.packet()
                    client.sendall(greeting)
                    request = client.recv(65536)
                    reply = upstream.send(request)
                    exchanges.extend([(b"", greeting), (request, reply)])
                    client.sendall(reply)

    threading.Thread(target=relay, daemon=True).start()
    for database in ([], ["test"]):
        command = ["mariadb", "--no-defaults", f"--socket={path}", "--user=root", "--execute=DO 1", *database]
        subprocess.run(command, capture_output=True, timeout=20)
    with contextlib.suppress(ImportError):
        import pymysql

        with contextlib.suppress(pymysql.err.MySQLError):
            pymysql.connect(unix_socket=path, user="root", database="test")
    listener.close()
    write("clients.txt", "the first messages of the mariadb client and of PyMySQL", exchanges)


def record_collations(server):
    """The numbers of collations, with their character sets."""
    table = "information_schema.collation_character_set_applicability"
    text = f"SELECT id, character_set_name FROM {table} ORDER BY id"
    command = [
        "mariadb",
        "--no-defaults",
        f"--socket={server.path}",
        "--user=root",
        "--batch",
        "--execute",
        text,
    ]
    told = subprocess.run(command, capture_output=True, check=True, text=True)
    (FOLDER / "collations.tsv").write_text("# " + told.stdout)


def record_all():
    with Server(databases.installed()) as server:
        for name, (capabilities, commands) in REPLIES.items():
            record_replies(server, name, capabilities, commands)
        record_logins(server)
        record_clients(server)
        record_collations(server)


def record_other(prefix):
    with Server(databases.other(prefix)) as server:
        for name, (capabilities, commands) in REPLIES.items():
            if name != "large.txt":
                record_replies(server, f"{prefix}-{name}", capabilities, commands)


if __name__ == "__main__":
    if sys.argv[1:]:
        record_other(*sys.argv[1:])
    else:
        record_all()
