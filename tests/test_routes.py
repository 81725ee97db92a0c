"""Every handle of the route tree, written as users write it, against real servers."""

import hashlib
import re
import tempfile
import time

import pytest

from harness import until
from harness.proxy import config
from harness.servers import answering

pytestmark = pytest.mark.either_io

# These keys differ as users' keys do. Keys that differ only in the last digit are neighbours for twemproxy's
# hashes.
KEYS = [hashlib.md5(bytes([number])).hexdigest()[:12] for number in range(40)]


def addresses(servers):
    return [server.address for server in servers]


def members(explained):
    """The servers that an explanation names, in its order."""
    return re.findall(r"member \S+ \((\S+)\)", explained)


def holders(key, servers):
    """The numbers of the servers that have the key."""
    return [number for number, server in enumerate(servers) if server.get(key) is not None]


def distinct(servers, key="k"):
    """Gives the key another value on each server, so that an answer shows its server."""
    for number, server in enumerate(servers):
        server.set(key, str(number))


@pytest.fixture
def three(memcached):
    return memcached.several(3)


@pytest.mark.parametrize(
    "algorithm", ["ketama", "ketama_twemproxy", "ch3", "crc32", "rendezvous", "jump", "modula"]
)
def test_pool_spreads_keys_and_explain_names_the_server_used(three, proxima, algorithm):
    pool = {"servers": addresses(three), "hash": algorithm}
    proxy = proxima(config({"pool": "cache"}, {"cache": pool}))
    used = set()
    with proxy.raw() as client:
        for key in KEYS:
            client.set(key, key)
            [holder] = holders(key, three)
            assert members(proxy.explain(key)) == [three[holder].address]
            assert client.get(key) == key.encode()
            used.add(holder)
    assert used == {0, 1, 2}
    assert f"hash: {algorithm} of " in proxy.explain("k")


def test_member_leads_to_one_server_by_address_or_name(three, proxima):
    named = {"servers": [{"address": three[0].address, "name": "first"}, three[1].address]}
    proxy = proxima(config({"member": "cache/first"}, {"cache": named}, {"member": three[2].address}))
    for listener, expected in ((0, 0), (1, 2)):
        with proxy.raw(listener) as client:
            for key in KEYS[:5]:
                client.set(f"{listener}{key}", "v")
                assert holders(f"{listener}{key}", three) == [expected]


def test_embedded_stores_values_in_the_process(proxima):
    proxy = proxima(config("embedded"))
    with proxy.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
    assert "embedded" in proxy.explain("k")


def test_null_holds_nothing_and_stores_nothing(proxima):
    with proxima(config("null")).raw() as client:
        assert client.ask(b"get k\r\n") == b"END\r\n"
        assert client.ask(b"get k l\r\n") == b"END\r\n"
        assert client.ask(b"set k 0 0 1\r\nx\r\n") == b"NOT_STORED\r\n"
        assert client.ask(b"delete k\r\n") == b"NOT_FOUND\r\n"
        assert client.ask(b"incr k 1\r\n") == b"NOT_FOUND\r\n"
        assert client.ask(b"mg k v\r\n") == b"EN\r\n"


def test_error_answers_with_its_text(proxima):
    with proxima(config({"error": "closed for repairs"})).raw() as client:
        assert client.ask(b"get k\r\n") == b"SERVER_ERROR closed for repairs\r\n"
        assert client.ask(b"set k 0 0 1\r\nx\r\n") == b"SERVER_ERROR closed for repairs\r\n"
        assert client.ask(b"set k 0 0 1 noreply\r\nx\r\n") == b""


def test_hash_chooses_among_routes_and_a_tag_keeps_keys_together(three, proxima):
    children = [{"member": server.address} for server in three]
    spread = {"hash": {"children": children}}
    tagged = {"hash": {"children": children, "hash": {"algorithm": "ketama", "tag": "{}"}}}
    proxy = proxima(config(spread, None, tagged))
    with proxy.raw() as client:
        for key in KEYS:
            client.set(key, "v")
    assert {tuple(holders(key, three)) for key in KEYS} == {(0,), (1,), (2,)}
    with proxy.raw(1) as client:
        for key in KEYS:
            client.set(f"{{user}}{key}", "v")
    [together] = {tuple(holders(f"{{user}}{key}", three)) for key in KEYS}
    assert len(together) == 1


