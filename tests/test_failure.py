"""Servers die, freeze, refuse and talk nonsense. Only the requests meant for them fail."""

import threading

import pytest

from harness import until
from harness.load import Load
from harness.proxy import config
from harness.servers import answering

QUICK = {"failures": 3, "probe_initial": "20ms", "probe_max": "100ms"}


def pool(servers, **keys):
    return {"cache": {"servers": [server.address for server in servers], **keys}}


def key_of(proxy, server):
    """A key that the pool's hash sends to this server."""
    keys = (f"key{number}" for number in range(10_000))
    return next(key for key in keys if server.address in proxy.explain(key))


def test_a_server_killed_under_100_clients_causes_no_wrong_reply(memcached, proxima):
    servers = memcached.several(4, threads=4)
    proxy = proxima(config("cache", pool(servers, eject=QUICK)))
    with Load(proxy.address, clients=100, rate=2000, tolerant=True) as load:
        load.after(1000)
        servers[1].kill()
        until(lambda: load.errors, "requests for the dead server fail")
        load.after(2000)
        servers[1].start()
        until(lambda: proxy.member(servers[1].address)["state"] == "up", "the probe brings it back")
        load.after(500)
        seen = len(load.errors)
        load.after(1000)
        assert len(load.errors) == seen, load.errors[seen:][:5]
    assert all(reply.startswith(b"SERVER_ERROR ") for _, _, reply in load.errors), load.errors[:5]


def test_a_frozen_server_delays_only_its_own_requests(memcached, proxima):
    servers = memcached.several(4)
    proxy = proxima(config("cache", pool(servers, timeout="300ms", eject=QUICK), workers=1))
    frozen = key_of(proxy, servers[0])
    others = [key_of(proxy, server) for server in servers[1:]]
    with proxy.raw() as victim, proxy.raw() as bystander:
        for key in (frozen, *others):
            victim.set(key, "old")
        servers[0].freeze()
        victim.send(b"get %b\r\n" % frozen.encode())
        for _ in range(100):
            assert [bystander.get(key) for key in others] == [b"old"] * 3
        assert victim.pending == b""
        assert victim.line() == f"SERVER_ERROR {servers[0].address}: timeout\r\n".encode()
        while not victim.ask(b"get %b\r\n" % frozen.encode()).endswith(b": ejected\r\n"):
            pass
        assert proxy.member(servers[0].address)["state"] == "ejected"
        assert [victim.get(key) for key in others] == [b"old"] * 3
        servers[0].thaw()
        until(lambda: proxy.member(servers[0].address)["state"] == "up", "the probe brings it back")
        assert victim.get(frozen) == b"old"


def test_a_server_thawed_under_load_causes_no_wrong_reply(memcached, proxima):
    servers = memcached.several(3)
    proxy = proxima(config("cache", pool(servers, timeout="100ms", eject=QUICK)))
    with Load(proxy.address, clients=50, rate=1500, tolerant=True) as load:
        for _ in range(3):
            load.after(300)
            seen = len(load.errors)
            servers[0].freeze()
            until(lambda: len(load.errors) > seen, "requests for the frozen server fail")
            load.after(300)
            servers[0].thaw()
            until(lambda: proxy.member(servers[0].address)["state"] == "up", "the probe brings it back")
    assert proxy.member(servers[0].address)["ejections"] >= 1


NONSENSE = {
    "words": b"hello, who is there?\r\n",
    "a length that is none": b"VALUE k 0 x\r\n",
    "a length beyond all bounds": b"VALUE k 0 99999999999999999999999\r\n",
    "a value without its end": b"VALUE k 0 1\r\nxyzEND\r\nEND\r\n",
    "zeroes": bytes(1000),
    "a line without an end": b"VALUE " + b"k" * 100_000,
    "too many replies": b"END\r\n" * 1000,
    "the reply to a set": b"STORED\r\n",
}


@pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE.keys())
def test_a_server_that_answers_nonsense_is_disconnected_and_its_requests_fail(
    memcached, scripted, proxima, answer
):
    mad, sane = scripted(answering(answer)), memcached()
    proxy = proxima(config("cache", pool([mad, sane], timeout="500ms"), workers=1))
    theirs, ours = key_of(proxy, mad), key_of(proxy, sane)
    with proxy.raw() as client, proxy.raw() as bystander:
        bystander.set(ours, "v")
        for _ in range(5):
            reply = client.ask(b"get %b\r\n" % theirs.encode())
            if answer is NONSENSE["too many replies"] and reply == b"END\r\n":
                # The first reply is good like any other.
                continue
            assert reply.startswith(f"SERVER_ERROR {mad.address}: ".encode()), reply
            assert bystander.get(ours) == b"v"
    assert proxy.metric("member_failures_total", member=mad.address) > 0


