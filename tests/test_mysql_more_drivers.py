"""Drivers of PHP, Ruby and Java use the address that splits as they use a server, and their reads are at the
reader. `make soak` runs them, as their languages are installed for them alone.

Each program is told what to do by a word. With `use` it does what services do at an address whose reads and
writes have the same data, and compares what it reads there with what it reads at the server itself. With
`where` it asks, at an address over two servers that know nothing of each other, which of them answers.
"""

import functools
import hashlib
import pathlib
import shutil
import subprocess

import pytest

from harness import SOAK
from harness.building import build
from harness.proxy import Proxy
from harness.split import PASSWORDS, connect, made, rows, schema, telling
from harness.tls import Authority

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(not SOAK, reason="drivers of PHP, Ruby and Java are part of `make soak`"),
]

USER = "app"
FOLDER = pathlib.Path(__file__).parent

TYPES = (
    "CREATE TABLE types (id INT PRIMARY KEY, a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d INT UNSIGNED,"
    " e BIGINT, f BIGINT UNSIGNED, g DECIMAL(30, 10), h FLOAT, i DOUBLE, j DATE, k TIME(6), l DATETIME(6),"
    " m TIMESTAMP(3) NULL, n YEAR, o CHAR(10), p VARCHAR(100), q TEXT, r VARBINARY(20), s BLOB, t BIT(10),"
    " u ENUM('x', 'y'), v SET('x', 'y', 'z'), w JSON, x POINT, y BOOLEAN, z LONGTEXT)"
    " DEFAULT CHARSET utf8mb4",
    "INSERT INTO types VALUES (1, -128, 65535, -8388608, 4294967295, -9223372036854775808,"
    " 18446744073709551615, -12345678901234567890.0123456789, 1.5, -1.25e300, '9999-12-31',"
    " '-22:59:59.123456', '2024-02-29 23:59:59.999999', '2038-01-19 03:14:07.999', 2155, 'äöü',"
    " '😀 ''\"\\\\', '', x'00ff27', x'fe00', b'1000000001', 'y', 'x,z', '{\"a\": [1, null]}', POINT(1, -2),"
    " TRUE, REPEAT('long €', 100000))",
    "INSERT INTO types (id) VALUES (2)",
    "INSERT INTO types VALUES (3, 0, 0, 0, 0, 0, 0, 0, 0, 0, '1000-01-01', '00:00:00', '1000-01-01 00:00:00',"
    " '1970-01-01 00:00:01', 1901, '', '', '', '', '', 0, 'x', '', '[]', POINT(0, 0), FALSE, '')",
    "CREATE PROCEDURE two() BEGIN SELECT 1; SELECT 2; END",
    "CREATE PROCEDURE adds(IN a INT, OUT b INT) SET b = a + 2",
)


def needs(program, *question):
    """Skips the test where a program is missing, or fails when it is asked this."""
    if not shutil.which(program) or subprocess.run([program, *question], capture_output=True).returncode:
        pytest.skip(f"{program} or its driver is missing: `sh scripts/prepare.sh soak` installs it")


def php(file, extension):
    def command(word, place):
        needs("php", "-r", f"exit(extension_loaded('{extension}') ? 0 : 1);")
        return ["php", FOLDER / "php-mysql" / file, word, *place.words]

    return command


def ruby(word, place):
    needs("ruby", "-r", "mysql2", "-e", "")
    return ["ruby", FOLDER / "ruby-mysql/main.rb", word, *place.words]


