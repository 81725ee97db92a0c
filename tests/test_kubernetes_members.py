"""A pool follows the endpoints of a Service at a real API server."""

import json
import time

import pytest

from harness import until
from harness.api_server import endpoint
from harness.names import may_mount
from harness.proxy import config

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(not may_mount(), reason="only root can give a process the account of a pod"),
]


@pytest.fixture
def proxy(namespace, proxima):
    pool = {"kubernetes": "mc"}
    return proxima(config("cache", {"cache": pool}, workers=1), before=namespace.before)


def serving(proxy):
    members = json.loads(proxy.http("/members")[1])
    return sorted(member["address"] for member in members if member["pool"] == "cache")


def becomes(proxy, *expected):
    until(lambda: serving(proxy) == sorted(f"{ip}:11211" for ip in expected), f"{expected} serve")


def test_members_follow_the_endpoints(namespace, proxy):
    """And what the API server knows of them is shown."""
    namespace.let()
    namespace.set("a", endpoint("10.0.0.1"), endpoint("10.0.0.2"))
    namespace.set("b", endpoint("10.0.0.3"))
    becomes(proxy, "10.0.0.1", "10.0.0.2", "10.0.0.3")
    namespace.set("a", endpoint("10.0.0.1", terminating=True), endpoint("10.0.0.2", serving=False))
    becomes(proxy, "10.0.0.3")
    namespace.delete("b")
    becomes(proxy, "10.0.0.2")
    namespace.set("a", endpoint("10.0.0.1"))
    becomes(proxy, "10.0.0.1")
    [member] = json.loads(proxy.http("/members")[1])
    shown = {key: member[key] for key in ("name", "node", "pod_uid", "zone", "distance", "distance_source")}
    assert shown == {
        "name": "pod-10.0.0.1",
        "node": "n1",
        "pod_uid": "uid-pod-10.0.0.1",
        "zone": "z1",
        "distance": "host",
        "distance_source": "kubernetes",
    }
    assert proxy.metric("service_up", pool="cache", name="mc") == 1


def test_without_the_right_the_missing_role_is_named_and_with_it_members_come(namespace, proxy):
    namespace.set("a", endpoint("10.0.0.1"))
    until(lambda: f"it needs a Role in the namespace {namespace.name}" in proxy.log(), "it is told")
    assert serving(proxy) == []
    namespace.let()
    becomes(proxy, "10.0.0.1")


@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_an_api_server_that_is_away_changes_nothing(plane, namespace, proxy, fault):
    namespace.let()
    namespace.set("a", endpoint("10.0.0.1"))
    becomes(proxy, "10.0.0.1")
    if fault == "killed":
        plane.kill()
        until(lambda: "the API server fails" in proxy.log(), "it is told")
        assert serving(proxy) == ["10.0.0.1:11211"]
        plane.begin()
    else:
        plane.freeze()
        time.sleep(3)
        assert serving(proxy) == ["10.0.0.1:11211"]
        plane.thaw()
    namespace.set("a", endpoint("10.0.0.2"))
    becomes(proxy, "10.0.0.2")


def test_a_thousand_slices_are_one_list(namespace, proxy):
    namespace.let()
    for each in range(1_000):
        namespace.set(f"s{each}", endpoint(f"10.1.{each // 250}.{each % 250}"))
    until(lambda: len(serving(proxy)) == 1_000, "all are members")
