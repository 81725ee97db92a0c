"""The manifests of examples/: Kubernetes would take them, and their parts fit each other."""

import re

import kubernetes_validate
import pytest
import yaml

from harness.proxy import ROOT

FILE = ROOT / "examples/node-local-memcached/kubernetes.yaml"
VERSIONS = ("1.30", kubernetes_validate.latest_version())


@pytest.fixture(scope="module")
def objects():
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(FILE.read_text())}


@pytest.fixture(scope="module")
def configuration(objects):
    return objects["ConfigMap", "proxima"]["data"]["proxima.yaml"]


def pod(objects, name):
    return objects["DaemonSet", name]["spec"]["template"]


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_every_word(objects, version):
    for each in objects.values():
        kubernetes_validate.validate(each, version, strict=True)


def test_a_word_too_many_would_be_found(objects):
    wrong = yaml.safe_load(yaml.safe_dump(objects["DaemonSet", "proxima"]))
    wrong["spec"]["template"]["spec"]["hostNetworks"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[0], strict=True)


@pytest.mark.parametrize("name", ["memcached", "proxima"])
def test_a_service_leads_to_its_daemon_set(objects, name):
    template = pod(objects, name)
    [container] = template["spec"]["containers"]
    daemons, service = objects["DaemonSet", name]["spec"], objects["Service", name]["spec"]
    assert daemons["selector"]["matchLabels"] == service["selector"] == template["metadata"]["labels"]
    [port], [offered] = service["ports"], container["ports"]
    assert (port["targetPort"], port["port"]) == (offered["name"], offered["containerPort"])
    assert "HOST_IP" in [variable["name"] for variable in container["env"]]


def test_the_configuration_names_what_the_manifests_make(objects, configuration):
    written = yaml.safe_load(configuration)
    service = objects["Service", "memcached"]
    where = service["metadata"]
    name = f"{where['name']}.{where['namespace']}.svc.cluster.local"
    assert written["pools"]["cache"]["dns"] == f"{name}:{service['spec']['ports'][0]['port']}"

    [container] = pod(objects, "proxima")["spec"]["containers"]
    [listener] = written["listeners"]
    assert listener["address"] == f"0.0.0.0:{container['ports'][0]['containerPort']}"
    for probe in ("livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert written["admin"] == f"{asked['host']}:{asked['port']}"
    [mount], [volume] = container["volumeMounts"], pod(objects, "proxima")["spec"]["volumes"]
    assert mount["name"] == volume["name"] and volume["configMap"]["name"] == "proxima"
    assert container["args"] == ["run", "--config", f"{mount['mountPath']}/proxima.yaml"]


def test_the_image_is_the_one_that_is_made_here(objects):
    [version] = [line.split('"')[1] for line in (ROOT / "Cargo.toml").read_text().splitlines() if line.startswith("version")]
    assert pod(objects, "proxima")["spec"]["containers"][0]["image"] == f"proxima:{version}"


def test_the_state_file_can_be_taken_in(command, tmp_path):
    text, lines = re.subn(r"# (?=state: |- \{name: state,)", "", FILE.read_text())
    assert lines == 3
    objects = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(text)}
    for version in VERSIONS:
        kubernetes_validate.validate(objects["DaemonSet", "proxima"], version, strict=True)
    [container] = pod(objects, "proxima")["spec"]["containers"]
    mount, volume = container["volumeMounts"][1], pod(objects, "proxima")["spec"]["volumes"][1]
    assert mount["name"] == volume["name"] and "hostPath" in volume
    written = objects["ConfigMap", "proxima"]["data"]["proxima.yaml"]
    assert yaml.safe_load(written)["state"].startswith(mount["mountPath"] + "/")
    (tmp_path / "proxima.yaml").write_text(written)
    checked = command("check", str(tmp_path / "proxima.yaml"))
    assert checked.returncode == 0, checked.stderr


def test_proxima_takes_the_configuration(configuration, command, tmp_path):
    file = tmp_path / "proxima.yaml"
    file.write_text(configuration)
    checked = command("check", str(file))
    assert checked.returncode == 0, checked.stderr