def test_nearest_asks_this_nodes_server_and_the_next_when_it_is_gone(memcached, proxima):
    far, zone, near = memcached(host="127.0.0.1"), memcached(host="127.0.0.2"), memcached(host="127.0.0.3")
    servers = [far, zone, near]
    distinct(servers)
    pool = {"servers": [far.address, {"address": zone.address, "zone": "z"}, near.address]}
    proxy = proxima(
        config({"nearest": "cache"}, {"cache": pool}), "--node-address", "127.0.0.3", "--zone", "z"
    )
    assert [proxy.member(server.address)["distance"] for server in servers] == ["elsewhere", "zone", "host"]
    with proxy.raw() as client:
        assert client.get("k") == b"2"
        for server, expected in ((near, b"1"), (zone, b"0")):
            server.kill()
            reply = b"VALUE k 0 1\r\n%b\r\nEND\r\n" % expected
            until(lambda: client.ask(b"get k\r\n") == reply, "the next nearest answers")
            until(lambda: proxy.member(server.address)["state"] == "ejected", "the dead one is ejected")
            assert expected == str(addresses(servers).index(members(proxy.explain("k"))[0])).encode()


def test_by_operation_sends_each_command_to_its_route(three, proxima):
    first, second, third = ({"member": address} for address in addresses(three))
    route = {"by_operation": {"read": first, "gets": second, "write": second, "add": third, "default": third}}
    proxy = proxima(config(route))
    with proxy.raw() as client:
        client.set("k", "v")
        assert holders("k", three) == [1]
        assert client.get("k") is None
        assert client.ask(b"gets k\r\n").startswith(b"VALUE k 0 1 ")
        assert client.ask(b"add a 0 0 1\r\n3\r\n") == b"STORED\r\n"
        assert holders("a", three) == [2]
        assert client.ask(b"incr a 1\r\n") == b"4\r\n"
        assert client.ask(b"delete k\r\n") == b"NOT_FOUND\r\n"
    expected = {"get": 0, "gets": 1, "set": 1, "add": 2, "delete": 2}
    explained = {command: members(proxy.explain("k", command)) for command in expected}
    assert explained == {command: [three[server].address] for command, server in expected.items()}


def test_by_operation_classifies_mg_by_its_flags(three, proxima):
    first, second, third = ({"member": address} for address in addresses(three))
    groups = {"by_operation": {"read": first, "write": second, "touch": third}}
    own = {"by_operation": {"mg": first, "write": second, "touch": third}}
    proxy = proxima(config(groups, None, own))
    distinct(three)
    with proxy.raw() as client:
        assert client.ask(b"mg k v\r\n") == b"VA 1\r\n0\r\n"
        assert client.ask(b"mg k v T70\r\n") == b"VA 1\r\n2\r\n"
        assert client.ask(b"mg k v N70\r\n") == b"VA 1\r\n1\r\n"
        assert client.ask(b"mg stub N70 T30 v\r\n").startswith(b"VA 0 W")
        assert holders("stub", three) == [1]
    with proxy.raw(1) as client:
        for flags in (b"", b" T70", b" N70"):
            assert client.ask(b"mg k v%b\r\n" % flags) == b"VA 1\r\n0\r\n"
    assert "by_operation: operation mg (read)" in proxy.explain("k", "mg")
    assert "by_operation: operation gat (touch)" in proxy.explain("k", "gat")


def test_by_operation_without_a_default_answers_the_rest_as_null(three, proxima):
    with proxima(config({"by_operation": {"get": {"member": three[0].address}}})).raw() as client:
        assert client.ask(b"set k 0 0 1\r\nx\r\n") == b"NOT_STORED\r\n"
        assert client.ask(b"touch k 0\r\n") == b"NOT_FOUND\r\n"


def test_by_prefix_takes_the_longest_match(three, proxima):
    first, second, third = ({"member": address} for address in addresses(three))
    route = {"by_prefix": {"prefixes": {"user:": first, "user:admin:": second}, "default": third}}
    with proxima(config(route)).raw() as client:
        expected = {"user:1": [0], "user:admin:1": [1], "user": [2], "other": [2]}
        for key in expected:
            client.set(key, "v")
        assert {key: holders(key, three) for key in expected} == expected


def test_by_key_pattern_takes_the_first_match(three, proxima):
    first, second, third = ({"member": address} for address in addresses(three))
    route = {"by_key_pattern": {"patterns": {"*:hot": first, "user:?": second}, "default": third}}
    with proxima(config(route)).raw() as client:
        expected = {"a:hot": [0], "user:1": [1], "user:22": [2], "hot": [2]}
        for key in expected:
            client.set(key, "v")
        assert {key: holders(key, three) for key in expected} == expected


