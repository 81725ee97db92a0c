"""Who may change something by the admin port: whoever shows a token of its file."""

import subprocess

import pytest

from harness import ports
from harness.proxy import BINARY, config, environment

pytestmark = pytest.mark.either_io

TOKEN = "a-token-of-the-operators"
OTHER = "another-token-of-theirs"


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    return file


@pytest.fixture
def proxy(memcached, proxima, file):
    admin = {"address": f"127.0.0.1:{ports.free()}", "token_file": str(file)}
    return proxima(config("cache", {"cache": {"servers": [memcached().address]}}, admin=admin))


def shows(token):
    return {"Authorization": f"Bearer {token}"}


def command(*words):
    run = subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=60, env=environment())
    return run.returncode, run.stdout + run.stderr


CHANGES = [
    ("/reload", "POST"),
    ("/drain", "POST"),
    ("/drain", "DELETE"),
    ("/orders/drain?pool=cache&member=none", "POST"),
    ("/near/off?rule=r", "POST"),
    ("/fleet/remove?peer=p", "POST"),
    ("/pools/cache/orders/me", "PUT"),
    ("/pools/cache/orders/me", "DELETE"),
]


@pytest.mark.parametrize(("path", "method"), CHANGES)
def test_what_changes_something_needs_a_token(proxy, path, method):
    for headers in [
        {},
        {"X-Proxima": "yes"},
        shows(OTHER),
        shows(""),
        shows(TOKEN[:-1]),
        shows(f"{TOKEN}{TOKEN}"),
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
    ]:
        status, text = proxy.http(path, method, headers)
        assert status == 401 and "token" in text and TOKEN not in text, (headers, text)
    assert proxy.http(path, method, shows(TOKEN))[0] not in (401, 403)
    assert TOKEN not in proxy.log()


def test_reading_needs_none(proxy):
    for path in ["/live", "/ready", "/metrics", "/members", "/orders", "/config", "/pools/cache/orders"]:
        assert proxy.http(path)[0] == 200, path


def test_a_changed_file_counts_at_once_and_a_bad_one_lets_nobody_in(proxy, file):
    file.write_text(f"{TOKEN}\n{OTHER}\n")
    assert [proxy.http("/reload", "POST", shows(token))[0] for token in (TOKEN, OTHER)] == [200, 200]
    file.write_text(f"{OTHER}\n")
    assert [proxy.http("/reload", "POST", shows(token))[0] for token in (TOKEN, OTHER)] == [401, 200]
    file.write_text("")
    status, text = proxy.http("/reload", "POST", shows(OTHER))
    assert status == 401 and "holds no token" in text
    assert proxy.http("/reload", "POST", shows(OTHER))[0] == 401
    assert proxy.log().count("holds no token") == 1, "whoever asks again and again fills no log"
    file.unlink()
    status, text = proxy.http("/reload", "POST", shows(OTHER))
    assert status == 401 and "cannot be read" in text


def test_commands_take_the_token_from_a_file(proxy, file, tmp_path):
    at = ["--admin", proxy.admin]
    code, text = command("mysql", "undrain", "cache", "x", *at)
    assert code == 1 and "--token-file FILE" in text
    code, text = command("fleet", "remove", "p", *at, "--token-file", str(file))
    assert code == 1 and "in no fleet" in text
    code, text = command("near", "off", "r", *at, "--token-file", str(file))
    assert code == 1 and "token" not in text
    code, text = command("mysql", "undrain", "cache", "x", *at, "--token-file", str(tmp_path / "none"))
    assert code == 1 and "--token-file" in text and "cannot be read" in text


@pytest.mark.parametrize(
    ("text", "why"),
    [(None, "cannot be read"), ("", "holds no token"), ("short", "line 1"), ("two words are here", "line 1")],
)
def test_a_bad_file_is_refused_at_the_start_and_by_check(tmp_path, text, why):
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
    configuration = tmp_path / "proxima.yaml"
    configuration.write_text(
        f"listeners: [{{address: '127.0.0.1:{ports.free()}', route: embedded}}]\n"
        f"admin: {{address: '127.0.0.1:{ports.free()}', token_file: token}}\n"
    )
    for words in [["check", str(configuration)], ["run", "--config", str(configuration)]]:
        code, told = command(*words)
        assert code != 0 and "token_file" in told and why in told, told
        assert "words" not in told


def test_check_warns_of_an_admin_port_that_others_reach(tmp_path, file):
    configuration = tmp_path / "proxima.yaml"
    for address, token, is_warned in [
        ("0.0.0.0:9150", None, True),
        ("10.0.0.1:9150", None, True),
        ("[::]:9150", None, True),
        ("127.0.0.1:9150", None, False),
        ("[::1]:9150", None, False),
        ("0.0.0.0:9150", file, False),
    ]:
        admin = f"{{address: '{address}'" + (f", token_file: {token}}}" if token else "}")
        configuration.write_text(
            f"listeners: [{{address: '127.0.0.1:11211', route: embedded}}]\nadmin: {admin}\n"
        )
        code, told = command("check", str(configuration))
        assert code == 0 and ("may change something" in told) == is_warned, (address, told)
