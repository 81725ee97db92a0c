"""The console's files: who gets them, and what browsers are told of them."""

import json
import re
import urllib.request

import pytest

from harness.proxy import ROOT

pytestmark = pytest.mark.either_io

FOLDER = ROOT / "proxy/console"
FILES = sorted(
    path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.*") if path.suffix in (".js", ".css")
)
HTML = "text/html,application/xhtml+xml,*/*;q=0.8"


def get(proxy, path, **headers):
    """Status, headers and bytes."""
    request = urllib.request.Request(f"http://{proxy.admin}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def test_browsers_get_the_page_and_tools_the_list(embedded):
    proxy = embedded()
    status, headers, body = get(proxy, "/", Accept=HTML)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert body == (FOLDER / "index.html").read_bytes() and headers["vary"] == "accept"
    for accept in ["*/*", "text/plain", "application/json"]:
        status, headers, body = get(proxy, "/", Accept=accept)
        assert status == 200 and headers["content-type"].startswith("text/plain"), accept
        assert body.startswith(b"proxima\n") and b"/explain" in body and headers["vary"] == "accept"


def test_each_file_is_served_as_it_is_and_only_once_to_a_browser_that_has_it(embedded):
    proxy = embedded()
    kinds = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
    for name in FILES:
        status, headers, body = get(proxy, f"/console/{name}")
        assert status == 200 and body == (FOLDER / name).read_bytes(), name
        assert headers["content-type"] == kinds[name.rsplit(".")[-1]], name
        again, headers, body = get(proxy, f"/console/{name}", **{"If-None-Match": headers["etag"]})
        assert again == 304 and body == b"" and headers["etag"], name
    for name in ["none.js", "../index.html", "..%2findex.html", "views/", "", "index.html"]:
        assert get(proxy, f"/console/{name}")[0] == 404, name


def test_the_page_may_run_only_its_own_scripts_and_ask_only_its_own_origin(embedded):
    proxy = embedded()
    for path in ["/", "/console/main.js"]:
        _, headers, _ = get(proxy, path, Accept=HTML)
        policy = dict(
            rule.strip().partition(" ")[::2] for rule in headers["content-security-policy"].split(";")
        )
        assert policy == {
            "default-src": "'none'",
            "script-src": "'self'",
            "style-src": "'self'",
            "connect-src": "'self'",
            "img-src": "'self' data:",
            "base-uri": "'none'",
            "frame-ancestors": "'none'",
            "form-action": "'none'",
        }
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("name", [*FILES, "index.html"])
def test_a_file_makes_no_markup_of_text_and_names_no_other_place(name):
    """Only `textContent` and its like bring texts onto the page."""
    text = (FOLDER / name).read_text()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
    )
    places = set(re.findall(r"https?://[^\s\"'`)]+", text))
    # That is the name of a vocabulary, which nobody asks.
    assert places <= {"http://www.w3.org/2000/svg"}, json.dumps(sorted(places))