def test_random_uses_all_children(three, proxima):
    distinct(three)
    with proxima(config({"random": "cache"}, {"cache": addresses(three)})).raw() as client:
        assert {client.get("k") for _ in range(100)} == {b"0", b"1", b"2"}


def test_round_robin_takes_the_children_in_turn(three, proxima):
    distinct(three)
    proxy = proxima(config({"round_robin": "cache"}, {"cache": addresses(three)}, workers=1))
    with proxy.raw() as client:
        taken = [client.get("k") for _ in range(9)]
    assert sorted(taken[:3]) == [b"0", b"1", b"2"]
    assert taken == taken[:3] * 3


def test_host_id_always_takes_the_same_child(three, proxima):
    distinct(three)
    route = {"host_id": {"children": "cache", "salt": "s"}}
    first, second = (proxima(config(route, {"cache": addresses(three)})) for _ in range(2))
    answers = set()
    for proxy in (first, second):
        with proxy.raw() as client:
            answers |= {client.get(key) for key in ["k"] * 5}
    assert len(answers) == 1


def test_all_sync_writes_to_all_and_answers_the_worst_reply(three, proxima):
    with proxima(config({"all_sync": "cache"}, {"cache": addresses(three)})).raw() as client:
        client.set("k", "v")
        assert holders("k", three) == [0, 1, 2]
        three[1].set("n", "1")
        assert client.ask(b"delete n\r\n") == b"NOT_FOUND\r\n"
        assert holders("n", three) == []
        three[2].kill()
        assert client.ask(b"set k 0 0 1\r\nw\r\n").startswith(b"SERVER_ERROR ")
        assert [server.get("k") for server in three[:2]] == [b"w", b"w"]


def test_all_majority_answers_the_reply_of_more_than_half(three, proxima):
    with proxima(config({"all_majority": "cache"}, {"cache": addresses(three)})).raw() as client:
        client.set("k", "v")
        assert len(holders("k", three)) >= 2
        three[0].kill()
        for number in range(5):
            assert client.ask(b"set k%d 0 0 1\r\nv\r\n" % number) == b"STORED\r\n"
            assert holders(f"k{number}", three[1:]) == [0, 1]


def test_all_fastest_does_not_wait_for_slow_servers(three, proxima):
    pool = {"servers": addresses(three), "timeout": "50s", "eject": {"failures": 0}}
    with proxima(config({"all_fastest": "cache"}, {"cache": pool})).raw() as client:
        client.set("k", "v")
        three[0].freeze()
        three[1].freeze()
        assert client.get("k") == b"v"
        client.set("k", "w")
        assert client.get("k") == b"w"


def test_all_initial_answers_the_reply_of_the_first_server(three, proxima):
    distinct(three)
    with proxima(config({"all_initial": "cache"}, {"cache": addresses(three)})).raw() as client:
        assert {client.get("k") for _ in range(20)} == {b"0"}
        client.set("l", "v")
        until(lambda: holders("l", three) == [0, 1, 2], "the others have it too")
        three[0].kill()
        assert client.ask(b"get k\r\n").startswith(b"SERVER_ERROR ")


def test_all_async_answers_at_once_and_still_writes(three, proxima):
    with proxima(config({"all_async": "cache"}, {"cache": addresses(three)})).raw() as client:
        assert client.ask(b"set k 0 0 1\r\nv\r\n") == b"NOT_STORED\r\n"
        until(lambda: holders("k", three) == [0, 1, 2], "all have it")
        assert client.ask(b"get k\r\n") == b"END\r\n"


def test_failover_goes_on_after_an_error_and_not_after_a_miss(three, proxima):
    distinct(three)
    proxy = proxima(config({"failover": "cache"}, {"cache": addresses(three)}))
    with proxy.raw() as client:
        assert client.get("k") == b"0"
        three[1].set("only-second", "v")
        assert client.get("only-second") is None
        three[0].kill()
        for _ in range(20):
            assert client.get("k") == b"1"
        client.set("w", "v")
        assert holders("w", three[1:]) == [0]
    assert proxy.metric("failovers_total") > 0


