"""The container image: its contents, and that it serves under both of its names."""

import json
import os
import pathlib
import subprocess

import pytest

from harness import image, ports
from harness.proxy import Program


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    reason = image.why_not()
    if reason:
        pytest.skip(reason)
    return os.environ.get("PROXIMA_IMAGE") or image.build(tmp_path_factory.mktemp("image") / "proxima.tar")


@pytest.fixture
def unpacked(archive, tmp_path):
    # The container's user does not own these folders.
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    return image.Image(archive, tmp_path)


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
