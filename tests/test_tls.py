"""TLS with clients and with servers, as users have it: real clients, real servers, real certificates."""

import contextlib
import os
import re
import shutil
import ssl
import subprocess

import pymemcache
import pytest
import redis

from harness import PATIENCE, ports, until
from harness.balancer import HAPROXY
from harness.program import Program
from harness.proxy import config
from harness.raw import Closed, Raw
from harness.redis import array
from harness.tls import OPENSSL, Authority, Naming, Secure

VALUE = os.urandom(64).hex()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    folder = tmp_path_factory.mktemp("authority")
    for above in (folder, *folder.parents[:3]):
        # Servers of another user read the files.
        above.chmod(0o755)
    return Authority(folder)


@pytest.fixture(scope="module")
def pair(authority):
    """The certificate of this machine."""
    return authority.certificate("here")


@pytest.fixture
def secure_memcached(memcached, pair):
    options = ("-Z", "-o", f"ssl_chain_cert={pair.crt},ssl_key={pair.key}")
    return memcached(options=options)


@pytest.fixture
def secure_redis(redis_server, authority, pair):
    """Its plain port is at `address`, the other one at `secure`. It asks for a certificate, too."""
    secure = ports.address()
    files = ("--tls-cert-file", str(pair.crt), "--tls-key-file", str(pair.key))
    trust = ("--tls-ca-cert-file", str(authority.file))
    server = redis_server(options=("--tls-port", secure.rsplit(":", 1)[1], *files, *trust))
    server.secure = secure
    return server


def over(route, servers, pair=None, protocol="memcached", **tls):
    """A configuration with one listener, which has TLS if `pair` is given."""
    # A handshake takes long on a machine that is busy with other tests.
    patient = {"timeout": "20s", "connect_timeout": "20s"}
    pools = {"p": {"servers": servers, "protocol": protocol, **patient, **({"tls": tls} if tls else {})}}
    made = config(route, pools if route == "p" else None)
    made["listeners"][0]["protocol"] = protocol
    if pair:
        made["listeners"][0]["tls"] = pair.listener()
    return made


