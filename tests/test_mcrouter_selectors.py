"""mcrouter's handles that choose by command, by group of commands and by prefix; named handles."""

import json

import pytest

from harness.mcrouter import REQUESTS, Router

pytestmark = pytest.mark.either_io

LEASES = {
    "lease-get": b"lease-get k\r\n",
    "lease-set": b"lease-set k 7 0 0 1\r\nx\r\n",
    "metaget": b"metaget k\r\n",
}

GROUPS = {
    "get_like": ["get", "gets", "gat", "gats"],
    "update_like": ["set", "add", "replace", "append", "prepend", "cas"],
    "delete_like": ["delete"],
    "arithmetic_like": ["incr", "decr", "touch"],
}

DEFAULT = {
    "get_like": b"END\r\n",
    "update_like": b"NOT_STORED\r\n",
    "delete_like": b"NOT_FOUND\r\n",
    "arithmetic_like": b"NOT_FOUND\r\n",
}
"""What a command is answered for which there is no policy."""


def taken(name):
    """The answer of `ErrorRoute|name`, which shows where a request has gone."""
    return b"SERVER_ERROR %b\r\n" % name.encode()


def by_command(of_group):
    return {command: of_group(group) for group, commands in GROUPS.items() for command in commands}


@pytest.mark.parametrize("has_default", [True, False], ids=["default", "no-default"])
def test_each_command_has_its_policy(routed, has_default):
    policies = {command: f"ErrorRoute|{command}" for command in REQUESTS}
    keys = {"default_policy": "ErrorRoute|other"} if has_default else {}
    # The two types are one.
    for kind in ("OperationSelectorRoute", "PrefixPolicyRoute"):
        with routed({"type": kind, "operation_policies": policies, **keys}).raw() as client:
            answers = {name: client.ask(request) for name, request in REQUESTS.items()}
        assert answers == {name: taken(name) for name in REQUESTS}


@pytest.mark.parametrize("has_default", [True, False], ids=["default", "no-default"])
def test_a_command_without_a_policy_gets_the_default(routed, has_default):
    keys = {"default_policy": "ErrorRoute|other"} if has_default else {}
    route = {"type": "OperationSelectorRoute", "operation_policies": {"get": "ErrorRoute|get"}, **keys}
    with routed(route).raw() as client:
        answers = {name: client.ask(request) for name, request in REQUESTS.items()}
    others = by_command(lambda group: taken("other") if has_default else DEFAULT[group])
    assert answers == {**others, "get": taken("get")}


def test_operations_go_to_servers_of_their_own(memcached, routed):
    reading, writing, deleting = memcached.several(3)
    policies = {"get": "PoolRoute|reading", "delete": "AllSyncRoute|Pool|all", "set": "AllSyncRoute|Pool|all"}
    route = {
        "type": "OperationSelectorRoute",
        "default_policy": "PoolRoute|writing",
        "operation_policies": policies,
    }
    pools = {"reading": [reading], "writing": [writing], "all": [reading, writing, deleting]}
    with routed(route, pools).raw() as client:
        client.set("k", "1")
        assert [server.get("k") for server in (reading, writing, deleting)] == [b"1"] * 3
        assert client.ask(b"append k 0 0 1\r\n2\r\n") == b"STORED\r\n"
        assert client.get("k") == b"1"
        assert client.ask(b"gets k\r\n").startswith(b"VALUE k 0 2 ")
        assert client.ask(b"delete k\r\n") == b"DELETED\r\n"
        assert [server.get("k") for server in (reading, writing, deleting)] == [None] * 3


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("has_default", [True, False], ids=["default", "no-default"])
def test_one_group_of_commands_has_a_policy(routed, group, has_default):
    keys = {"default_policy": "ErrorRoute|other"} if has_default else {}
    policies = {group: "ErrorRoute|mine"}
    with routed({"type": "RoutingGroupRoute", "routing_group_policies": policies, **keys}).raw() as client:
        answers = {name: client.ask(request) for name, request in REQUESTS.items()}
    others = by_command(lambda group: taken("other") if has_default else DEFAULT[group])
    assert answers == {**others, **dict.fromkeys(GROUPS[group], taken("mine"))}


def test_leases_and_metadata_belong_to_the_groups_of_their_like(routed):
    policies = {group: f"ErrorRoute|{group}" for group in GROUPS}
    with routed({"type": "RoutingGroupRoute", "routing_group_policies": policies}).raw() as client:
        answers = {name: client.ask(request) for name, request in LEASES.items()}
    assert answers == {
        "lease-get": taken("get_like"),
        "lease-set": taken("update_like"),
        "metaget": taken("get_like"),
    }


def test_every_group_of_commands_has_servers_of_its_own(memcached, routed):
    servers = dict(zip(GROUPS, memcached.several(4)))
    policies = {group: f"PoolRoute|{group}" for group in GROUPS}
    route = {"type": "RoutingGroupRoute", "routing_group_policies": policies}
    with routed(route, {group: [server] for group, server in servers.items()}).raw() as client:
        client.set("k", "1")
        assert client.get("k") is None
        servers["get_like"].set("k", "2")
        assert client.get("k") == b"2"
        assert client.ask(b"incr k 1\r\n") == b"NOT_FOUND\r\n"
        servers["arithmetic_like"].set("k", "3")
        assert client.ask(b"incr k 1\r\n") == b"4\r\n"
        assert client.ask(b"touch k 0\r\n") == b"TOUCHED\r\n"
        assert client.ask(b"delete k\r\n") == b"NOT_FOUND\r\n"
        servers["delete_like"].set("k", "5")
        assert client.ask(b"delete k\r\n") == b"DELETED\r\n"
    values = [server.get("k") for server in servers.values()]
    assert values == [b"2", b"1", None, b"4"]


