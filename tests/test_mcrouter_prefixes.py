"""Routing prefixes of mcrouter's keys, which name one route or several."""

import json
import urllib.parse

import pytest

from harness import until
from harness.mcrouter import Router, stored
from harness.nutcracker import listed

pytestmark = pytest.mark.either_io


def routes_by_prefix(memcached, **pools):
    """A configuration with routes for three clusters of two regions and a fallback, and their servers."""
    names = ("aa", "bb", "bc", "bfallback")
    servers = dict(zip(names, memcached.several(4)))
    pools = {name: {"servers": [server.address], **pools} for name, server in servers.items()}
    aliases = {"aa": "/a/a/", "bb": "/b/b/", "bc": "/b/bc/", "bfallback": "/b/fallback/"}
    routes = [{"aliases": [alias], "route": f"PoolRoute|{name}"} for name, alias in aliases.items()]
    return json.dumps({"pools": pools, "routes": routes}), servers


@pytest.fixture
def by_prefix(cleanup, io, tmp_path, memcached):
    def start(*arguments, **pools):
        text, servers = routes_by_prefix(memcached, **pools)
        router = Router(text, tmp_path, io, "--route-prefix=/a/a/", *arguments)
        cleanup.callback(router.stop)
        return router, servers

    return start


@pytest.mark.parametrize(
    "prefix, names",
    [
        ("", {"aa"}),
        ("/b/b/", {"bb"}),
        ("/*/*/", {"aa", "bb", "bc", "bfallback"}),
        ("/b/*/", {"bb", "bc", "bfallback"}),
        ("/b*/*/", {"bb", "bc", "bfallback"}),
        ("/b/*b*/", {"bb", "bc", "bfallback"}),
        ("/*/a/", {"aa"}),
        ("/b/unknown/", {"bfallback"}),
    ],
)
def test_key_reaches_all_routes_that_its_prefix_names(by_prefix, prefix, names):
    router, servers = by_prefix()
    with router.raw() as client:
        client.set(f"{prefix}k", "1")
        until(
            lambda: {name for name, server in servers.items() if server.get("k") == b"1"} == names,
            "all routes have the key",
        )
        assert client.get(f"{prefix}k") == b"1"
        assert client.ask(f"delete {prefix}k\r\n".encode()) == b"DELETED\r\n"
        until(lambda: not any(server.get("k") for server in servers.values()), "it is deleted everywhere")


def test_unknown_prefixes_are_refused(by_prefix):
    router, _ = by_prefix()
    with router.raw() as client:
        for prefix in (b"/c/c/", b"/a/b/", b"/c*/*/", b"/*/x/"):
            assert client.ask(b"get %bk\r\n" % prefix) == b"SERVER_ERROR RootRoute: No rh found\r\n"


def test_prefixes_of_no_route_go_to_the_default_route_where_that_is_asked(by_prefix):
    router, servers = by_prefix("--send-invalid-route-to-default")
    with router.raw() as client:
        client.set("/c/c/k", "1")
        for prefix in ("/c/c/", "/a/x/", "/*/x/", "/c*/*/"):
            assert client.get(f"{prefix}k") == b"1"
        assert client.ask(b"append /a/x/k 0 0 1\r\n2\r\n") == b"STORED\r\n"
        assert client.ask(b"prepend /*/x/k 0 0 1\r\n0\r\n") == b"STORED\r\n"
        assert servers["aa"].get("k") == b"012"
        # The fallback of a region comes first.
        client.set("/b/x/l", "1")
    assert stored(servers["bfallback"], ["k", "l"]) == ["l"]
    assert not stored(servers["bb"], ["k", "l"])


def test_appends_reach_all_routes_in_the_background(by_prefix):
    router, servers = by_prefix()
    for server in servers.values():
        server.set("k", "1")
    with router.raw() as client:
        assert client.ask(b"append /*/*/k 0 0 1\r\n2\r\n") == b"STORED\r\n"
        assert client.ask(b"prepend /*/*/k 0 0 1\r\n0\r\n") == b"STORED\r\n"
        until(lambda: {server.get("k") for server in servers.values()} == {b"012"}, "all routes have both")


def test_local_cluster_answers_while_others_are_frozen(by_prefix):
    router, servers = by_prefix()
    with router.raw() as client:
        servers["bb"].freeze()
        client.set("/*/*/k", "1")
        assert client.get("/*/*/k") == b"1"
        assert servers["aa"].get("k") == b"1"
        servers["bb"].thaw()
        until(lambda: servers["bb"].get("k") == b"1", "the other route has the key")


