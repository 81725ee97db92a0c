"""Drivers, what is built upon them, and the programs of MariaDB use the address that splits as they use a
server."""

import datetime
import decimal
import os
import shutil
import subprocess
import sys

import pymysql
import pytest

from harness.building import build
from harness.split import PASSWORDS, connect, rows, schema, value

pytestmark = pytest.mark.either_io

ROW = (
    7,
    "äöü€😀 'quoted' \"twice\" back\\slash %s ?",
    decimal.Decimal("123.45"),
    datetime.datetime(2024, 2, 29, 12, 30, 15, 123456),
    b"\x00\xff\xfe'\\",
    None,
)
TABLE = (
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(100), c DECIMAL(10, 2),"
    " d DATETIME(6), e BLOB, f INT) DEFAULT CHARSET utf8mb4"
)
INSERT = "INSERT INTO t (a, b, c, d, e, f) VALUES (%s, %s, %s, %s, %s, %s)"
SELECT = "SELECT a, b, c, d, e, f FROM t"


@pytest.fixture
def place(twins):
    """What a driver is told of the proxy, as keywords. Reads and writes find the same data."""
    host, port = twins.address.split(":")
    with twins.schema() as name:
        yield {
            "host": host,
            "port": int(port),
            "user": "app",
            "password": PASSWORDS["app"],
            "database": name,
        }


def use(connection, **cursor):
    """Does what services do with a driver of the usual interface."""
    with connection.cursor(**cursor) as cursor:
        cursor.execute(TABLE)
        cursor.execute(INSERT, ROW)
        assert cursor.lastrowid == 1 and cursor.rowcount == 1
        connection.commit()
        cursor.execute(SELECT)
        assert [tuple(row) for row in cursor.fetchall()] == [ROW]
        cursor.executemany(INSERT, [(n, *ROW[1:]) for n in range(50)])
        assert cursor.rowcount == 50
        connection.rollback()
        cursor.execute("SELECT COUNT(*) FROM t")
        assert cursor.fetchone()[0] == 1
        connection.commit()
        cursor.execute(SELECT + " WHERE a = %s AND b = %s", ROW[:2])
        assert [tuple(row) for row in cursor.fetchall()] == [ROW]
        cursor.execute("UPDATE t SET a = a + %s", (1,))
        connection.commit()
        cursor.execute("SELECT a FROM t")
        assert cursor.fetchall()[0][0] == 8
        connection.commit()


@pytest.mark.parametrize("autocommit", [None, False, True])
@pytest.mark.parametrize("kind", [pymysql.cursors.Cursor, pymysql.cursors.SSCursor])
def test_pymysql(place, autocommit, kind):
    with pymysql.connect(**place, autocommit=autocommit) as connection:
        if autocommit is False:
            with connection.cursor(kind) as cursor:
                cursor.execute("SELECT seq FROM seq_1_to_30000")
                assert sum(n for (n,) in cursor.fetchall()) == 450015000
            use(connection)
        connection.ping(reconnect=False)
        connection.select_db(place["database"])
        with connection.cursor() as cursor:
            cursor.execute("SELECT DATABASE()")
            assert cursor.fetchone() == (place["database"],)
            with pytest.raises(pymysql.err.ProgrammingError):
                cursor.execute("SELECT * FROM missing")


@pytest.mark.parametrize("options", [{}, {"prepared": True}, {"buffered": True}, {"raw": False}], ids=str)
def test_mysql_connector(place, options):
    connector = pytest.importorskip("mysql.connector")
    connection = connector.connect(**place, use_pure=True, charset="utf8mb4", collation="utf8mb4_general_ci")
    with connection:
        use(connection, **options)
        connection.cmd_reset_connection()
        connection.cmd_change_user(place["user"], place["password"], place["database"])
        with connection.cursor() as cursor:
            cursor.execute("SELECT CURRENT_USER()")
            assert cursor.fetchall() == [("app@%",)]


@pytest.mark.parametrize("method", ["mysql_native_password", "caching_sha2_password"])
def test_mysql_connector_logs_in_by_either_method(place, method):
    connector = pytest.importorskip("mysql.connector")
    options = {"use_pure": True, "charset": "utf8mb4", "collation": "utf8mb4_general_ci"}
    with (
        connector.connect(**place, auth_plugin=method, **options) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]
    with pytest.raises(connector.Error) as caught:
        connector.connect(**{**place, "password": "wrong"}, auth_plugin=method, **options)
    assert caught.value.errno == 1045


def test_mysqlclient(place):
    mysqldb = pytest.importorskip("MySQLdb")
    connection = mysqldb.connect(**place, charset="utf8mb4")
    try:
        use(connection)
    finally:
        connection.close()


