"""TLS beside the listeners and servers of our own format: the admin port, discovery, a fleet's channels, and
the doors of other programs."""

import http.client
import json
import ssl
import urllib.request

import pytest

from harness import PATIENCE, ports, until
from harness.endpoint import Endpoint
from harness.fleet import Fleet
from harness.mcrouter import Router, written
from harness.proxy import BINARY, Program, config
from harness.raw import Raw
from harness.tls import Authority, Secure

pytestmark = pytest.mark.either_io


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    folder = tmp_path_factory.mktemp("authority")
    for above in (folder, *folder.parents[:3]):
        # Servers of another user read the files.
        above.chmod(0o755)
    return Authority(folder)


@pytest.fixture(scope="module")
def pair(authority):
    return authority.certificate("here")


@pytest.fixture
def secure_memcached(memcached, pair):
    return memcached(options=("-Z", "-o", f"ssl_chain_cert={pair.crt},ssl_key={pair.key}"))


def stores(client, key=b"k"):
    """Whether what is set through this client is there."""
    client.send(b"set %b 0 0 1\r\nx\r\nget %b\r\n" % (key, key))
    return client.until(b"\r\n") == b"STORED\r\n" and client.until(b"END\r\n").endswith(b"x\r\nEND\r\n")


def test_admin_port_speaks_tls_and_the_command_of_a_fleet_asks_it_so(
    cleanup, io, tmp_path, authority, pair, command
):
    address, admin = ports.address(), ports.address()
    file = tmp_path / "proxima.yaml"
    said = {
        "listeners": [{"address": address, "route": "embedded"}],
        "admin": {"address": admin, "hosts": ["cache.example.com"], "tls": pair.listener()},
    }
    file.write_text(json.dumps(said))
    proxy = Program([BINARY, "run", "--config", str(file), "--io", io], tmp_path, [address])
    cleanup.callback(proxy.stop)
    proxy.wait_ready()
    context = authority.context()

    def page(path, host=None):
        headers = {"Host": host} if host else {}
        request = urllib.request.Request(f"https://{admin}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE, context=context) as answer:
            return answer.read().decode()

    until(lambda: f"admin on https://{admin}" in proxy.log(), "it says where it is")
    assert page("/live", "cache.example.com") == "live\n"
    assert f'tls_certificate_current{{file="{pair.crt}"}} 1' in page("/metrics")
    with pytest.raises((OSError, http.client.HTTPException)):
        urllib.request.urlopen(f"http://{admin}/live", timeout=PATIENCE)
    # Plain bytes harm nobody: the next one is answered.
    assert page("/live") == "live\n"
    shown = command("fleet", "show", "--admin", f"https://{admin}", "--admin-ca", str(authority.file))
    # It is answered: this proxy is in no fleet.
    assert shown.returncode == 1 and "nobody answers" not in shown.stderr, shown.stderr
    other = Authority(tmp_path, "other")
    shown = command("fleet", "show", "--admin", f"https://{admin}", "--admin-ca", str(other.file))
    assert "certificate" in shown.stderr, shown.stderr


def test_endpoint_with_in_transit_encryption_names_nodes_that_are_reached_so(
    proxima, secure_memcached, authority, pair, cleanup, tmp_path
):
    endpoint = Endpoint(certificate=(pair.crt, pair.key))
    cleanup.callback(endpoint.stop)
    endpoint.set(1, secure_memcached.address)
    source = {"endpoint": endpoint.address, "interval": "100ms", "keep": str(tmp_path / "nodes")}
    pool = {"elasticache": source, "tls": {"ca": str(authority.file)}}
    proxy = proxima(config("cache", {"cache": pool}))
    with Raw(proxy.address) as client:
        assert stores(client)
    assert proxy.metric("endpoint_up") == 1


def test_proxies_ask_each_other_by_tls_which_version_of_their_list_they_tell(
    proxima, authority, pair, tmp_path
):
    addresses = [ports.address() for _ in range(3)]
    file = tmp_path / "proxies"

    def listed(*numbers):
        new = tmp_path / "proxies.new"
        new.write_text("".join(f"{addresses[number]}\n" for number in numbers))
        new.rename(file)

    def start(number):
        keep = str(tmp_path / f"told-{number}")
        made = config("embedded")
        made["listeners"][0] |= {
            "address": addresses[number],
            "discovery": {"peers": {"file": str(file)}, "keep": keep},
            "tls": pair.listener(),
        }
        return proxima(made)

    def told(number):
        """The version and the number of proxies that this one tells its clients."""
        with Secure(addresses[number], authority.context()) as client:
            client.send(b"config get cluster\r\n")
            if client.until(b"\r\n") == b"END\r\n":
                return None
            lines = client.until(b"END\r\n").split(b"\n")
            return int(lines[0]), len(lines[1].split())

    listed(0)
    start(0)
    for expected, numbers in (((1, 1), [0]), ((2, 2), [0, 2]), ((3, 3), [0, 1, 2])):
        listed(*numbers)
        until(lambda expected=expected: told(0) == expected, f"{expected} is told")
    # One that begins anew would tell of version 1 if it heard of no other.
    start(1)
    until(lambda: told(1) == told(0), "both tell the same")
    assert told(0)[0] >= 3


def test_mcrouters_options_for_tls_have_their_effect(
    cleanup, io, tmp_path, memcached, secure_memcached, pair, authority
):
    secure = ports.free()
    plain = memcached()
    pools = {
        "A": {"servers": [f"{secure_memcached.address}:ascii:ssl"]},
        "B": {"servers": [secure_memcached.address, f"{plain.address}:ascii:plain"], "security_mech": "ssl"},
        "C": {"servers": [secure_memcached.address], "use_ssl": True},
    }
    routes = {"/a/a/": "PoolRoute|A", "/b/b/": "AllSyncRoute|Pool|B", "/c/c/": "PoolRoute|C"}
    listed = [{"aliases": [name], "route": route} for name, route in routes.items()]
    text = json.dumps({"pools": pools, "routes": listed})
    options = (
        f"--ssl-port={secure}",
        f"--server-pem-cert-path={pair.crt}",
        f"--server-pem-key-path={pair.key}",
        f"--pem-ca-path={authority.file}",
        "--ssl-verify-peers",
        "--route-prefix=/a/a/",
        "--server-timeout=20000",
    )
    router = Router(text, tmp_path, io, *options)
    cleanup.callback(router.stop)
    with Secure(f"127.0.0.1:{secure}", authority.context()) as client, Raw(router.address) as other:
        assert stores(client, b"a") and stores(other, b"/b/b/b") and stores(other, b"/c/c/c")
    assert plain.get("b") == b"x"
    assert router.metric("tls_handshakes_total", side="servers", result="full") > 0


def test_mcrouter_verifies_servers_and_clients_only_if_it_is_told_to(
    cleanup, io, tmp_path, secure_memcached, pair, authority
):
    other = Authority(tmp_path, "other")
    text = written("PoolRoute|A", {"A": {"servers": [f"{secure_memcached.address}:ascii:ssl"]}})

    def start(*options):
        secure = ports.free()
        router = Router(
            text,
            tmp_path,
            io,
            f"--ssl-port={secure}",
            f"--server-pem-cert-path={pair.crt}",
            f"--server-pem-key-path={pair.key}",
            f"--server-pem-ca-path={authority.file}",
            f"--pem-ca-path={other.file}",
            *options,
        )
        cleanup.callback(router.stop)
        return router, f"127.0.0.1:{secure}"

    router, secure = start()
    with Secure(secure, authority.context()) as client:
        assert stores(client)
    assert "--ssl-verify-peers" in router.log()
    router, secure = start("--ssl-verify-peers", "--ssl-require-peer-certs")
    with pytest.raises((ssl.SSLError, ConnectionError)), Secure(secure, authority.context()) as client:
        stores(client)
    with Secure(secure, authority.context(pair=pair)) as client:
        client.send(b"set k 0 0 1\r\nx\r\n")
        assert client.until(b"\r\n").startswith(b"SERVER_ERROR")
    assert router.metric("tls_handshakes_total", side="servers", result="certificate") > 0


def test_deletes_that_mcrouters_log_has_kept_reach_a_server_with_tls(
    cleanup, io, tmp_path, secure_memcached, pair, authority
):
    text = written("PoolRoute|A", {"A": {"servers": [f"{secure_memcached.address}:ascii:ssl"]}})
    options = (f"--pem-ca-path={authority.file}", "--ssl-verify-peers", "--probe-timeout-initial=50")
    router = Router(text, tmp_path, io, *options)
    cleanup.callback(router.stop)
    secure_memcached.kill()
    with Raw(router.address) as client:
        client.send(b"delete k\r\n")
        assert client.until(b"\r\n") == b"NOT_FOUND\r\n"
    assert router.metric("spooled_deletes_total", event="kept") == 1
    secure_memcached.start()
    until(lambda: router.metric("spooled_deletes_total", event="replayed") == 1, "it is sent again")


def test_options_of_twemproxys_door_give_tls_to_pools_and_their_clients(
    door, redis_server, secure_memcached, pair, authority
):
    redis = redis_server()
    pools = {
        "cache": {"listen": ports.address(), "servers": [f"{secure_memcached.address}:1"]},
        "redis": {"listen": ports.address(), "servers": [f"{redis.address}:1"], "redis": True},
    }
    options = (
        f"--tls-certificate={pair.crt}",
        f"--tls-key={pair.key}",
        f"--server-tls-ca=cache={authority.file}",
        "--server-tls-name=cache=localhost",
    )
    proxy = door(pools, *options)
    with Secure(proxy.addresses[0], authority.context()) as client:
        assert stores(client)
    with Secure(proxy.addresses[1], authority.context()) as client:
        client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n")
        assert client.until(b"\r\n") == b"+OK\r\n"


def test_channels_of_a_fleet_use_certificates_that_were_exchanged(io, folder, cleanup, command):
    """The peers get new certificates of a new authority while they run. Connections that are made
    from then on use them."""
    keys = folder / "keys"
    assert command("fleet", "keys", str(keys), "n0", "n1", "n2").returncode == 0
    tls = [
        {"certificate": str(keys / f"n{n}.pem"), "key": str(keys / f"n{n}.key"), "ca": str(keys / "ca.pem")}
        for n in range(3)
    ]
    nodes = Fleet(3, io, folder, cleanup, fleet={"tls": tls[0]})
    new = folder / "new"
    assert command("fleet", "keys", str(new), "n0", "n1", "n2").returncode == 0
    # Both authorities are trusted while the certificates are exchanged.
    both = (keys / "ca.pem").read_text() + (new / "ca.pem").read_text()
    (keys / "ca.pem").write_text(both)

    def renewed(count):
        def all_have():
            return all(node.proxy.metric("tls_certificate_reloads_total") >= count for node in nodes)

        until(all_have, "all peers have read them")

    renewed(2)
    for end in ("key", "pem"):
        (keys / f"n0.{end}").write_bytes((new / f"n0.{end}").read_bytes())
    renewed(4)
    (keys / "ca.pem").write_bytes((new / "ca.pem").read_bytes())
    renewed(6)
    context = ssl.create_default_context(cafile=new / "ca.pem")
    context.load_cert_chain(new / "n1.pem", new / "n1.key")
    with Secure(nodes[0].listen, context, name="proxima-fleet") as peer:
        assert peer.shown()
    nodes[2].stop_softly()
    nodes[2].start()
    nodes.until_settled()
