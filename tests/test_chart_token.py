"""The chart in a cluster: what changes something at an admin port needs the token that the Job has made."""

import pytest

from harness.lab.release import SPACE

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]

FILE = "/etc/proxima/admin/token"


def refusal(lab, pod, *options):
    """What the program says to somebody who removes a peer that is not there."""
    with pytest.raises(AssertionError) as said:
        lab.execute(pod, "/usr/local/bin/proxima", "fleet", "remove", "nobody", *options)
    return str(said.value)


def test_what_changes_something_needs_the_token_which_every_pod_has(lab, release):
    for pod in release.ready(len(lab.nodes)):
        assert "needs a token" in refusal(lab, pod)
        assert "no peer has the name nobody" in refusal(lab, pod, "--token-file", FILE)


def test_the_token_is_made_once(lab, release):
    path = f"/api/v1/namespaces/{SPACE}/secrets/{release.name}-proxima-token"
    before = lab.get(path)
    assert len(before["data"]) == 1
    release.install()
    assert lab.get(path) == before
