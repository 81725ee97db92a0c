"""The chart `charts/proxima`: what holds of every file of values, good and bad."""

import os
import re
import subprocess
import sys

import kubernetes_validate
import pytest
import yaml

from harness import SOAK
from harness.helm import (
    BAD,
    BEFORE,
    CHART,
    GOOD,
    OTHERS,
    PROGRAM,
    case,
    container,
    containers,
    helm,
    objects,
    template,
)
from harness.proxy import BINARY, ROOT, environment

pytestmark = pytest.mark.skipif(
    not PROGRAM.exists(), reason="there is no .cache/helm: scripts/helm.sh builds it"
)

VERSIONS = ("1.30", kubernetes_validate.latest_version().rpartition(".")[0])

helm_before = pytest.mark.skipif(
    not SOAK or not BEFORE.exists(), reason="the helm before this one is part of `make soak`"
)
good = pytest.mark.parametrize("values", GOOD, ids=lambda file: file.stem)
bad = pytest.mark.parametrize("values", BAD, ids=lambda file: file.stem)
versions = pytest.mark.parametrize("version", VERSIONS)


def listened(written):
    """The ports of a configuration that other pods reach."""
    addresses = [each["address"] for each in written["listeners"]]
    addresses += [written["admin"]["address"], *([written["fleet"]["listen"]] if "fleet" in written else [])]
    reached = [each for each in addresses if not each.startswith(("unix:", "127."))]
    return {int(each.rpartition(":")[2]) for each in reached}


@good
@versions
def test_a_good_file_renders_what_kubernetes_knows(values, version):
    rendered = objects(values, version=version)
    for (kind, _), each in rendered.items():
        if kind not in OTHERS:
            kubernetes_validate.validate(each, version, strict=True)


def refused_in_words(values, **settings):
    expected = values.read_text().splitlines()[0].removeprefix("# ")
    made = template(values, **settings)
    assert made.returncode != 0 and expected in made.stderr, made.stderr


@bad
def test_a_bad_file_is_refused_in_words(values):
    refused_in_words(values)


@bad
@helm_before
def test_the_helm_before_refuses_a_bad_file_in_the_same_words(values):
    refused_in_words(values, program=BEFORE, version=VERSIONS[-1])


@good
@helm_before
def test_the_helm_before_renders_the_same_objects(values):
    before, now = (objects(values, program=each, version=VERSIONS[-1]) for each in (BEFORE, PROGRAM))
    assert before == now


def test_there_are_as_many_files_as_promised():
    assert len(GOOD) + len(BAD) >= 40


@good
def test_rendering_twice_gives_the_same_bytes(values):
    assert template(values).stdout == template(values).stdout


def test_no_template_makes_what_differs_each_time():
    chance = re.compile(r"\b(gen(CA|SelfSigned|Signed|PrivateKey)\w*|rand\w+|lookup|now|uuidv4)\b")
    files = [file for file in CHART.rglob("*") if file.is_file() and "templates" in file.parts]
    actions = {file.name: re.findall(r"{{.*?}}", file.read_text(), re.S) for file in files}
    code = {
        name: [a for a in found if not a.lstrip("{- ").startswith("/*")] for name, found in actions.items()
    }
    assert sum(map(len, code.values())) > 100
    assert {name: a for name, found in code.items() for a in found if chance.search(a)} == {}


@good
def test_ports_of_pods_are_those_of_their_configuration(values):
    rendered = objects(values)
    pods = rendered.pods()
    for name in rendered.configurations():
        [pod] = [
            pod
            for (kind, owner), pod in pods.items()
            if owner == name and kind in ("DaemonSet", "Deployment")
        ]
        offered = {each["containerPort"] for each in container(pod)["ports"]}
        assert offered == listened(rendered.configuration(name))
        assert container(pod)["args"][:3] == ["run", "--config", "/etc/proxima/config/proxima.yaml"]


@good
def test_each_selector_leads_to_the_pods_of_one_object(values):
    rendered = objects(values)
    pods = rendered.pods()
    selectors = {
        owner: rendered[owner]["spec"]["selector"]["matchLabels"]
        for owner in pods
        if owner[0] in ("DaemonSet", "Deployment")
    }
    for owner, selector in selectors.items():
        chosen = [
            other for other, pod in pods.items() if selector.items() <= pod["metadata"]["labels"].items()
        ]
        assert chosen == [owner]
    for name, service in rendered.of("Service").items():
        chosen = [
            pod
            for pod in pods.values()
            if service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        ]
        # Those of admin ports and of peers are of more than one object.
        is_of_all = service["metadata"]["labels"]["app.kubernetes.io/component"] in ("admin", "fleet")
        assert chosen and (len(chosen) == 1 or is_of_all), name
        for pod in chosen:
            named = {port["name"] for each in pod["spec"]["containers"] for port in each.get("ports", [])}
            assert {port["targetPort"] for port in service["spec"]["ports"]} <= named