@functools.cache
def class_path(version):
    """The compiled programs of Java, and the jars that they use, whose bytes were pinned. MariaDB's driver is
    there in this version."""
    needs("javac", "-version")
    folder = build("java-mysql", ["mvn", "-q", "-B", "dependency:copy"], "jars").parent
    classes = folder / f"classes-{version}"
    path = [classes]
    for line in (folder / "jars.sha256").read_text().splitlines():
        digest, name = line.split()
        jar = folder / "jars" / name
        assert hashlib.sha256(jar.read_bytes()).hexdigest() == digest, name
        if not name.startswith("mariadb") or version in name:
            path.append(jar)
    path = ":".join(map(str, path))
    command = ["javac", "-Xlint:all,-path", "-Werror", "-proc:none", "-d", classes, "-cp", path]
    done = subprocess.run([*command, *folder.glob("*.java")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return path


def java(scheme, options="", kind="", tls=None, version="3.5.11"):
    """`tls`: the options of a client that speaks TLS with the proxy; the server itself does not."""

    def command(word, place):
        urls = [
            f"jdbc:{scheme}://{address}/{place.name}?{more.format(ca=place.ca)}&{options}"
            for address, more in (
                (place.address if tls is None else place.tls_address, tls or ""),
                (place.direct, "sslMode=disable" if tls and scheme == "mariadb" else ""),
            )
        ]
        words = ["java", "-Xmx256m", "-cp", class_path(version), "Main", kind + word]
        return [*words, *urls, USER, PASSWORDS[USER]]

    return command


VERIFIED = "sslMode=verify-ca&serverSslCert={ca}"
PREPARED = "useServerPrepStmts=true&cachePrepStmts=true"

DRIVERS = {
    "php-mysqli": php("mysqli.php", "mysqli"),
    "php-pdo": php("pdo.php", "pdo_mysql"),
    "ruby-mysql2": ruby,
    "mysql-connector-j": java("mysql"),
    "mysql-connector-j, TLS": java("mysql", tls=""),
    "mysql-connector-j, prepared": java("mysql", "useServerPrepStmts=true"),
    "mysql-connector-j, cursors": java("mysql", "useCursorFetch=true&defaultFetchSize=7"),
    "mysql-connector-j, several": java("mysql", "allowMultiQueries=true&rewriteBatchedStatements=true"),
    "mysql-connector-j, HikariCP": java("mysql", PREPARED, "pool-"),
    "mysql-connector-j, HikariCP without autocommit": java("mysql", PREPARED, "pool-without-autocommit-"),
    "mariadb-connector-j": java("mariadb"),
    "mariadb-connector-j 4, TLS": java("mariadb", tls=VERIFIED, version="4.0.0"),
    "mariadb-connector-j, prepared": java("mariadb", "useServerPrepStmts=true&useResetConnection=true"),
    "mariadb-connector-j, several": java("mariadb", "allowMultiQueries=true&useBulkStmts=true"),
    "mariadb-connector-j, HikariCP": java("mariadb", PREPARED, "pool-"),
    "mariadb-connector-j, HikariCP without autocommit": java("mariadb", PREPARED, "pool-without-autocommit-"),
}


@pytest.fixture(params=DRIVERS)
def driver(request):
    return DRIVERS[request.param]


class Place:
    """A proxy over two servers, or over one that is both. One of its listeners speaks TLS."""

    def __init__(self, io, folder, writer, reader):
        authority = Authority(folder)
        pair = authority.certificate("proxy")
        tls = {"certificate": str(pair.crt), "key": str(pair.key)}
        self._proxy = Proxy(made(folder, writer, reader, [{}, {"tls": tls}]), io, folder)
        self.address, self.tls_address = self._proxy.addresses
        self.ca, self.direct, self.name = authority.file, writer.address, None
        self.stop = self._proxy.stop
        # Both servers have told what clients are greeted with.
        for address in self._proxy.addresses:
            with connect(address) as client:
                rows(client, "SELECT 1")
                rows(client, "DO 1")

    @property
    def words(self):
        host, port = self.address.split(":")
        return [host, port, self.direct.split(":")[1], USER, PASSWORDS[USER], self.name]


@pytest.fixture(scope="module")
def one_server(io, mysql_pair, tmp_path_factory):
    place = Place(io, tmp_path_factory.mktemp("one"), mysql_pair[0], mysql_pair[0])
    yield place
    place.stop()


@pytest.fixture(scope="module")
def two_servers(io, mysql_pair, tmp_path_factory):
    place = Place(io, tmp_path_factory.mktemp("two"), *mysql_pair)
    yield place
    place.stop()


def run(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, timeout=60)
    said = (done.stdout + done.stderr).decode(errors="replace")
    assert done.returncode == 0 and not said, said


def test_a_driver_is_served_as_at_a_server(driver, one_server, mysql_pair):
    with schema(mysql_pair[0]) as one_server.name:
        mysql_pair[0].run(f"USE {one_server.name}", *TYPES)
        run(driver("use", one_server))


def look(driver, word, two_servers, mysql_pair):
    """Runs a program that asks who answers, and looks at which server it has written."""
    table = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)"
    with telling(mysql_pair, ("writer", "reader"), table) as two_servers.name:
        run(driver(word, two_servers))
        found = []
        for server in mysql_pair:
            with server.connect(database=two_servers.name) as direct:
                found.append([a for (a,) in rows(direct, "SELECT DISTINCT a FROM t ORDER BY a")])
        assert found == [[1, 2], []]


def test_reads_of_a_driver_are_at_the_reader_and_writes_at_the_writer(driver, two_servers, mysql_pair):
    look(driver, "where", two_servers, mysql_pair)


@pytest.mark.parametrize("name", ["mysql-connector-j", "mariadb-connector-j"])
def test_reads_of_a_driver_of_java_that_only_reads_are_at_the_reader(name, two_servers, mysql_pair):
    look(DRIVERS[name], "where-only-reads", two_servers, mysql_pair)
