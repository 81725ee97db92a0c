"""docs/admin-api.md names every request that the admin port answers, and its examples are what the program
answers."""

import json
import os
import urllib.error
import urllib.request

import pytest

from harness import PATIENCE, admin_api, ports, until
from harness.asking import asking
from harness.proxy import config

pytestmark = pytest.mark.either_io

UPDATE = os.environ.get("UPDATE_ADMIN_API")


def test_every_request_of_the_router_is_on_the_page_and_no_other():
    assert len(admin_api.routed()) > 30, "the routes are not found"
    assert admin_api.documented() == admin_api.routed()


class Page:
    """The proxies that the examples ask."""

    def __init__(self, alone, peer, names):
        self.alone, self.peer = alone, peer
        self.names = names

    def asked(self, example):
        """Status line and text of the answer, with the names of the page in place of this run's."""
        if example.path.startswith("/tap"):
            with asking(self.alone, b"get user:1\r\n"):
                return self.told(example, self.alone)
        return self.told(example, self.peer if example.path.startswith("/fleet") else self.alone)

    def told(self, example, proxy):
        asked = self.renamed(example.path, back=True)
        request = urllib.request.Request(
            f"http://{proxy.admin}{asked}", example.body, example.headers, method=example.method
        )
        try:
            answer = urllib.request.urlopen(request, timeout=PATIENCE)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            kind = answer.headers.get("content-type", "")
            text = self.read(answer, kind)
            return f"{answer.status} {kind}".strip(), self.renamed(text)

    def read(self, answer, kind):
        """The text of an answer; of a stream until something has changed."""
        if kind != "text/event-stream":
            return answer.read().decode()
        lines = [b""]
        while b"event: change\n" not in lines or lines[-1] != b"\n":
            lines.append(answer.readline())
        return b"".join(lines).decode()

    def document(self):
        """The document of `/watch`, of a process that is watched."""
        example = admin_api.Example("GET /watch\n\n")
        messages = admin_api.first_messages(self.asked(example)[1])
        return json.loads(messages["state"].split("data: ", 1)[1])

    def renamed(self, text, back=False):
        for real, shown in self.names.items():
            text = text.replace(*((shown, real) if back else (real, shown)))
        return text


@pytest.fixture
def page(fleet, proxima, memcached, tmp_path):
    server, database = memcached(), ports.address()
    rules = [{"name": "maps", "prefix": "map:", "ttl": "10m"}, {"name": "rest", "ttl": "0s"}]
    route = {"near": {"child": "cache", "rules": rules}}
    (tmp_path / "password").write_text("secret")
    database_pool = {
        "protocol": "mysql",
        "servers": [{"address": database, "name": "db-0"}],
        "user": "app",
        "password_file": str(tmp_path / "password"),
    }
    pools = {"cache": {"servers": [{"address": server.address, "name": "a"}]}, "db": database_pool}
    users = tmp_path / "users.yaml"
    users.write_text("app: {password: secret}\n")
    made = config(route, pools, slow_requests={"over": "1us", "keys": "plain"})
    sql = {"address": ports.address(), "protocol": "mysql", "route": "db", "users": str(users)}
    made["listeners"].append(sql)
    alone = proxima(made)
    with alone.raw() as client:
        for key in ("map:eu", "user:1"):
            client.set(key, "v")
            client.get(key)
            client.get(key)
    [peer] = fleet(1).nodes
    names = {
        alone.address: "127.0.0.1:11211",
        sql["address"]: "127.0.0.1:3306",
        alone.admin: "127.0.0.1:9150",
        server.address: "10.0.0.1:11211",
        database: "10.0.0.2:3306",
        peer.listen: "10.0.0.1:11400",
        peer.server.address: "unix:/run/memcached.sock",
        str(tmp_path): "/etc/proxima",
    }
    return Page(alone, peer.proxy, names)


def different(example, status, text):
    """Why an answer is not as the page shows it."""
    if status != example.status:
        return f"{status} in place of {example.status}: {text}"
    if "application/json" in status:
        return admin_api.differences(json.loads(example.shown), json.loads(text))
    if "event-stream" in status:
        shown, found = (admin_api.first_messages(stream).keys() for stream in (example.shown, text))
        return None if shown == found else f"{found} in place of {shown}"
    if "ndjson" in status:
        shown, found = (list(map(json.loads, lines.splitlines())) for lines in (example.shown, text))
        return admin_api.differences(shown, found)
    return admin_api.text_differs(example.shown, text)


def test_every_example_is_answered_as_the_page_shows(page):
    wrong, text = [], admin_api.PAGE.read_text()
    for example in admin_api.examples():
        status, answer = page.asked(example)
        if UPDATE:
            text = text.replace(example.text, example.written(status, answer), 1)
        elif why := different(example, status, answer):
            wrong.append(f"{example.method} {example.path}: {why}")
    if UPDATE:
        admin_api.PAGE.write_text(text)
    assert not wrong, "UPDATE_ADMIN_API=1 writes the answers anew:\n" + "\n".join(wrong)


def test_every_field_of_the_watched_document_is_described_and_no_other(page):
    with page.alone.raw() as client:
        until(
            lambda: client.get("user:1") and "10s" in page.document()["pools"]["cache"]["latency"],
            "quantiles",
        )
    found, described = admin_api.fields(page.document()), admin_api.described()
    assert found - described.keys() == set()
    assert {path for path, missing in described.items() if not missing} - found == set()
