"""The container images: their contents, and that they serve under all of their names."""

import json
import os
import pathlib
import re
import subprocess

import pytest

from harness import PATIENCE, image, ports
from harness.proxy import ROOT, Program


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    reason = image.why_not()
    if reason:
        pytest.skip(reason)
    return os.environ.get("PROXIMA_IMAGE") or image.build(tmp_path_factory.mktemp("image") / "proxima.tar")


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    """The image that has programs for scripts, too."""
    if reason := image.why_not():
        pytest.skip(reason)
    try:
        return image.build(tmp_path_factory.mktemp("image") / "proxima-debian.tar", "--debian")
    except image.Unavailable as error:
        pytest.skip(str(error))


def unpack(archive, folder):
    # The container's user does not own these folders.
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)
    return image.Image(archive, folder)


@pytest.fixture
def unpacked(archive, tmp_path):
    return unpack(archive, tmp_path)


@pytest.fixture
def container(unpacked, cleanup, tmp_path):
    """Starts the image's program at this address, with `command` and `args` of a container."""

    def start(address, admin=None, **arguments):
        program = Program(unpacked.command(**arguments), tmp_path, [address], admin)
        cleanup.callback(program.stop)
        return program.wait_ready()

    return start


def serves(program):
    with program.raw() as client:
        client.set("k", "v")
        return client.get("k") == b"v"


def test_the_image_serves_oci_and_docker_readers(unpacked):
    [layer] = unpacked.manifest["layers"]
    names = [
        described["digest"].replace("sha256:", "blobs/sha256/")
        for described in (unpacked.manifest["config"], layer)
    ]
    assert [unpacked.docker["Config"], *unpacked.docker["Layers"]] == names
    plain = subprocess.run(["gunzip"], input=unpacked.blob(layer), capture_output=True, check=True).stdout
    digest = (
        subprocess.run(["sha256sum"], input=plain, capture_output=True, check=True).stdout.split()[0].decode()
    )
    assert unpacked.rootfs["diff_ids"] == [f"sha256:{digest}"]


def test_the_image_holds_nothing_but_the_program(unpacked):
    files = {
        path.relative_to(unpacked.root).as_posix() for path in unpacked.root.rglob("*") if not path.is_dir()
    }
    assert files == {
        "etc/group",
        "etc/nsswitch.conf",
        "etc/passwd",
        "usr/local/bin/mcrouter",
        "usr/local/bin/nutcracker",
        "usr/local/bin/proxima",
        "usr/share/doc/proxima/LICENSE",
    }
    for name in ("mcrouter", "nutcracker"):
        assert (unpacked.root / "usr/local/bin" / name).readlink() == pathlib.Path("proxima")


@pytest.mark.skipif(bool(os.environ.get("PROXIMA_IMAGE")), reason="PROXIMA_IMAGE was built elsewhere")
def test_building_the_image_again_changes_no_byte(archive, tmp_path):
    assert image.build(tmp_path / "again.tar").read_bytes() == archive.read_bytes()


@pytest.mark.skipif(bool(os.environ.get("PROXIMA_IMAGE")), reason="PROXIMA_IMAGE was built elsewhere")
def test_labels_say_version_source_and_revision_and_no_login(tmp_path, monkeypatch):
    if reason := image.why_not():
        pytest.skip(reason)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "remote.origin.url")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://user:word@git.example/proxima.git")
    labels = unpack(image.build(tmp_path / "proxima.tar"), tmp_path).config["Labels"]
    said = {key.removeprefix("org.opencontainers.image."): value for key, value in labels.items()}
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    assert said == {
        "title": "Proxima",
        "version": version,
        "licenses": "Apache-2.0",
        "source": "https://git.example/proxima.git",
        "revision": head.stdout.strip(),
    }