@pytest.mark.parametrize(
    "name, module",
    [("pymysql", "pymysql"), ("mysqldb", "MySQLdb"), ("mysqlconnector", "mysql.connector")],
    ids=["pymysql", "mysqldb", "mysqlconnector"],
)
def test_sqlalchemy(place, name, module):
    alchemy = pytest.importorskip("sqlalchemy")
    pytest.importorskip(module)
    from sqlalchemy import orm

    url = alchemy.URL.create(
        f"mysql+{name}", place["user"], place["password"], place["host"], place["port"], place["database"]
    )
    engine = alchemy.create_engine(url, pool_size=3, pool_pre_ping=True)

    class Base(orm.DeclarativeBase):
        pass

    class Person(Base):
        __tablename__ = "person"
        id = alchemy.Column(alchemy.Integer, primary_key=True)
        name = alchemy.Column(alchemy.String(50))
        born = alchemy.Column(alchemy.DateTime)

    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add_all(Person(name=f"näme {n}", born=datetime.datetime(2000, 1, n + 1)) for n in range(20))
        session.commit()
        found = session.scalars(alchemy.select(Person).order_by(Person.id)).all()
        assert [person.name for person in found] == [f"näme {n}" for n in range(20)]
        found[0].name = "another"
        session.flush()
        session.rollback()
        assert session.get(Person, 1).name == "näme 0"
        with session.begin_nested():
            session.delete(session.get(Person, 2))
        session.commit()
        assert session.scalar(alchemy.select(alchemy.func.count()).select_from(Person)) == 19
    assert alchemy.inspect(engine).get_table_names() == ["person"]
    options = engine.execution_options(isolation_level="AUTOCOMMIT")
    with options.connect() as connection:
        assert connection.scalar(alchemy.text("SELECT COUNT(*) FROM person")) == 19
    with engine.execution_options(isolation_level="SERIALIZABLE").connect() as connection:
        assert connection.scalar(alchemy.text("SELECT @@tx_isolation")) == "SERIALIZABLE"
    Base.metadata.drop_all(engine)
    engine.dispose()


@pytest.mark.parametrize("driver", ["pymysql", "mysqlconnector"])
def test_a_pool_of_sqlalchemy_gives_its_next_user_nothing_of_the_one_before(place, driver):
    """Two pools have one connection each, and the same account. Uses of one pool take turns at that
    connection, and of neither pool anything reaches the other one."""
    alchemy = pytest.importorskip("sqlalchemy")
    pytest.importorskip({"pymysql": "pymysql", "mysqlconnector": "mysql.connector"}[driver])
    url = alchemy.URL.create(
        f"mysql+{driver}", place["user"], place["password"], place["host"], place["port"], place["database"]
    )
    pools = [alchemy.create_engine(url, pool_size=1, max_overflow=0) for _ in range(2)]
    text = alchemy.text
    with pools[0].begin() as connection:
        connection.execute(text("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)"))
    for number in range(5):
        mine, others = pools[number % 2], pools[(number + 1) % 2]
        with mine.connect() as connection:
            connection.execute(text("INSERT INTO t (a) VALUES (1)"))
            connection.execute(text("SET @own = 'mine'"))
            connection.execute(text("CREATE TEMPORARY TABLE IF NOT EXISTS own (id INT)"))
            assert connection.scalar(text("SELECT LAST_INSERT_ID()")) > 0
            # It is returned without a commit.
        options = mine.execution_options(isolation_level="SERIALIZABLE")
        with options.connect() as connection:
            assert connection.scalar(text("SELECT @@tx_isolation")) == "SERIALIZABLE"
        for pool in (mine, others):
            with pool.connect() as connection:
                assert connection.scalar(text("SELECT @@in_transaction")) == 0
                assert connection.scalar(text("SELECT @@tx_isolation")) == "REPEATABLE-READ"
                assert connection.scalar(text("SELECT COUNT(*) FROM t")) == 0
        if number == 0:
            with others.connect() as connection:
                assert connection.scalar(text("SELECT @own")) is None
                assert connection.scalar(text("SELECT LAST_INSERT_ID()")) == 0
                with pytest.raises(alchemy.exc.ProgrammingError):
                    connection.execute(text("SELECT * FROM own"))
    for pool in pools:
        pool.dispose()


