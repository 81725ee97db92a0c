"""`proxima fleet own`: the folder of a peer is given to the user who runs the proxy."""

import os
import subprocess

import pytest

from harness.proxy import BINARY

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")

CHOWN_ALONE = ["setpriv", "--bounding-set=-all,+chown", "--inh-caps=-all,+chown"]
"""What an init container has: root without any right but this one."""


def own(folder, user="65532:65532"):
    command = [*CHOWN_ALONE, BINARY, "fleet", "own", folder, "--user", user]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def owners(*paths):
    found = [path.lstat() for path in paths]
    return {(each.st_uid, each.st_gid) for each in found}


@pytest.fixture
def made(tmp_path):
    """A folder of root's with a file, a folder, and a link to what is somebody else's."""
    other = tmp_path / "other"
    other.write_text("")
    folder = tmp_path / "folder"
    (folder / "fleet").mkdir(parents=True)
    (folder / "fleet/peer.json").write_text("")
    (folder / "link").symlink_to(other)
    return folder


def test_a_folder_and_what_is_in_it_are_given_away_and_no_link_is_followed(made):
    done = own(made)
    assert done.returncode == 0, done
    assert owners(made, made / "fleet", made / "fleet/peer.json", made / "link") == {(65532, 65532)}
    assert owners(made.parent / "other") == {(0, 0)}


def test_a_folder_that_was_given_away_and_is_closed_is_no_error(made):
    assert own(made).returncode == 0
    made.chmod(0o700)
    done = own(made)
    assert done.returncode == 0, done


def test_a_folder_that_is_missing_and_a_user_without_numbers_are_errors(tmp_path):
    missing = own(tmp_path / "missing")
    assert missing.returncode == 1 and "missing: No such file" in missing.stderr
    named = own(tmp_path, user="proxima")
    assert named.returncode == 2 and "write two numbers, as in 65532:65532" in named.stderr