def test_failover_goes_on_only_after_the_configured_errors(three, proxima):
    three[0].kill()
    route = {"failover": {"children": "cache", "errors": {"updates": []}}}
    proxy = proxima(config(route, {"cache": addresses(three)}))
    with proxy.raw() as client:
        assert client.get("k") is None
        assert client.ask(b"set k 0 0 1\r\nv\r\n").startswith(b"SERVER_ERROR ")
    assert members(proxy.explain("k", "set")) == addresses(three)[:1]
    assert members(proxy.explain("k")) == addresses(three)


def test_failover_goes_on_no_more_often_than_its_limit(three, scripted, proxima):
    refusing = scripted(answering(b"SERVER_ERROR full\r\n"))
    route = {"failover": {"children": "cache", "limit": {"rate": 0, "burst": 5}}}
    proxy = proxima(config(route, {"cache": [refusing.address, three[0].address]}, workers=1))
    with proxy.raw() as client:
        answers = [client.ask(b"get k\r\n") for _ in range(20)]
    assert answers == [b"END\r\n"] * 5 + [b"SERVER_ERROR full\r\n"] * 15


def test_miss_failover_asks_until_a_server_has_the_key(three, proxima):
    three[2].set("k", "third")
    proxy = proxima(config({"miss_failover": "cache"}, {"cache": addresses(three)}))
    asked = {"get": 3, "gat": 3, "delete": 3, "set": 1, "touch": 1, "incr": 1}
    explained = {command: len(members(proxy.explain("k", command))) for command in asked}
    assert explained == asked
    assert members(proxy.explain("k")) == addresses(three)
    with proxy.raw() as client:
        assert client.get("k") == b"third"
        assert client.ask(b"gat 0 k\r\n").startswith(b"VALUE ")
        assert client.ask(b"touch k 0\r\n") == b"NOT_FOUND\r\n"
        assert client.get("absent") is None
        client.set("w", "v")
        assert holders("w", three) == [0]
        assert client.ask(b"delete k\r\n") == b"DELETED\r\n"


def test_failover_with_ttl_stores_stand_ins_for_a_short_time(three, proxima):
    three[0].kill()
    normal, gutter = {"member": three[0].address}, [{"member": three[1].address}]
    route = {"failover_with_ttl": {"normal": normal, "failover": gutter, "ttl": 7}}
    with proxima(config(route)).raw() as client:
        client.set("k", "v", ttl=0)
        assert client.get("k") == b"v"
        client.set("touched", "v")
        assert client.ask(b"touch touched 100\r\n") == b"TOUCHED\r\n"
        client.set("read", "v")
        assert client.ask(b"gat 100 read\r\n").startswith(b"VALUE ")
        assert client.ask(b"ma made N0 v\r\n") == b"VA 1\r\n0\r\n"
        assert client.ask(b"mg stub N100 v\r\n").startswith(b"VA 0 W")
        client.set("gone", "v", ttl=-1)
        assert client.get("gone") is None
    with three[1].raw() as direct:
        keys = (b"k", b"touched", b"read", b"made", b"stub")
        left = {key: int(direct.ask(b"mg %b t\r\n" % key).split()[1][1:]) for key in keys}
    assert all(0 < seconds <= 7 for seconds in left.values()), left


def test_modify_key_hides_the_changed_key_from_the_client(three, proxima):
    child = {"member": three[0].address}
    route = {
        "modify_key": {"child": child, "ensure_prefix": "app:", "replace_prefix": "old:", "suffix": ":v2"}
    }
    proxy = proxima(config(route))
    with proxy.raw() as client:
        client.set("k", "v")
        assert three[0].get("app:k:v2") == b"v"
        assert client.get("k") == b"v"
        assert client.get("old:k") == b"v"
        assert client.ask(b"get k absent old:k\r\n") == b"VALUE k 0 1\r\nv\r\nVALUE old:k 0 1\r\nv\r\nEND\r\n"
        assert client.ask(b"mg k v k\r\n") == b"VA 1 kk\r\nv\r\n"
        assert client.ask(b"get %b\r\n" % (b"x" * 245)).startswith(b"SERVER_ERROR ")
        client.set("big", "b" * 300_000)
        assert client.get("big") == b"b" * 300_000
        assert len(three[0].get("app:big:v2")) == 300_000