def test_a_server_that_closes_in_mid_reply_fails_that_request_alone(scripted, memcached, proxima):
    def talk(sock):
        sock.recv(1000)
        sock.sendall(b"VALUE k 0 10\r\n01234")

    half, sane = scripted(talk), memcached()
    proxy = proxima(config("cache", pool([half, sane], eject={"failures": 0}), workers=1))
    key, ours = key_of(proxy, half), key_of(proxy, sane)
    with proxy.raw() as client:
        for _ in range(3):
            assert client.ask(b"get %b\r\n" % key.encode()).startswith(b"SERVER_ERROR ")
            client.set(ours, "v")
    assert half.connections == 3


def test_a_server_that_closes_in_mid_value_closes_only_its_reader(scripted, memcached, proxima):
    def talk(sock):
        request = sock.recv(1000)
        if request.startswith(b"get "):
            sock.sendall(b"VALUE %b 0 1000000\r\n" % request.split()[1] + b"x" * 500_000)

    half, sane = scripted(talk), memcached()
    proxy = proxima(config("cache", pool([half, sane], eject={"failures": 0}), workers=1))
    key, ours = key_of(proxy, half), key_of(proxy, sane)
    with proxy.raw() as client, proxy.raw() as bystander:
        client.send(b"get %b\r\n" % key.encode())
        # Half of the value has left, so only the end of the connection can show the failure.
        assert len(client.rest()) < 1_000_000
        bystander.set(ours, "v")
        assert bystander.get(ours) == b"v"


def test_a_refused_connection_ejects_and_a_probe_readmits(memcached, proxima):
    [server] = memcached.several(1)
    proxy = proxima(config("cache", pool([server], eject=QUICK)))
    with proxy.raw() as client:
        client.set("k", "v")
        server.kill()
        while not client.ask(b"get k\r\n").endswith(b": ejected\r\n"):
            pass
        member = proxy.member(server.address)
        assert (member["state"], member["ejections"]) == ("ejected", 1)
        assert proxy.metric("member_up", member=server.address) == 0
        assert proxy.http("/ready")[0] == 503
        server.start()
        until(lambda: proxy.member(server.address)["state"] == "up", "the probe brings it back")
        assert proxy.http("/ready")[0] == 200
        assert client.get("k") is None
        client.set("k", "again")
    assert "ejected" in proxy.log() and "up again" in proxy.log()


def test_failures_count_across_all_workers(memcached, proxima):
    """A failure that one worker has waited for counts for all workers."""
    [server] = memcached.several(1)
    proxy = proxima(config("cache", pool([server], timeout="100ms"), workers=4))
    server.freeze()
    clients = [proxy.raw() for _ in range(12)]
    for client in clients[:3]:
        client.ask(b"get k\r\n")
    # It does not matter which workers served those three clients.
    for client in clients:
        assert client.ask(b"get k\r\n").endswith(b": ejected\r\n")
        client.close()


def test_failover_hides_a_dead_server(memcached, proxima):
    servers = memcached.several(2)
    route = {"by_operation": {"read": {"failover": "cache"}, "default": {"all_fastest": "cache"}}}
    proxy = proxima(config(route, pool(servers)))
    with Load(proxy.address, tolerant=True) as load:
        load.after(200)
        servers[0].kill()
        load.after(500)
    assert load.errors == [] and load.misses == 0


def test_a_pool_fails_open_when_too_many_servers_are_ejected(memcached, proxima):
    servers = memcached.several(2)
    eject = {"failures": 1, "probe_initial": "1h", "probe_max": "1h", "fail_open_above": 0.5}
    proxy = proxima(config("cache", pool(servers, timeout="200ms", eject=eject), workers=1))
    keys = [key_of(proxy, server) for server in servers]
    with proxy.raw() as client:
        for key, server in zip(keys, servers):
            client.set(key, "v")
            server.freeze()
        for key in keys:
            assert client.ask(b"get %b\r\n" % key.encode()).startswith(b"SERVER_ERROR ")
        until(
            lambda: all(proxy.member(server.address)["fail_open"] for server in servers),
            "the pool fails open",
        )
        for server in servers:
            server.thaw()
        for key in keys:
            assert client.get(key) == b"v"


