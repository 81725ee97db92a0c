"""Certificates are exchanged while clients connect: what is shown is a pair that belongs together, whatever
the files hold meanwhile."""

import os
import threading
import time

import pytest

from harness import ports, until
from harness.proxy import config
from harness.tls import Authority, Pair, Secure

EXPIRY = "tls_certificate_expiry_timestamp_seconds"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def pairs(authority):
    """Two pairs, which end on different days."""
    return [authority.certificate(f"pair{number}", days=30 + number) for number in range(2)]


class Files:
    """The files that the proxy is told of."""

    def __init__(self, folder):
        self.pair = Pair(folder / "tls.crt", folder / "tls.key")

    def put(self, crt, key):
        for path, text in ((self.pair.crt, crt), (self.pair.key, key)):
            new = path.with_suffix(".new")
            new.write_bytes(text)
            new.rename(path)


def texts(pair):
    return pair.crt.read_bytes(), pair.key.read_bytes()


def serve(proxima, pair):
    made = config("embedded")
    made["listeners"][0]["tls"] = pair.listener()
    return proxima(made)


class Connecting:
    """Clients that connect all the time, and note the certificates that they are shown and what fails."""

    def __init__(self, proxy, context):
        self.shown, self.failed = [], []
        self._proxy, self._context, self._ends = proxy, context, threading.Event()
        self._threads = [threading.Thread(target=self._connect) for _ in range(2)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _connect(self):
        while not self._ends.is_set():
            try:
                with Secure(self._proxy.address, self._context) as client:
                    client.send(b"get k\r\n")
                    client.until(b"END\r\n")
                    self.shown.append(client.shown())
            except OSError as error:
                self.failed.append(error)

    def now(self):
        """The certificate that one who connects from now on is shown."""
        before = len(self.shown) + 4
        until(lambda: len(self.shown) > before, "clients connect")
        return self.shown[-1]


def test_files_are_exchanged_under_handshakes_in_any_order_and_state(proxima, authority, pairs, tmp_path):
    files = Files(tmp_path)
    (first_crt, first_key), (second_crt, second_key) = map(texts, pairs)
    files.put(first_crt, first_key)
    proxy = serve(proxima, files.pair)
    count = {"renewed": 0}

    def renewed():
        count["renewed"] += 1
        until(lambda: proxy.metric("tls_certificate_reloads_total") == count["renewed"], "it is in use")
        assert proxy.metric("tls_certificate_current", file=str(files.pair.crt)) == 1

    def refused(step, why=""):
        """What stood there for a moment in between may be refused as well, for another reason."""
        before = proxy.metric("tls_certificate_failures_total")
        step()
        until(lambda: proxy.metric("tls_certificate_failures_total") > before, "it is refused")
        until(lambda: why in proxy.log(), "the log says why")
        assert proxy.metric("tls_certificate_current", file=str(files.pair.crt)) == 0

    def fifo(path):
        path.unlink()
        os.mkfifo(path)

    def huge(path):
        with path.open("wb") as file:
            file.truncate(1 << 30)

    with Connecting(proxy, authority.context()) as clients:
        first = clients.now()
        end = proxy.metric(EXPIRY, file=str(files.pair.crt))
        assert abs(end - time.time() - 30 * 86400) < 3600
        # The key comes first, then the certificate, and the other way round.
        refused(lambda: files.pair.key.write_bytes(second_key), "not the key of")
        assert clients.now() == first
        files.pair.crt.write_bytes(second_crt)
        renewed()
        second = clients.now()
        assert second != first and proxy.metric(EXPIRY, file=str(files.pair.crt)) > end + 80_000
        refused(lambda: files.pair.crt.write_bytes(first_crt))
        assert clients.now() == second
        files.pair.key.write_bytes(first_key)
        renewed()
        assert clients.now() == first
        # What stands there meanwhile is no reason to change anything, and makes nobody wait.
        for broken in (
            lambda path: path.write_bytes(first_crt[: len(first_crt) // 2]),
            lambda path: path.write_bytes(b""),
            huge,
            lambda path: path.unlink(),
            lambda path: path.mkdir(),
        ):
            refused(lambda broken=broken: broken(files.pair.crt))
            assert clients.now() == first
            if files.pair.crt.is_dir():
                files.pair.crt.rmdir()
        files.put(second_crt, second_key)
        renewed()
        assert clients.now() == second
        refused(lambda: fifo(files.pair.key), "a FIFO")
        assert clients.now() == second
        files.pair.key.unlink()
        files.put(first_crt, first_key)
        renewed()
        assert clients.now() == first
    assert not clients.failed, clients.failed[:3]
    assert set(clients.shown) == {first, second}


@pytest.mark.either_io
def test_links_of_kubernetes_are_followed(proxima, authority, pairs, tmp_path):
    """A mounted Secret is a link to a folder, which is exchanged as a whole."""
    for number, pair in enumerate(pairs):
        version = tmp_path / f"..{number}"
        version.mkdir()
        for name, text in zip(("tls.crt", "tls.key"), texts(pair), strict=True):
            (version / name).write_bytes(text)
    data = tmp_path / "..data"
    data.symlink_to("..0")
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    proxy = serve(proxima, Pair(tmp_path / "tls.crt", tmp_path / "tls.key"))
    with Connecting(proxy, authority.context()) as clients:
        first = clients.now()
        for number in (1, 0, 1):
            new = tmp_path / "..new"
            new.symlink_to(f"..{number}")
            new.rename(data)
            until(lambda number=number: (clients.now() == first) == (number == 0), "it is exchanged")
    assert not clients.failed, clients.failed[:3]


@pytest.mark.either_io
def test_start_and_reload_refuse_files_that_cannot_be_used_and_name_them(proxima, command, pairs, tmp_path):
    files = Files(tmp_path)
    files.put(*texts(pairs[0]))
    proxy = serve(proxima, files.pair)
    bad = config("embedded", admin=proxy.admin)
    bad["listeners"][0] = {
        **proxy.config["listeners"][0],
        "tls": {"certificate": "none.crt", "key": "none.key"},
    }
    proxy.write(bad)
    status, text = proxy.reload()
    assert status == 422 and "none.crt" in text
    checked = command("check", str(proxy.file))
    assert checked.returncode != 0 and "none.crt" in checked.stdout + checked.stderr
    mixed = {"certificate": str(pairs[0].crt), "key": str(pairs[1].key)}
    proxy.write({**bad, "listeners": [{**bad["listeners"][0], "tls": mixed}]})
    status, text = proxy.reload()
    assert status == 422 and "this is not the key of" in text
    proxy.write(proxy.config)
    assert proxy.reload()[0] == 200


@pytest.mark.either_io
def test_certificate_of_a_server_is_trusted_as_soon_as_its_authority_is(
    proxima, redis_server, authority, pairs, tmp_path
):
    """The authority of a pool is exchanged, while its server keeps its certificate."""
    secure = ports.address()
    crt, key = pairs[0].crt, pairs[0].key
    options = (
        "--tls-port",
        secure.rsplit(":", 1)[1],
        "--tls-cert-file",
        str(crt),
        "--tls-key-file",
        str(key),
    )
    trust = ("--tls-ca-cert-file", str(authority.file), "--tls-auth-clients", "no")
    redis_server(options=(*options, *trust))
    other = Authority(tmp_path, "other")
    ca = tmp_path / "trusted.crt"
    ca.write_bytes(other.file.read_bytes())
    made = config("p", {"p": {"servers": [secure], "protocol": "redis", "tls": {"ca": str(ca)}}})
    made["pools"]["p"]["eject"] = {"failures": 0}
    made["listeners"][0]["protocol"] = "redis"
    proxy = proxima(made)

    def answer():
        with proxy.raw() as client:
            client.send(b"PING\r\nGET k\r\n")
            client.until(b"\r\n")
            return client.until(b"\r\n")

    assert b"certificate" in answer()
    ca.write_bytes(other.file.read_bytes() + authority.file.read_bytes())
    until(lambda: answer() == b"$-1\r\n", "the server is trusted")
