"""The page on smart updates has every option, every reason, and objects that the API server takes."""

import re
import subprocess

import pytest
import yaml

from harness import until
from harness.helm import PROGRAM as HELM
from harness.helm import objects
from harness.proxy import BINARY, ROOT, environment

PAGE = (ROOT / "docs/smart-update.md").read_text()
DEFINITION = yaml.safe_load((ROOT / "operator/config/crd/proxima.io_smartupdates.yaml").read_text())
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
WORD = re.compile(r"`([^`\n]+)`")
REASON = re.compile(r'"([A-Z][a-z]+(?:[A-Z][a-z]+)*)"')

UPDATES = [block for block in BLOCKS if "kind: SmartUpdate" in block]


def reasons(folder):
    """The literals of the operator's code that have the form of a reason, an event or a step."""
    files = [file for file in (ROOT / "operator/internal" / folder).glob("*.go") if "_test" not in file.name]
    return {found for file in files for found in REASON.findall(file.read_text())}


def options(schema, path=""):
    """The fields of the definition that have no fields of their own, by their path."""
    fields = schema.get("properties", {})
    if not fields:
        return [path]
    return [
        found
        for name, each in fields.items()
        for found in options(each.get("items", each), f"{path}.{name}" if path else name)
    ]


def test_every_reason_of_the_operator_has_its_line():
    written = set(WORD.findall(PAGE))
    # These are a header of HTTP, a time zone, and a condition's status.
    others = {"Accept", "Local", "True"}
    found = reasons("policy") | reasons("versions")
    assert len(found) > 30 and found - written - others == set()


def test_every_option_is_on_the_page():
    [version] = DEFINITION["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    written = set(WORD.findall(PAGE))
    # The forms of a backup stand in one row.
    missing = [each for each in options(spec) if each not in written and not each.startswith("backups.")]
    assert len(options(spec)) > 25 and missing == []
    for form in spec["properties"]["backups"]["items"]["properties"]:
        assert f"`{form}: " in PAGE


@pytest.fixture
def defined(plane):
    """An API server that knows the kind."""
    place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    status, answer = plane.ask("POST", place, DEFINITION)
    assert status in (201, 409), answer
    served = "/apis/proxima.io/v1alpha1/namespaces/default/smartupdates"
    until(lambda: plane.ask("GET", served)[0] == 200, "the API server serves SmartUpdates")
    return plane


@pytest.mark.parametrize("block", UPDATES, ids=lambda block: yaml.safe_load(block)["metadata"]["name"])
def test_the_api_server_takes_every_smart_update_of_the_page(defined, block):
    update = yaml.safe_load(block)
    del update["metadata"]["namespace"]
    place = "/apis/proxima.io/v1alpha1/namespaces/default/smartupdates"
    status, answer = defined.ask("POST", f"{place}?dryRun=All&fieldValidation=Strict", update)
    assert status == 201, answer


@pytest.mark.skipif(not HELM.exists(), reason="there is no .cache/helm: scripts/helm.sh builds it")
def test_the_chart_makes_the_service_and_the_versions_that_the_page_names(tmp_path):
    [values] = [block for block in BLOCKS if block.startswith("cache:")]
    [versions] = [block for block in BLOCKS if block.startswith("versions:")]
    (tmp_path / "values.yaml").write_text(values)
    served = {"versions": {"enabled": True, "products": yaml.safe_load(versions)["versions"]}}
    (tmp_path / "versions.yaml").write_text(yaml.safe_dump(served))
    files = (tmp_path / "values.yaml", tmp_path / "versions.yaml")
    rendered = objects(*files, release="db", namespace="db")
    for block in UPDATES:
        update = yaml.safe_load(block)["spec"]
        assert ("Service", update["proxies"]["service"]) in rendered
        endpoint = update.get("upgradeOptions", {}).get("versionServiceEndpoint", "")
        if endpoint.endswith(".db:11000"):
            name = endpoint.removeprefix("http://").removesuffix(".db:11000")
            assert ("Service", name) in rendered


@pytest.mark.skipif(not HELM.exists(), reason="there is no .cache/helm: scripts/helm.sh builds it")
def test_the_program_accepts_the_configuration_of_the_page(tmp_path):
    [values] = [block for block in BLOCKS if block.startswith("cache:")]
    (tmp_path / "values.yaml").write_text(values)
    rendered = objects(tmp_path / "values.yaml", release="db", namespace="db")
    [text] = rendered.configurations().values()
    # The pod's files are the test's.
    for name, place in (("password", "/etc/proxima/monitor"), ("token", "/etc/proxima/admin")):
        (tmp_path / name).write_text("0123456789abcdef" * 4 + "\n")
        text = text.replace(f"{place}/{name}", str(tmp_path / name))
    file = tmp_path / "proxima.yaml"
    file.write_text(text)
    checked = subprocess.run([BINARY, "check", file], env=environment(), capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_the_versions_of_the_page_are_the_example():
    [versions] = [block for block in BLOCKS if block.startswith("versions:")]
    example = (ROOT / "operator/examples/mariadb.yaml").read_text()
    assert versions == "".join(line + "\n" for line in example.splitlines() if not line.startswith("#"))
