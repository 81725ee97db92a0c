"""The operator's image: its contents, and that its program runs in it as its user."""

import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request

import pytest

from harness import PATIENCE, SOAK, image, ports, until
from harness.helm import PROGRAM as HELM
from harness.helm import objects
from harness.proxy import ROOT

pytestmark = [
    pytest.mark.either_io,
    pytest.mark.skipif(not shutil.which("go"), reason="there is no go, which builds the operator"),
    pytest.mark.skipif(os.geteuid() != 0, reason="changing the root needs root"),
]


def built(output, architecture="amd64", *options):
    """The image of the program that Go makes for this architecture."""
    command = ["sh", ROOT / "scripts/image.sh", "--operator", *options, "--output", output]
    # Go compiles much for the first image, and has it in its cache for the next.
    made = subprocess.run(command, env={**os.environ, "GOARCH": architecture}, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return output


def unpack(archive, folder):
    # The container's user does not own these folders.
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)
    return image.Image(archive, folder)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return built(tmp_path_factory.mktemp("image") / "operator.tar")


def test_the_image_of_the_operator_holds_nothing_but_the_program(archive, tmp_path):
    unpacked = unpack(archive, tmp_path)
    files = {
        path.relative_to(unpacked.root).as_posix() for path in unpacked.root.rglob("*") if not path.is_dir()
    }
    assert files == {
        "etc/group",
        "etc/nsswitch.conf",
        "etc/passwd",
        "usr/local/bin/proxima-operator",
        "usr/share/doc/proxima/LICENSE",
    }
    assert unpacked.config["User"] == "65532:65532" and "ExposedPorts" not in unpacked.config
    assert unpacked.docker["RepoTags"][0].startswith("proxima-operator:")


def test_the_operators_image_serves_versions_as_its_user(archive, tmp_path, cleanup):
    unpacked = unpack(archive, tmp_path)
    shutil.copy(ROOT / "operator/examples/mariadb.yaml", unpacked.root / "versions.yaml")
    address = ports.address()
    arguments = ["versions", "--file", "/versions.yaml", "--listen", str(address)]
    server = subprocess.Popen(unpacked.command(args=arguments), stderr=subprocess.PIPE)
    cleanup.callback(lambda: (server.kill(), server.wait(), server.stderr.close()))
    url = f"http://{address}/versions/v1/mariadb/1.0.0/11.8-recommended"

    def asked():
        assert server.poll() is None, server.stderr.read()
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return json.load(answer)
        except urllib.error.URLError:
            return None

    [offer] = until(asked, "versions are served")["versions"]
    assert list(offer["matrix"]["mariadb"]) == ["11.8.9"]


@pytest.mark.skipif(not HELM.exists(), reason="there is no .cache/helm: scripts/helm.sh builds it")
@pytest.mark.parametrize("values", ["operator", "operator-alone"])
def test_the_program_knows_the_options_that_the_chart_gives_it(archive, tmp_path, values):
    """Behind good options `--help` says what they mean; a bad one is refused before."""
    unpacked = unpack(archive, tmp_path)
    rendered = objects(ROOT / f"tests/charts/good/{values}.yaml")
    pods = [pod for (_, name), pod in rendered.pods().items() if name.endswith(("-operator", "-versions"))]
    assert pods
    for pod in pods:
        [container] = pod["spec"]["containers"]
        asked = subprocess.run(
            unpacked.command(args=[*container["args"], "--help"]), capture_output=True, text=True
        )
        assert asked.returncode == 0 and "proxima-operator versions --file" in asked.stderr, asked
        bad = subprocess.run(
            unpacked.command(args=[*container["args"], "--no-such-option"]), capture_output=True, text=True
        )
        assert bad.returncode != 0 and "no-such-option" in bad.stderr


def test_the_same_program_makes_the_same_image_again(archive, tmp_path):
    program = unpack(archive, tmp_path).root / "usr/local/bin/proxima-operator"
    again = built(tmp_path / "again.tar", "amd64", "--program", program)
    assert again.read_bytes() == archive.read_bytes()


def test_the_image_of_the_operator_has_nothing_for_scripts(tmp_path):
    command = [
        "sh",
        ROOT / "scripts/image.sh",
        "--operator",
        "--debian",
        "--output",
        tmp_path / "operator.tar",
    ]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 2 and "not for the operator" in refused.stderr


@pytest.mark.skipif(not SOAK, reason="Go compiles all of it once more: part of `make soak`")
def test_the_operators_image_is_made_for_arm64_too(tmp_path):
    unpacked = unpack(built(tmp_path / "operator.tar", "arm64"), tmp_path)
    program = unpacked.root / "usr/local/bin/proxima-operator"
    told = subprocess.run(["readelf", "--file-header", program], capture_output=True, text=True, check=True)
    assert "AArch64" in told.stdout
    described = json.loads(unpacked.blob(unpacked.manifest["config"]))
    assert described["architecture"] == "arm64"