def split(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_client_of_memcached_and_its_server_speak_tls_on_both_sides(
    proxima, secure_memcached, authority, pair, version
):
    proxy = proxima(over("p", [secure_memcached.address], pair, ca=str(authority.file)))
    client = pymemcache.Client(split(proxy.address), tls_context=authority.context(version))
    client.set("k", VALUE)
    assert client.get("k") == VALUE.encode()
    large = os.urandom(900_000)
    client.set("large", large)
    assert client.get("large") == large
    assert client.get_many(["k", "large", "none"]) == {"k": VALUE.encode(), "large": large}
    handshakes = proxy.metric("tls_handshakes_total", side="clients", result="full")
    assert handshakes == 1 and proxy.metric("tls_handshakes_total", side="servers", result="full") > 0


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_client_of_redis_and_its_server_speak_tls_and_the_server_knows_the_proxy(
    proxima, secure_redis, authority, pair, version
):
    tls = {"ca": str(authority.file), **pair.listener()}
    proxy = proxima(over("p", [secure_redis.secure], pair, "redis", **tls))
    host, port = split(proxy.address)
    context = {"ssl": True, "ssl_ca_certs": str(authority.file), "ssl_min_version": ssl.TLSVersion.TLSv1_2}
    if version == "1.2":
        context["ssl_ciphers"] = "ECDHE+AESGCM"
    client = redis.Redis(host, port, **context)
    assert client.set("k", VALUE) and client.get("k") == VALUE.encode()
    with client.pipeline(transaction=True) as transaction:
        assert transaction.incr("n").incr("n").execute() == [1, 2]
    with client.pubsub() as heard:
        heard.subscribe("news")
        assert heard.get_message(timeout=PATIENCE)["type"] == "subscribe"
        client.publish("news", "now")
        assert heard.get_message(timeout=PATIENCE)["data"] == b"now"
    assert secure_redis.ask("GET", "k").endswith(VALUE.encode() + b"\r\n")


@pytest.mark.either_io
@pytest.mark.skipif(not shutil.which("redis-cli"), reason="scripts/prepare.sh installs redis-cli")
def test_command_line_of_redis_speaks_tls(proxima, authority, pair):
    proxy = proxima(over("embedded", [], pair, "redis"))
    port = proxy.address.rsplit(":", 1)[1]
    command = ["redis-cli", "--tls", "--cacert", authority.file, "-h", "localhost", "-p", port]
    for words, answer in ((["SET", "k", VALUE], "OK"), (["GET", "k"], VALUE)):
        ran = subprocess.run([*command, *words], capture_output=True, text=True, timeout=PATIENCE)
        assert (ran.stdout.strip(), ran.returncode) == (answer, 0), ran.stderr


def s_client(proxy, authority, *arguments, say="quit\r\n"):
    command = [
        OPENSSL,
        "s_client",
        "-ign_eof",
        "-connect",
        proxy.address,
        "-CAfile",
        authority.file,
        *arguments,
    ]
    ran = subprocess.run(command, input=say, capture_output=True, text=True, timeout=PATIENCE)
    return ran.stdout + ran.stderr


@pytest.mark.either_io
@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_session_goes_on_at_any_worker_and_nothing_is_early(proxima, authority, pair, version, tmp_path):
    proxy = proxima(over("embedded", [], pair))
    session = tmp_path / "session"
    known = ("-verify_return_error", "-verify_hostname", "localhost")
    # What it waits for has come behind the ticket.
    first = s_client(proxy, authority, version, *known, "-sess_out", session, say="get k\r\nquit\r\n")
    assert "Verification: OK" in first and "New, TLSv1" in first, first
    for _ in range(4):
        again = s_client(proxy, authority, version, *known, "-sess_in", session)
        assert "Reused, TLSv1" in again, again
    assert "Max Early Data: 0" in first or version == "-tls1_2", first
    assert proxy.metric("tls_handshakes_total", side="clients", result="resumed") == 4


@pytest.mark.either_io
@pytest.mark.parametrize("version", ["-tls1", "-tls1_1"])
def test_old_versions_are_refused_and_counted(proxima, authority, pair, version):
    proxy = proxima(over("embedded", [], pair))
    said = s_client(proxy, authority, version, "-cipher", "DEFAULT@SECLEVEL=0")
    assert re.search("alert (protocol version|handshake failure)", said), said
    refused = {"side": "clients", "result": "incompatible"}
    until(lambda: proxy.metric("tls_handshakes_total", **refused) == 1, "it is counted")


@pytest.mark.either_io
@pytest.mark.skipif(not HAPROXY, reason="scripts/prepare.sh installs haproxy")
def test_haproxy_before_a_listener_and_before_a_server_speaks_tls(
    proxima, memcached, authority, pair, folder, cleanup
):
    front, back = ports.address(), ports.address()
    both = folder / "both.pem"
    both.write_text(pair.crt.read_text() + pair.key.read_text())
    server = memcached()
    proxy = proxima(over("p", [back], pair, ca=str(authority.file), name="localhost"))
    file = folder / "haproxy.cfg"
    file.write_text(
        "defaults\n    mode tcp\n    timeout connect 5s\n    timeout client 60s\n    timeout server 60s\n"
        f"listen front\n    bind {front}\n    server proxy {proxy.address} ssl verify required "
        f"ca-file {authority.file} verifyhost localhost\n"
        f"listen back\n    bind {back} ssl crt {both}\n    server memcached {server.address}\n"
    )

    class HAProxy(Program):
        def answers(self):
            Raw(front).close()
            return True

    cleanup.callback(HAProxy([HAPROXY, "-db", "-f", str(file)], front).stop)
    with Raw(front) as client:
        client.send(b"set k 0 0 1\r\nx\r\nget k\r\n")
        assert client.until(b"END\r\n") == b"STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n"
    assert server.get("k") == b"x"


TRUST = {
    "the name in the address": ("localhost", {}, True),
    "another name": ("localhost", {"name": "elsewhere.test"}, False),
    "an address that is in the certificate": ("127.0.0.1", {}, True),
    "any name of the authority": ("localhost", {"name": "elsewhere.test", "verify": "authority"}, True),
    "another authority": ("localhost", {"ca": "other"}, False),
    "another authority, whatever the name": ("localhost", {"ca": "other", "verify": "authority"}, False),
    "anybody": ("localhost", {"ca": "other", "name": "elsewhere.test", "verify": "none"}, True),
}


@pytest.mark.either_io
@pytest.mark.parametrize("case", TRUST, ids=[name.replace(" ", "-") for name in TRUST])
def test_server_is_asked_only_if_its_certificate_proves_what_the_pool_says(
    proxima, authority, pair, cleanup, tmp_path, case
):
    host, tls, is_trusted = TRUST[case]
    server = Naming(pair)
    cleanup.callback(server.stop)
    ca = Authority(tmp_path).file if tls.get("ca") else authority.file
    address = f"{host}:{server.address.rsplit(':', 1)[1]}"
    made = over("p", [address], None, "redis", **{**tls, "ca": str(ca)})
    proxy = proxima(made)
    with Raw(proxy.address) as client:
        client.send(array("SET", "k", "v"))
        answer = client.until(b"\r\n")
    assert (answer == b"+OK\r\n") == is_trusted, answer
    name = tls.get("name", host)
    # An address is no name: it is not asked for by it.
    assert set(server.names) == {None if name == "127.0.0.1" else name}
    if not is_trusted:
        assert b"TLS" in answer and b"certificate" in answer
        failed = {"side": "servers", "result": "certificate"}
        assert proxy.metric("tls_handshakes_total", **failed) > 0
        # The alert says why before the connection ends.
        until(lambda: any("alert" in error for error in server.errors), "the server is told")
        until(lambda: proxy.member(address)["state"] == "ejected", "it is ejected")
    assert ("verify: none" in proxy.log()) == (tls.get("verify") == "none")


def test_goodbye_is_said_and_one_is_told_from_a_cut(proxima, authority, pair):
    proxy = proxima(over("embedded", [], pair))
    context = authority.context()
    with Secure(proxy.address, context) as client:
        # The other end's goodbye is an end of file, a cut would be an error.
        client.send(b"get k\r\nquit\r\n")
        assert client.until(b"END\r\n") == b"END\r\n"
        assert client.sock.recv(1) == b""
    with Secure(proxy.address, context) as client:
        # Requests before our goodbye are answered, and then comes the other end's.
        client.send(b"get k\r\n" * 3)
        assert client.until(b"END\r\n" * 3) and client.sock.unwrap()
    assert proxy.metric("tls_cuts_total", side="clients") == 0
    with Secure(proxy.address, context) as client:
        client.send(b"get k\r\n")
        client.until(b"END\r\n")
    until(lambda: proxy.metric("tls_cuts_total", side="clients") == 1, "the cut is counted")


def test_requests_of_a_client_that_says_goodbye_behind_them_are_served(proxima, authority, pair):
    proxy = proxima(over("embedded", [], pair))
    with Raw(proxy.address) as wire:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = authority.context().wrap_bio(incoming, outgoing, server_hostname="localhost")

        def until_done(step):
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    wire.send(outgoing.read())
                    incoming.write(wire.sock.recv(1 << 16))

        until_done(client.do_handshake)
        client.write(b"set k 0 0 1\r\nx\r\n" + 5_000 * b"get k\r\n")
        with pytest.raises(ssl.SSLWantReadError):
            client.unwrap()
        answer = b""
        # It ends with the other end's goodbye.
        with contextlib.suppress(ssl.SSLZeroReturnError):
            while piece := until_done(client.read):
                answer += piece
    assert answer == b"STORED\r\n" + 5_000 * b"VALUE k 0 1\r\nx\r\nEND\r\n"


def test_replies_that_a_turn_has_gathered_leave_in_as_few_records_as_hold_them(proxima, authority, pair):
    proxy = proxima(over("embedded", [], pair))
    with Raw(proxy.address) as wire:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = authority.context("1.3").wrap_bio(incoming, outgoing, server_hostname="localhost")
        heard = b""

        def until_done(step):
            nonlocal heard
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    wire.send(outgoing.read())
                    received = wire.sock.recv(1 << 16)
                    heard += received
                    incoming.write(received)

        until_done(client.do_handshake)
        client.write(b"get k\r\n")
        assert until_done(client.read) == b"END\r\n"
        heard = b""
        client.write(500 * b"get k\r\n")
        answer = b""
        while len(answer) < 500 * 5:
            answer += until_done(client.read)
    assert answer == 500 * b"END\r\n"
    records = 0
    while heard:
        records += 1
        heard = heard[5 + int.from_bytes(heard[3:5]) :]
    # The requests are 3,500 bytes, which may come in several pieces.
    assert records <= 4


PLAIN = {
    "memcached": b"get k\r\n",
    "four bytes": b"mn\r\n",
    "redis": b"*1\r\n$4\r\nPING\r\n",
    "http": b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
    "old hello": b"\x80\x2e\x01\x03\x01" + bytes(40),
}


@pytest.mark.parametrize("case", PLAIN, ids=[name.replace(" ", "-") for name in PLAIN])
def test_plain_bytes_at_a_listener_with_tls_get_an_alert_and_are_counted(proxima, pair, case):
    proxy = proxima(over("embedded", [], pair))
    with Raw(proxy.address) as client:
        client.send(PLAIN[case])
        with pytest.raises(Closed) as closed:
            client.until(b"nothing")
    assert closed.value.args[0] == bytes([21, 3, 3, 0, 2, 2, 10])
    until(lambda: proxy.metric("tls_handshakes_total", side="clients", result="plain") == 1, "it is counted")


@pytest.mark.parametrize("protocol", ["memcached", "redis"])
def test_tls_at_a_plain_listener_is_no_hang(proxima, authority, protocol):
    proxy = proxima(over("embedded", [], None, protocol))
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        Secure(proxy.address, authority.context())


@pytest.mark.parametrize("protocol", ["memcached", "redis"])
def test_tls_at_a_plain_server_and_the_reverse_are_errors_that_say_so(
    proxima, memcached, redis_server, secure_memcached, secure_redis, authority, pair, protocol
):
    ask, plain, secure = {
        "memcached": (b"get k\r\n", memcached, secure_memcached.address),
        "redis": (array("GET", "k"), redis_server, secure_redis.secure),
    }[protocol]
    proxy = proxima(over("p", [plain().address], None, protocol, ca=str(authority.file)))
    with Raw(proxy.address) as client:
        client.send(ask)
        answer = client.until(b"\r\n")
    # A server that waits for the end of a line is late, others answer what is no TLS.
    assert re.search(b"TLS|timeout|reset|closed", answer), answer
    proxy = proxima(over("p", [secure], None, protocol))
    with Raw(proxy.address) as client:
        client.send(ask)
        answer = client.until(b"\r\n")
    assert re.match(b"SERVER_ERROR|-", answer), answer


@pytest.mark.either_io
def test_probe_of_an_ejected_server_speaks_tls(proxima, secure_memcached, authority, pair):
    made = over("p", [secure_memcached.address], pair, ca=str(authority.file))
    made["pools"]["p"]["eject"] = {"probe_initial": "50ms"}
    proxy = proxima(made)
    secure_memcached.kill()
    with Secure(proxy.address, authority.context()) as client:
        client.send(b"get k\r\n")
        assert client.until(b"\r\n").startswith(b"SERVER_ERROR")
    secure_memcached.start()
    until(lambda: proxy.member(secure_memcached.address)["state"] == "up", "the probe finds it well")


def test_tls_is_switched_on_by_a_reload_for_clients_and_servers_and_no_request_fails(
    proxima, redis_server, authority, pair
):
    secure = ports.address()
    files = ("--tls-cert-file", str(pair.crt), "--tls-key-file", str(pair.key))
    more = ("--tls-ca-cert-file", str(authority.file), "--tls-auth-clients", "no")
    server = redis_server(options=("--tls-port", secure.rsplit(":", 1)[1], *files, *more))
    made = over("p", [server.address], None, "redis")
    proxy = proxima(made)
    client = Raw(proxy.address)

    def asks(client, count=50):
        client.send(count * array("INCR", "n"))
        return [client.until(b"\r\n")[:1] for _ in range(count)] == count * [b":"]

    assert asks(client)
    made["pools"]["p"] |= {"servers": [secure], "tls": {"ca": str(authority.file)}}
    made["listeners"][0]["tls"] = pair.listener()
    proxy.write(made)
    assert proxy.reload()[0] == 200
    # Who was there before goes on plainly, and is served by the new connections.
    assert asks(client)
    with Secure(proxy.address, authority.context()) as other:
        assert asks(other)
    handshakes = {"side": "servers", "result": "full"}
    before = proxy.metric("tls_handshakes_total", **handshakes)
    assert before > 0
    # Another name is asked for: connections are made anew, though the server is the same.
    made["pools"]["p"]["tls"]["name"] = "localhost"
    proxy.write(made)
    assert proxy.reload()[0] == 200

    def are_anew():
        assert asks(client)
        full = proxy.metric("tls_handshakes_total", **handshakes)
        return full + proxy.metric("tls_handshakes_total", side="servers", result="resumed") > before

    until(are_anew, "there are new connections")
    client.close()