def test_modify_ttl_sets_or_bounds_the_time_to_live(three, proxima):
    child = {"member": three[0].address}
    always, at_most = {"child": child, "ttl": 50}, {"child": child, "ttl": "1m", "action": "min"}
    proxy = proxima(config({"modify_ttl": always}, None, {"modify_ttl": at_most}))

    def left(key):
        with three[0].raw() as direct:
            return int(direct.ask(b"mg %b t\r\n" % key.encode()).split()[1][1:])

    with proxy.raw() as client:
        client.set("k", "v", ttl=1000)
        assert 40 < left("k") <= 50
        assert client.ask(b"touch k 1000\r\n") == b"TOUCHED\r\n"
        assert 40 < left("k") <= 50
    with proxy.raw(1) as client:
        client.set("never", "v", ttl=0)
        assert 50 < left("never") <= 60
        client.set("sooner", "v", ttl=20)
        assert left("sooner") <= 20
        client.set("dated", "v", ttl=int(time.time()) + 20)
        # The server's clock ticks once a second, so that it may be one behind.
        assert left("dated") <= 21
        client.set("dated", "v", ttl=int(time.time()) + 1000)
        assert 50 < left("dated") <= 60


def test_log_writes_a_line_for_each_request(three, proxima):
    proxy = proxima(config({"log": {"member": three[0].address}}))
    with proxy.raw() as client:
        client.set("logged", "v")
        assert client.get("logged") == b"v"
    lines = until(
        lambda: [line for line in proxy.log().splitlines() if "INFO request " in line and "logged" in line][
            :2
        ],
        "lines in the log",
    )
    assert "set" in lines[0] and "get" in lines[1]


def test_fault_fails_its_share_and_delays_requests(three, proxima):
    child = {"member": three[0].address}
    proxy = proxima(
        config(
            {"fault": {"child": child, "error_rate": 0.5}},
            None,
            {"fault": {"child": child, "delay": "200ms"}},
        )
    )
    with proxy.raw() as client:
        answers = [client.ask(b"get k\r\n") for _ in range(100)]
    assert 10 < sum(answer.startswith(b"SERVER_ERROR ") for answer in answers) < 90
    assert answers.count(b"END\r\n") > 10
    with proxy.raw(1) as held, proxy.raw() as free:
        held.send(b"get k\r\n")
        free.ask(b"get k\r\n")
        assert held.pending == b""
        assert held.until(b"END\r\n") == b"END\r\n"


def test_multi_key_gets_are_joined_in_the_order_of_keys(three, proxima):
    proxy = proxima(config("cache", {"cache": addresses(three)}))
    with proxy.raw() as client:
        for key in KEYS[::2]:
            client.set(key, f"value of {key}", flags=7)
        asked = KEYS[::-1] + KEYS[:3]
        expected = b"".join(
            b"VALUE %b 7 %d\r\nvalue of %b\r\n" % (key.encode(), 9 + len(key), key.encode())
            for key in asked
            if key in KEYS[::2]
        )
        request = b"get " + " ".join(asked).encode() + b"\r\n"
        assert client.ask(request) == expected + b"END\r\n"
        assert client.ask(request * 20) == (expected + b"END\r\n") * 20
        assert client.ask(b"gat 100" + request[3:]) == expected + b"END\r\n"


def test_multi_key_gets_end_with_an_error_when_a_server_failed(three, proxima):
    proxy = proxima(config("cache", {"cache": addresses(three)}))
    with proxy.raw() as client:
        for key in KEYS:
            client.set(key, "v")
        three[0].kill()
        answer = client.ask(b"get " + " ".join(KEYS).encode() + b"\r\n")
    lines = answer.split(b"\r\n")
    assert lines[-2].startswith(b"SERVER_ERROR ") and b"END\r\n" not in answer


def test_flush_all_reaches_every_server_of_the_route(three, proxima):
    with proxima(config("cache", {"cache": addresses(three)})).raw() as client:
        for key in KEYS:
            client.set(key, "v")
        assert client.ask(b"flush_all\r\n") == b"OK\r\n"
        assert not any(holders(key, three) for key in KEYS)


def test_members_of_a_pool_may_be_unix_sockets_and_ipv6(memcached, proxima, cleanup):
    folder = cleanup.enter_context(tempfile.TemporaryDirectory())
    six = memcached(host="::1")
    proxy = proxima(config({"all_sync": "cache"}, {"cache": [six.address]}), "--node-address", "::1")
    with proxy.raw() as client:
        client.set("k", "v")
    assert six.get("k") == b"v"
    inner = proxima(config("embedded", listeners=[{"address": f"unix:{folder}/s", "route": "embedded"}]))
    outer = proxima(config("cache", {"cache": [f"unix:{folder}/s"]}))
    with outer.raw() as client:
        client.set("k", "v")
        assert client.get("k") == b"v"
    with inner.raw() as client:
        assert client.get("k") == b"v"