def test_fail_open_does_not_ask_servers_that_refuse_connections(memcached, proxima):
    """Fail-open disregards suspicion. A refused connection is no suspicion."""
    slow, sane, *dead = memcached.several(4)
    eject = {"failures": 1, "probe_initial": "1h", "probe_max": "1h", "fail_open_above": 0.3}
    proxy = proxima(config("cache", pool([slow, sane, *dead], timeout="200ms", eject=eject), workers=1))
    keys = {server: key_of(proxy, server).encode() for server in (slow, *dead)}
    with proxy.raw() as client:
        slow.freeze()
        for server in dead:
            server.kill()
        for key in keys.values():
            assert client.ask(b"get %b\r\n" % key).startswith(b"SERVER_ERROR ")
        for server in dead:
            until(
                lambda: client.ask(b"get %b\r\n" % keys[server]).endswith(b": ejected\r\n"),
                "what is refused is asked no more",
            )
        until(lambda: proxy.member(slow.address)["fail_open"], "the pool fails open")
        assert [proxy.member(server.address)["fail_open"] for server in dead] == [False] * 2
        for server in dead:
            assert client.ask(b"get %b\r\n" % keys[server]).endswith(b": ejected\r\n")
            assert proxy.metric("member_up", member=server.address) == 0
        assert "cache: 2 of 4 members up" in proxy.http("/ready")[1]
        assert proxy.http("/ready?pool=cache&up=3")[0] == 503
        slow.thaw()
        assert client.get(keys[slow]) is None


def test_with_failures_0_only_a_refused_connection_ejects(memcached, proxima):
    frozen, dead = memcached.several(2)
    eject = {"failures": 0, "probe_initial": "20ms", "probe_max": "100ms"}
    proxy = proxima(config("cache", pool([frozen, dead], timeout="60ms", eject=eject), workers=1))
    late, refused = (key_of(proxy, server).encode() for server in (frozen, dead))
    with proxy.raw() as client:
        frozen.freeze()
        for _ in range(5):
            assert client.ask(b"get %b\r\n" % late) == f"SERVER_ERROR {frozen.address}: timeout\r\n".encode()
        assert proxy.member(frozen.address)["state"] == "up"
        dead.kill()
        while not client.ask(b"get %b\r\n" % refused).endswith(b": ejected\r\n"):
            pass
        dead.start()
        until(lambda: proxy.member(dead.address)["state"] == "up", "the probe brings it back")


def test_a_late_reply_never_reaches_another_client(memcached, proxima):
    """While the server is frozen, clients leave and others take their places."""
    [server] = memcached.several(1)
    proxy = proxima(config("cache", pool([server], timeout="50s"), workers=1))
    with proxy.raw() as client:
        for number in range(40):
            client.set(f"k{number}", f"value {number}")
    server.freeze()
    for number in range(20):
        leaving = proxy.raw()
        leaving.send(b"get k%d\r\n" % number)
        until(lambda: proxy.metric("requests_in_flight") == number + 1, "it has been sent")
        leaving.abort()
    until(lambda: proxy.metric("clients") == 0, "all have left")
    staying = [proxy.raw() for _ in range(20)]
    for number, client in enumerate(staying, 20):
        client.send(b"get k%d\r\n" % number)
    until(lambda: proxy.metric("requests_in_flight") == 40, "and these too")
    server.thaw()
    for number, client in enumerate(staying, 20):
        value = b"value %d" % number
        assert client.until(b"END\r\n") == b"VALUE k%d 0 %d\r\n%b\r\nEND\r\n" % (number, len(value), value)
        client.close()


def test_a_write_is_not_sent_twice_when_its_connection_breaks(scripted, proxima):
    seen = []
    lock = threading.Lock()

    def talk(sock):
        with lock:
            seen.append(sock.recv(1000))

    server = scripted(talk)
    proxy = proxima(config("cache", pool([server], eject={"failures": 0}), workers=1))
    with proxy.raw() as client:
        assert client.ask(b"incr k 1\r\n").startswith(b"SERVER_ERROR ")
    assert [request for request in seen if request.startswith(b"incr")] == [b"incr k 1\r\n"]


def test_an_idle_connection_closed_by_the_server_is_no_failure(memcached, proxima):
    [server] = memcached.several(1, options=["-o", "idle_timeout=1"])
    proxy = proxima(config("cache", pool([server]), workers=1))
    with proxy.raw() as client:
        client.set("k", "v")
        until(lambda: proxy.metric("lanes") == 0, "memcached closes its idle connection")
        assert client.get("k") == b"v"
    assert proxy.member(server.address)["failures_in_a_row"] == 0
    assert proxy.metric("member_failures_total") == 0


def test_a_frozen_member_of_all_sync_is_given_up_after_its_timeout(memcached, proxima):
    servers = memcached.several(3)
    proxy = proxima(config({"all_sync": "cache"}, pool(servers, timeout="200ms"), workers=1))
    with proxy.raw() as client:
        client.set("k", "old")
        servers[0].freeze()
        client.send(b"set k 0 0 1000000\r\n%b\r\n" % (b"n" * 1_000_000))
        assert client.line().startswith(b"SERVER_ERROR ")
        assert servers[1].get("k") == b"n" * 1_000_000
        assert servers[2].get("k") == b"n" * 1_000_000