def test_the_image_for_scripts_runs_them_beside_the_same_program(debian, tmp_path):
    unpacked = unpack(debian, tmp_path)
    assert unpacked.docker["RepoTags"][0].endswith("-debian")
    script = "type -P proxima mcrouter nutcracker; proxima --version; host -V 2>&1; "
    script += "echo one two | awk '{print $2}'; sh -c 'sort <<<three'"
    ran = subprocess.run(
        unpacked.command(command=["bash", "-euc", script]), capture_output=True, text=True, timeout=PATIENCE
    )
    assert ran.returncode == 0, ran.stderr
    *places, version, host, second, third = ran.stdout.splitlines()
    assert places == [f"/usr/local/bin/{name}" for name in ("proxima", "mcrouter", "nutcracker")]
    assert version.startswith("proxima ") and host.startswith("host ")
    assert (second, third) == ("two", "three")


@pytest.mark.skipif(bool(os.environ.get("PROXIMA_IMAGE")), reason="PROXIMA_IMAGE was built elsewhere")
def test_the_program_is_the_same_in_both_images(archive, debian, tmp_path):
    programs = []
    for name, each in (("plain", archive), ("debian", debian)):
        (tmp_path / name).mkdir()
        programs.append((unpack(each, tmp_path / name).root / "usr/local/bin/proxima").read_bytes())
    assert programs[0] == programs[1]


def test_the_same_packages_make_the_same_image_for_scripts(debian, tmp_path):
    assert image.build(tmp_path / "again.tar", "--debian").read_bytes() == debian.read_bytes()


def test_the_image_without_arguments_is_a_cache(unpacked, container):
    address, admin = ports.address(), ports.address()
    own = {"0.0.0.0:11211": address, "0.0.0.0:9150": admin}
    assert own.keys() <= set(unpacked.config["Cmd"])
    # Only the ports differ from the image's own, as another program on this machine may use those.
    program = container(address, admin, args=[own.get(word, word) for word in unpacked.config["Cmd"]])
    assert serves(program)
    if os.geteuid() == 0:
        status = pathlib.Path(f"/proc/{program.process.pid}/status").read_text()
        assert "Uid:\t65532\t" in status and "Gid:\t65532\t" in status


@pytest.mark.parametrize("command, args", [(["mcrouter"], []), (None, ["mcrouter"])], ids=["command", "args"])
def test_the_image_stands_in_for_an_image_of_mcrouter(unpacked, container, memcached, command, args):
    server = memcached()
    port = server.address.rsplit(":", 1)[1]
    # Names are looked up as in any container, where the runtime writes this file.
    (unpacked.root / "etc/hosts").write_text("127.0.0.1 cache.example\n")
    configuration = {"pools": {"A": {"servers": [f"cache.example:{port}"]}}, "route": "PoolRoute|A"}
    (unpacked.root / "etc/proxima/mcrouter.json").write_text(json.dumps(configuration))
    address = ports.address()
    options = [f"--port={address.rsplit(':', 1)[1]}", "--config-file=/etc/proxima/mcrouter.json"]
    assert serves(container(address, command=command, args=args + options))
    assert server.get("k") == b"v"


@pytest.mark.parametrize(
    "command, args", [(["nutcracker"], []), (None, ["nutcracker"])], ids=["command", "args"]
)
def test_the_image_stands_in_for_an_image_of_nutcracker(unpacked, container, memcached, command, args):
    server, address = memcached(), ports.address()
    pool = f"p:\n  listen: {address}\n  servers:\n    - {server.address}:1\n"
    (unpacked.root / "etc/proxima/nutcracker.yml").write_text(pool)
    options = ["-c", "/etc/proxima/nutcracker.yml"]
    assert serves(container(address, command=command, args=args + options))
    assert server.get("k") == b"v"


def test_the_image_serves_a_mounted_configuration(unpacked, container, memcached):
    server = memcached()
    address, admin = ports.address(), ports.address()
    configuration = {
        "listeners": [{"address": address, "route": "cache"}],
        "admin": admin,
        "pools": {"cache": [server.address]},
    }
    (unpacked.root / "etc/proxima/proxima.yaml").write_text(json.dumps(configuration))
    checked = subprocess.run(
        unpacked.command(args=["check", "/etc/proxima/proxima.yaml"]), capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
    assert serves(container(address, admin, args=["run", "--config", "/etc/proxima/proxima.yaml"]))
    assert server.get("k") == b"v"