@good
def test_mounts_have_volumes_and_references_lead_somewhere(values):
    rendered = objects(values)
    for (kind, name), pod in rendered.pods().items():
        spec = pod["spec"]
        volumes = {each["name"]: each for each in spec.get("volumes", [])}
        containers = spec["containers"] + spec.get("initContainers", [])
        mounts = [mount for each in containers for mount in each.get("volumeMounts", [])]
        assert {mount["name"] for mount in mounts} <= set(volumes), (kind, name)
        assert not [mount for mount in mounts if "subPath" in mount]
        for each in volumes.values():
            if "configMap" in each:
                assert ("ConfigMap", each["configMap"]["name"]) in rendered
        account = spec.get("serviceAccountName")
        assert account is None or ("ServiceAccount", account) in rendered


@good
def test_containers_may_do_what_restricted_allows_and_the_folder_is_the_exception(values):
    for (kind, name), pod in objects(values).pods().items():
        for each in containers(pod):
            if each["name"] == "folder":
                assert each["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["CHOWN"]}
                assert [mount["mountPath"] for mount in each["volumeMounts"]] == [each["args"][2]]
            if each["name"] in ("proxima", "memcached", "keys", "agent"):
                security = each["securityContext"]
                assert security["capabilities"] == {"drop": ["ALL"]} and security["readOnlyRootFilesystem"]
                assert security["allowPrivilegeEscalation"] is False
                assert security["seccompProfile"] == {"type": "RuntimeDefault"}
                assert security.get("runAsNonRoot") or each["name"] == "agent"
                assert "cpu" not in each["resources"].get("limits", {}), (kind, name)


@good
def test_rights_are_in_the_namespace_and_where_they_are_used(values):
    rendered = objects(values)
    assert not rendered.of("ClusterRole") and not rendered.of("ClusterRoleBinding")
    for name, binding in rendered.of("RoleBinding").items():
        assert ("Role", binding["roleRef"]["name"]) in rendered
        [subject] = binding["subjects"]
        assert (subject["name"], subject["namespace"]) == (name, "web")
    for (_, name), pod in rendered.pods().items():
        account = pod["spec"].get("serviceAccountName")
        if pod["spec"]["automountServiceAccountToken"]:
            assert ("RoleBinding", account) in rendered, name
    for role in rendered.of("Role").values():
        for rule in role["rules"]:
            if rule["resources"] == ["secrets"] and rule["verbs"] != ["create"]:
                assert rule["resourceNames"] and "list" not in rule["verbs"] and "watch" not in rule["verbs"]


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A folder with the certificate of a peer and a token, by the names that the chart's Secrets have."""
    folder = tmp_path_factory.mktemp("keys")
    made = subprocess.run([BINARY, "fleet", "keys", folder, "peer"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    for name, key in (("peer.pem", "tls.crt"), ("peer.key", "tls.key"), ("ca.pem", "ca.crt")):
        (folder / name).rename(folder / key)
    (folder / "token").write_text("0123456789abcdef" * 4)
    return folder


@good
def test_the_program_accepts_every_configuration(values, keys, tmp_path):
    """The folders of the pod are folders of the test here."""
    for name, text in objects(values).configurations().items():
        folders = {"/etc/proxima/tls": keys, "/etc/proxima/admin": keys, "/var/lib/proxima": tmp_path}
        for there, here in folders.items():
            text = text.replace(there, str(here))
        file = tmp_path / f"{name}.yaml"
        file.write_text(text)
        variables = {**environment(), "NODE_NAME": "node-1", "HOST_IP": "127.0.0.1"}
        checked = subprocess.run(
            [BINARY, "check", file], env=variables, capture_output=True, text=True, timeout=60
        )
        assert checked.returncode == 0, f"{name}\n{checked.stderr}\n{text}"


@pytest.mark.parametrize("name", ["proxima", "folder", "keys"])
def test_the_program_knows_the_options_of_its_containers(name):
    """Behind good options `--help` says what they mean; a bad one is refused before."""
    pods = [
        pod
        for values in ("everything-on-pods", "host-network")
        for pod in objects(case(values)).pods().values()
    ]
    every = [
        each
        for pod in pods
        for part in ("initContainers", "containers")
        for each in pod["spec"].get(part, [])
    ]
    given = [
        [arg.replace("$(HOST_IP)", "127.0.0.1") for arg in each["args"]]
        for each in every
        if each["name"] == name
    ]
    assert given
    for arguments in given:
        asked = subprocess.run([BINARY, *arguments, "--help"], capture_output=True, text=True, timeout=60)
        assert asked.returncode == 0, asked.stderr


def test_the_chart_is_a_part_of_another_twice(tmp_path):
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts/proxima").symlink_to(CHART)
    parts = [{"name": "proxima", "version": "0.1.0", "alias": alias} for alias in ("left", "right")]
    chart = {"apiVersion": "v2", "name": "umbrella", "version": "1.0.0", "dependencies": parts}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(chart))
    shared = {
        "global": {"imageRegistry": "registry.example", "other": {"charts": "use this"}},
        "database": {},
    }
    (tmp_path / "values.yaml").write_text(yaml.safe_dump({**shared, "right": {"cache": {"mode": "copies"}}}))
    rendered = objects(chart=tmp_path, release="app")
    assert set(rendered.of("DaemonSet")) == {"app-left", "app-right", "app-right-memcached"}
    proxies = [pod for (kind, _), pod in rendered.pods().items() if kind == "DaemonSet"]
    assert all(
        each["image"].startswith("registry.example/") for pod in proxies for each in pod["spec"]["containers"]
    )


def notes(values):
    made = helm("install", "cache", CHART, "--namespace=web", "--dry-run=client", "--values", case(values))
    assert made.returncode == 0, made.stderr
    return made.stdout.partition("NOTES:")[2]


def test_notes_say_the_address_the_fleet_and_the_label_of_the_namespace():
    said = notes("defaults")
    assert "cache-proxima.web.svc:11311" in said and "fleet show" in said and "WARNING" not in said
    assert "pod-security.kubernetes.io/enforce=privileged" in said
    assert "pod-security.kubernetes.io/enforce=restricted" in notes("empty-dir")
    assert "status.hostIP" in notes("host-port") and ".svc" not in notes("host-port")
    assert "(Local)" in notes("local")


def test_notes_say_what_two_nodes_want_and_where_the_token_is():
    said = notes("defaults")
    assert "If the cache has two nodes: set cache.fleet.witness.enabled" in said
    assert "Secret cache-proxima-token" in said and "--token-file /etc/proxima/admin/token" in said
    said = notes("witness")
    assert "It must run on a node that has no pod of the cache" in said and "If the cache has two" not in said
    assert "token" not in notes("no-token")


def test_notes_warn_of_unknown_keys_at_the_root():
    assert "WARNING: the chart knows no value `database`" in notes("unknown-at-the-root")


def test_helm_finds_nothing_wrong_with_the_chart():
    linted = helm("lint", "--strict", CHART)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_the_versions_of_chart_and_program_are_one():
    [version] = re.findall(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == version


@pytest.mark.parametrize("page", ["kubernetes", "migrating-from-the-mcrouter-chart"])
def test_values_on_pages_are_good(page, tmp_path):
    text = (ROOT / f"docs/{page}.md").read_text()
    blocks = [block for block in re.findall(r"```yaml\n(.*?)```", text, re.S) if re.match("cache:", block)]
    assert blocks
    for number, block in enumerate(blocks):
        file = tmp_path / f"{number}.yaml"
        file.write_text(block)
        assert objects(file)


def test_the_readme_is_made_of_the_values():
    script = ROOT / "scripts/chart_readme.py"
    made = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert made.stdout == (CHART / "README.md").read_text(), f"{script} writes it anew"


def test_the_readme_has_a_row_for_every_value():
    readme = (CHART / "README.md").read_text()
    rows = [row.split(".") for row in re.findall(r"^\| `([\w.]+)` \|", readme, re.M)]

    def missing(values, path):
        """The values that neither have a row nor are part of the default of one."""
        if path in rows and not any(row[: len(path)] == path != row for row in rows):
            return []
        if not isinstance(values, dict):
            return [".".join(path)]
        return [each for key, value in values.items() for each in missing(value, [*path, key])]

    assert len(rows) > 50 and missing(yaml.safe_load((CHART / "values.yaml").read_text()), []) == []


def test_neither_home_nor_time_zone_changes_what_is_rendered():
    other = {**os.environ, "HOME": "/nowhere", "TZ": "Asia/Tokyo"}
    rendered = subprocess.run(
        [PROGRAM, "template", "cache", CHART], env=other, capture_output=True, text=True
    )
    assert rendered.stdout == helm("template", "cache", CHART).stdout != ""
