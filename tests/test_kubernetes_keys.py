"""The keys of a fleet in a Secret, at a real API server."""

import base64
import json
import subprocess

import pytest

from harness import ports, until
from harness.fleet import SHORT, Node, is_settled, write_and_read
from harness.names import may_mount
from harness.proxy import BINARY, environment

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(not may_mount(), reason="only root can give a process the account of a pod"),
]

FILES = ("ca.crt", "tls.crt", "tls.key")


@pytest.fixture
def keys(namespace):
    """Runs the command in a pod, with more words."""

    def run(*words):
        command = [*namespace.before, BINARY, "fleet", "keys", "--secret", "keys", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment())

    return run


@pytest.fixture
def allowed(namespace):
    namespace.let("secrets", "", ["get", "create", "update"])
    return namespace


def stored(plane, namespace):
    """What is in the Secret."""
    _, answer = plane.ask("GET", f"/api/v1/namespaces/{namespace.name}/secrets/keys")
    data = json.loads(answer)["data"]
    return {name: base64.b64decode(value).decode() for name, value in data.items()}


def put(folder, secret):
    """What a kubelet does with the Secret."""
    folder.mkdir(exist_ok=True)
    for name in FILES:
        (folder / name).write_text(secret[name])


def is_signed(folder):
    """Whether the certificate holds, by the authorities that are trusted."""
    command = ["openssl", "verify", "-CAfile", folder / "ca.crt", folder / "tls.crt"]
    return subprocess.run(command, capture_output=True).returncode == 0


def test_keys_are_made_once_and_left_as_they_are(plane, allowed, keys, tmp_path):
    made = keys()
    assert (made.returncode, made.stdout) == (0, "keys: an authority and a certificate were made\n"), made
    secret = stored(plane, allowed)
    assert secret.keys() == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    put(tmp_path / "mounted", secret)
    assert is_signed(tmp_path / "mounted")
    again = keys()
    assert (again.returncode, again.stdout) == (0, "keys: nothing is due\n")
    assert stored(plane, allowed) == secret
    assert not any("PRIVATE KEY" in text for run in (made, again) for text in (run.stdout, run.stderr))


def test_what_else_is_in_the_secret_stays(plane, allowed, keys):
    body = {"metadata": {"name": "keys", "labels": {"mine": "yes"}}, "data": {"mine": "eWVz"}}
    plane.make(f"/api/v1/namespaces/{allowed.name}/secrets", body)
    assert keys().returncode == 0
    assert stored(plane, allowed).keys() == {"mine", "ca.crt", "ca.key", "tls.crt", "tls.key"}


def test_keys_that_somebody_else_has_made_are_not_overwritten(plane, allowed, keys):
    body = {"metadata": {"name": "keys"}, "data": {"ca.crt": "eWVz"}}
    plane.make(f"/api/v1/namespaces/{allowed.name}/secrets", body)
    refused = keys()
    assert refused.returncode == 1 and "has `ca.crt` and lacks `ca.key`" in refused.stderr
    assert stored(plane, allowed) == {"ca.crt": "yes"}


def test_without_the_right_the_role_is_named(keys):
    refused = keys()
    assert refused.returncode == 1
    assert "needs a Role in the namespace" in refused.stderr and "for secrets" in refused.stderr


def test_peers_go_on_while_the_authority_is_exchanged(plane, allowed, keys, io, folder, cleanup):
    """In each of the three steps one peer has seen the Secret before the other."""
    assert keys().returncode == 0
    listens = [ports.address() for _ in range(2)]
    nodes = []
    for number, listen in enumerate(listens):
        mounted = folder / f"mounted-{number}"
        put(mounted, stored(plane, allowed))
        tls = {
            key: str(mounted / file) for key, file in zip(("ca", "certificate", "key"), FILES, strict=True)
        }
        node = Node(f"n{number}", io, folder, listens, listen, fleet={**SHORT, "tls": tls})
        cleanup.callback(node.stop)
        nodes.append(node)
    until(lambda: is_settled(nodes), "both are peers")
    first = stored(plane, allowed)
    for step in ("is trusted beside", "has signed", "is not trusted any more"):
        done = keys("--rotate")
        assert done.returncode == 0 and step in done.stdout, done
        for number, node in enumerate(nodes):
            put(folder / f"mounted-{number}", stored(plane, allowed))
            assert is_signed(folder / f"mounted-{number}")
            # A process that begins makes all its connections anew.
            node.stop_softly()
            node.start()
            until(lambda: is_settled(nodes), "both are peers again")
            write_and_read(nodes, f"{step} {number}")
    last = stored(plane, allowed)
    assert all(last[name] != first[name] for name in first)


def test_a_token_is_made_once_and_never_replaced(plane, allowed, namespace):
    def run(*words):
        command = [*namespace.before, BINARY, "fleet", "keys", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment())

    def token():
        _, answer = plane.ask("GET", f"/api/v1/namespaces/{namespace.name}/secrets/token")
        data = json.loads(answer)["data"]
        assert data.keys() == {"token"}
        return base64.b64decode(data["token"]).decode()

    made = run("--token-secret", "token")
    assert (made.returncode, made.stdout) == (0, "token: a token was made\n"), made
    first = token()
    assert len(first) == 64 and int(first, 16) >= 0 and first not in made.stdout + made.stderr
    again = run("--secret", "keys", "--token-secret", "token")
    assert again.stdout == "keys: an authority and a certificate were made\ntoken: its token stays\n", again
    assert token() == first