PYMYSQL = """
import pymysql
pymysql.version_info = (2, 2, 7, "final", 0)
pymysql.install_as_MySQLdb()
"""
DJANGO = """
import sys
import django
from django.conf import settings
host, port, user, password, name = sys.argv[1:]
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.mysql", "HOST": host, "PORT": port, "USER": user,
                           "PASSWORD": password, "NAME": name, "OPTIONS": {"charset": "utf8mb4"}}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"], USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
)
django.setup()
from django.core.management import call_command
from django.db import connection, transaction
from django.contrib.auth.models import Group, User
call_command("migrate", verbosity=0)
for n in range(20):
    User.objects.create(username=f"user {n} äöü")
group = Group.objects.create(name="group")
group.user_set.set(User.objects.filter(id__lte=5))
assert User.objects.filter(groups=group).count() == 5
try:
    with transaction.atomic():
        User.objects.all().delete()
        assert User.objects.count() == 0
        raise KeyError
except KeyError:
    pass
assert User.objects.count() == 20
with transaction.atomic():
    locked = User.objects.select_for_update().get(id=1)
    locked.username = "changed"
    locked.save()
assert User.objects.get(id=1).username == "changed"
User.objects.bulk_create([User(username=f"bulk {n}") for n in range(50)])
assert User.objects.filter(username__startswith="bulk").count() == 50
user, made = User.objects.get_or_create(username="bulk 1")
assert not made
print(sorted(connection.introspection.table_names())[0])
"""


@pytest.mark.parametrize("driver", ["MySQLdb", "pymysql"])
def test_django(place, tmp_path, driver):
    pytest.importorskip("django")
    pytest.importorskip(driver)
    script = tmp_path / "script.py"
    script.write_text((PYMYSQL if driver == "pymysql" else "") + DJANGO)
    words = [str(place[one]) for one in ("host", "port", "user", "password", "database")]
    done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "auth_group\n"


def test_go_sql_driver(place):
    program = build("go-mysql", ["go", "build", "-o", "go-mysql", "."], "go-mysql")
    address = "{user}:{password}@tcp({host}:{port})/{database}".format(**place)
    done = subprocess.run([program, address], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_libraries_of_node(place):
    install = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"]
    program = build("node-mysql", install, "node_modules").parent / "main.js"
    words = [str(place[one]) for one in ("host", "port", "user", "password", "database")]
    for library in ("mysql2", "mariadb"):
        done = subprocess.run(["node", program, library, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (library, done.stderr)


def run(program, place, *arguments, text=None):
    """Runs a program of MariaDB."""
    if not shutil.which(program):
        pytest.skip(f"{program} is missing: scripts/prepare.sh installs it")
    words = ["--no-defaults", f"-h{place['host']}", f"-P{place['port']}", f"-u{place['user']}"]
    env = {**os.environ, "MYSQL_PWD": place["password"]}
    done = subprocess.run(
        [program, *words, *arguments], input=text, capture_output=True, text=True, timeout=60, env=env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_client_of_mariadb(place):
    name = place["database"]
    text = "CREATE TABLE t (a INT, b TEXT);\nINSERT INTO t VALUES (1, 'ä'), (2, NULL);\nSELECT * FROM t;\n"
    assert run("mariadb", place, name, text=text) == "a\tb\n1\tä\n2\tNULL\n"
    assert "2 rows in set" in run("mariadb", place, "-vvv", name, "-e", "SELECT * FROM t")
    assert run("mariadb", place, "-N", name, "-e", "SELECT 1; SELECT 2") == "1\n2\n"
    assert run("mariadb", place, "--table", name, "-e", "status").count(name)
    routine = (
        "delimiter //\nCREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END//\ndelimiter ;\nCALL p();\n"
        "warnings;\nSELECT 1/0;\n"
    )
    assert "Division by 0" in run("mariadb", place, name, text=routine)
    assert "mysqld is alive" in run("mariadb-admin", place, "ping")


def test_a_dump_is_the_servers_own_and_is_restored(place, twins):
    name = place["database"]
    with connect(twins.address, database=name) as client:
        rows(client, TABLE)
        with client.cursor() as cursor:
            cursor.executemany(INSERT, [(n, *ROW[1:]) for n in range(2000)])
        rows(client, "CREATE VIEW v AS SELECT a FROM t")
        rows(client, "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.f = NULL")
        rows(client, "CREATE PROCEDURE p() SELECT 1")
        options = ["--routines", "--triggers", "--skip-dump-date", "--hex-blob", "--single-transaction"]
        dumped = run("mariadb-dump", place, *options, name)
        host, port = twins.behind.address.split(":")
        direct = run("mariadb-dump", {**place, "host": host, "port": port}, *options, name)
        assert dumped == direct
        locked = run("mariadb-dump", place, "--lock-tables", "--hex-blob", name)
        assert "INSERT INTO `t`" in locked
        with schema(twins.behind) as other:
            run("mariadb", place, other, text=dumped)
            asks = "SELECT COUNT(*), MD5(GROUP_CONCAT(MD5(CONCAT_WS(',', a, b, c, d, HEX(e), f)))) FROM {}.t"
            assert rows(client, asks.format(name)) == rows(client, asks.format(other))
            assert value(client, f"SELECT COUNT(*) FROM {other}.v") == 2000