def test_keys_of_a_prefix_are_rejected(memcached, routed):
    route = {
        "type": "PrefixSelectorRoute",
        "policies": {"rej": "ErrorRoute|reject", "reject:not:": "PoolRoute|A"},
        "wildcard": "PoolRoute|A",
    }
    with routed(route, {"A": memcached.several(2)}).raw() as client:
        for key in (b"rej", b"reject", b"reject:x", b"/././reject"):
            for name, request in REQUESTS.items():
                asked = request.replace(b" k", b" " + key)
                assert client.ask(asked) == b"SERVER_ERROR reject\r\n", (key, name)
        for key in ("re", "a:reject", "reject:not:x"):
            client.set(key, "1")
            assert client.get(key) == b"1"


def test_an_unmatched_prefix_without_a_wildcard_is_an_error(routed):
    route = {"type": "PrefixSelectorRoute", "policies": {"a": "ErrorRoute|a"}}
    with routed(route).raw() as client:
        assert client.ask(b"get abc\r\n") == b"SERVER_ERROR a\r\n"
        assert client.ask(b"get b\r\n").startswith(b"SERVER_ERROR ")


NAMED = {
    "first": {"type": "PoolRoute", "pool": "A"},
    "both": {"type": "AllSyncRoute", "children": ["first", "PoolRoute|B"]},
    "a:b": "AllFastestRoute|Pool|A",
}


def as_list(handles):
    """Handles as a list of objects that have names. One that is a string cannot have one."""
    return [{"name": name, **handle} for name, handle in handles.items() if isinstance(handle, dict)]


@pytest.mark.parametrize("form", ["list", "object", "in place"])
def test_handles_are_used_by_their_names(memcached, routed, form):
    first, second = memcached.several(2)
    route = {
        "type": "OperationSelectorRoute",
        "default_policy": "first",
        "operation_policies": {"set": "both", "delete": "both", "get": "a:b"},
    }
    handles = dict(NAMED)
    more = {"named_handles": handles}
    if form != "object":
        route["operation_policies"]["get"] = "first"
        more = {"named_handles": as_list(handles)}
    if form == "in place":
        policies = route["operation_policies"]
        policies["set"] = {"name": "both", "type": "AllSyncRoute", "children": ["one", "PoolRoute|B"]}
        route = json.loads(json.dumps(route).replace('"first"', '"one"'))
        route["default_policy"] = {"name": "one", "type": "PoolRoute", "pool": "A"}
        more = {}
    with routed(route, {"A": [first], "B": [second]}, **more).raw() as client:
        client.set("k", "1")
        assert (first.get("k"), second.get("k")) == (b"1", b"1")
        assert client.get("k") == b"1"
        assert client.ask(b"incr k 1\r\n") == b"2\r\n"
        assert (first.get("k"), second.get("k")) == (b"2", b"1")
        assert client.ask(b"delete k\r\n") == b"DELETED\r\n"
        assert (first.get("k"), second.get("k")) == (None, None)


LOGICAL = """{
  "macros": {
    // One pool for each region and cluster.
    "pool": {"type": "macroDef", "params": ["region", "cluster"],
      "result": "PoolRoute|%region%.%cluster%"},
    "policies": {"type": "macroDef", "params": ["region", "cluster"], "result": {
      "type": "PrefixSelectorRoute",
      "policies": {
        "both:": {"type": "AllSyncRoute", "children": ["@pool(east, %cluster%)", "@pool(west, %cluster%)"]},
        "east:": "@pool(east, %cluster%)",
        "no:": "ErrorRoute|%region% %cluster%"
      },
      "wildcard": "@pool(%region%, %cluster%)"
    }}
  },
  "pools": %POOLS%,
  "routes": {
    "/east/a/": "@policies(east, a)", "/east/b/": "@policies(east, b)",
    "/west/a/": "@policies(west, a)", "/west/b/": "@policies(west, b)"
  }
}
"""

PLACES = ["east.a", "east.b", "west.a", "west.b"]


def test_prefixes_of_keys_have_policies_by_region_and_cluster(memcached, cleanup, io, tmp_path):
    servers = dict(zip(PLACES, memcached.several(4)))
    pools = {name: {"servers": [server.address]} for name, server in servers.items()}
    text = LOGICAL.replace("%POOLS%", json.dumps(pools))
    router = Router(text, tmp_path, io, "--route-prefix=/west/b/")
    cleanup.callback(router.stop)
    cases = {
        "k": ["west.b"],
        "/east/a/k": ["east.a"],
        "east:k": ["east.b"],
        "/west/a/east:k": ["east.a"],
        "both:k": ["east.b", "west.b"],
        "/east/a/both:k": ["east.a", "west.a"],
    }
    with router.raw() as client:
        for key, places in cases.items():
            bare = key.rsplit("/", 1)[-1]
            client.set(key, "1")
            assert [name for name in PLACES if servers[name].get(bare)] == places, key
            assert client.get(key) == b"1"
            assert client.ask(f"delete {key}\r\n".encode()) == b"DELETED\r\n"
            assert not any(server.get(bare) for server in servers.values()), key
        assert client.ask(b"get no:k\r\n") == b"SERVER_ERROR west b\r\n"
        assert client.ask(b"get /east/a/no:k\r\n") == b"SERVER_ERROR east a\r\n"
