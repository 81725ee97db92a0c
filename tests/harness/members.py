"""Servers of a pool that come and go while the proxy serves, and what the proxy says of them."""

import json

from . import until

HOSTS = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"]
COPIES = {"by_operation": {"read": {"nearest": "cache"}, "default": {"all_sync": "cache"}}}


def members(proxy):
    return [row["address"] for row in json.loads(proxy.http("/members")[1])]


def addresses(nodes):
    return [node.address for node in nodes]


def questions(kind):
    """Two functions that wait until `dns` or an `endpoint` has answered some more times, or failed."""

    def wait(metric, more):
        def from_now(proxy, more=more):
            goal = proxy.metric(metric) + more
            until(lambda: proxy.metric(metric) >= goal, f"{metric} grows by {more}")

        return from_now

    return wait(f"{kind}_answers_total", 3), wait(f"{kind}_failures_total", 2)