def test_flush_reaches_every_server_of_every_route(by_prefix):
    router, servers = by_prefix("--enable-flush-cmd")
    for server in servers.values():
        server.set("k", "1")
    with router.raw() as client:
        assert client.ask(b"flush_all\r\n") == b"OK\r\n"
    assert not any(server.get("k") for server in servers.values())


def test_routes_may_be_an_object_or_a_single_one(cleanup, io, tmp_path, memcached):
    one, other = memcached.several(2)
    pools = {"A": {"servers": [one.address]}, "B": {"servers": [other.address]}}
    routes = {"/a/a/": "PoolRoute|A", "/b/b/": "PoolRoute|B"}
    for number, form in enumerate([{"routes": routes}, {"route": "PoolRoute|B"}]):
        folder = tmp_path / str(number)
        folder.mkdir()
        router = Router(json.dumps({"pools": pools, **form}), folder, io, "-R", "/b/b/")
        cleanup.callback(router.stop)
        with router.raw() as client:
            client.set(f"k{number}", "1")
            assert client.get(f"/b/b/k{number}") == b"1"
        assert other.get(f"k{number}") == b"1" and one.get(f"k{number}") is None


def test_other_clusters_get_a_key_as_it_was_asked_for(by_prefix, cleanup, io, tmp_path, memcached):
    """Each cluster but the own one is another mcrouter, which keeps the prefix."""
    text, servers = routes_by_prefix(memcached)
    config = json.loads(text)
    for name in ("bb", "bc", "bfallback"):
        config["pools"][name]["keep_routing_prefix"] = True
    router = Router(json.dumps(config), tmp_path, io, "--route-prefix=/a/a/")
    cleanup.callback(router.stop)
    names = {
        "k": {"aa": "k"},
        "/b/b/l": {"bb": "/b/b/l"},
        "/*/*/m": {"aa": "m", "bb": "/*/*/m", "bc": "/*/*/m", "bfallback": "/*/*/m"},
        "/b*/*/n": {"bb": "/b*/*/n", "bc": "/b*/*/n", "bfallback": "/b*/*/n"},
        "/b/unknown/o": {"bfallback": "/b/unknown/o"},
    }
    with router.raw() as client:
        for key in names:
            client.set(key, "1")
            assert client.ask(b"get %b\r\n" % key.encode()) == b"VALUE %b 0 1\r\n1\r\nEND\r\n" % key.encode()
        for name, server in servers.items():
            expected = {at[name] for at in names.values() if name in at}
            until(lambda: set(all_keys(server)) == expected, f"{name} has {expected}")
        assert client.ask(b"delete /*/*/m\r\n") == b"DELETED\r\n"
        until(
            lambda: not any(server.get("/*/*/m") for server in servers.values()), "it is deleted everywhere"
        )


def all_keys(server):
    """The keys that a server has. A listing may lack a few that move in memory meanwhile."""
    return [urllib.parse.unquote(key.decode()) for key in listed([server])]


def test_a_changed_key_keeps_the_prefix_that_was_asked_for(memcached, cleanup, io, tmp_path):
    server = memcached()
    pools = {"A": {"servers": [server.address], "keep_routing_prefix": True}}
    route = {"type": "ModifyKeyRoute", "target": "PoolRoute|A", "ensure_key_prefix": "p:"}
    config = {"pools": pools, "routes": {"/a/b/": route}}
    router = Router(json.dumps(config), tmp_path, io, "-R/a/b/")
    cleanup.callback(router.stop)
    with router.raw() as client:
        for number, key in enumerate(("k", "/a/b/k", "/*/*/k", "/*/b/k")):
            client.set(key, str(number))
        sent = ("p:k", "/a/b/p:k", "/*/*/p:k", "/*/b/p:k")
        assert [server.get(key) for key in sent] == [b"0", b"1", b"2", b"3"]
        assert client.get("/*/*/k") == b"2"
        assert client.get("/*/*/p:k") == b"2"
    assert not stored(server, ["k", "/a/b/k", "/*/*/k", "/*/b/k"])


def test_servers_that_keep_prefixes_get_them(by_prefix):
    router, servers = by_prefix(keep_routing_prefix=True)
    with router.raw() as client:
        client.set("/b/b/k", "1")
        client.set("k", "2")
        assert client.get("/b/b/k") == b"1"
    assert stored(servers["bb"], ["/b/b/k", "k"]) == ["/b/b/k"]
    assert stored(servers["aa"], ["/a/a/k", "k"]) == ["k"]
