"""The manifests of examples/: Kubernetes accepts them, and their parts fit each other."""

import json
import os
import re
import shlex
import subprocess

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
def test_the_manifests_are_valid_kubernetes(objects, version):
    for each in objects.values():
        kubernetes_validate.validate(each, version, strict=True)


def test_the_validator_finds_an_unknown_field(objects):
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


def test_the_mounted_configuration_fits_the_manifests(objects, configuration):
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


def test_the_manifests_name_the_image_of_this_version(objects):
    [version] = [
        line.split('"')[1]
        for line in (ROOT / "Cargo.toml").read_text().splitlines()
        if line.startswith("version")
    ]
    assert pod(objects, "proxima")["spec"]["containers"][0]["image"] == f"proxima:{version}"


def test_the_manifests_with_a_state_file_are_valid(command, tmp_path):
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
    folder = str(tmp_path)
    (tmp_path / "proxima.yaml").write_text(written.replace(mount["mountPath"], folder))
    checked = command("check", str(tmp_path / "proxima.yaml"))
    assert checked.returncode == 0, checked.stderr


def test_proxima_accepts_the_configuration_in_the_manifests(configuration, command, tmp_path):
    file = tmp_path / "proxima.yaml"
    file.write_text(configuration)
    checked = command("check", str(file))
    assert checked.returncode == 0, checked.stderr


FROM_MCROUTER = ROOT / "examples/from-mcrouter"


def migrated(name):
    text = (FROM_MCROUTER / name).read_text()
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(text)}


def parts(objects):
    """The pod of the DaemonSet, and its containers by name."""
    spec = pod(objects, "mcrouter")["spec"]
    return spec, {each["name"]: each for each in spec["initContainers"] + spec["containers"]}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["mcrouter.yaml", "proxima.yaml"])
def test_the_migration_manifests_are_valid_kubernetes(name, version):
    for each in migrated(name).values():
        kubernetes_validate.validate(each, version, strict=True)


def test_the_migration_manifests_differ_in_the_proxy_alone():
    before, after = migrated("mcrouter.yaml"), migrated("proxima.yaml")
    (old_pod, old), (new_pod, new) = parts(before), parts(after)
    assert {name for name in old if old[name] != new[name]} == {"mcrouter"}
    new_pod["containers"][0] = old_pod["containers"][0]
    del new_pod["terminationGracePeriodSeconds"]
    assert before == after


def test_the_migrated_proxy_has_the_same_options_and_needs_no_shell():
    old, new = (parts(migrated(name))[1]["mcrouter"] for name in ("mcrouter.yaml", "proxima.yaml"))
    shell, dash_c, line = old["command"]
    assert (shell, dash_c) == ("/bin/bash", "-c")
    program, *options = shlex.split(line)
    # A kubelet expands $(HOST_IP), and a shell expands $HOST_IP.
    said = {option.replace("$HOST_IP", "$(HOST_IP)") for option in options}
    assert new["command"] == [program] and said - set(new["args"]) == {"--stats-root=/mnt/config/"}
    assert set(new["args"]) - said == {"--admin=127.0.0.1:9150", "--keep-writing"}
    assert old["env"] == new["env"] and old["ports"] == new["ports"]
    for probe in ("livenessProbe", "readinessProbe"):
        asked = new[probe]["httpGet"]
        assert f"--admin={asked['host']}:{asked['port']}" in new["args"]


def test_the_migrated_proxy_reads_the_list_that_the_scripts_write(command, tmp_path):
    objects = migrated("proxima.yaml")
    script = objects["ConfigMap", "mcrouter-scripts"]["data"]["write-list.sh"]
    fake = tmp_path / "kubectl"
    fake.write_text("#!/bin/sh\nprintf '10.0.0.3\\n10.0.0.1\\n10.0.0.2\\n'\n")
    fake.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HOST_IP": "10.0.0.2",
        "FOLDER": str(tmp_path),
    }
    subprocess.run(["bash", "-c", script], env=environment, check=True)
    file = tmp_path / "config.json"
    servers = json.loads(file.read_text())["pools"]["A"]["servers"]
    assert servers == [f"10.0.0.{node}:11211" for node in (2, 1, 3)]
    arguments = [
        argument.replace("$(HOST_IP)", "127.0.0.1").replace("/mnt/config/config.json", str(file))
        for argument in parts(objects)[1]["mcrouter"]["args"]
    ]
    checked = command("mcrouter", "--validate-config", *arguments)
    assert checked.returncode == 0, checked.stderr


def test_the_migration_page_shows_the_manifests_unchanged():
    page = (ROOT / "docs/migrating-from-mcrouter.md").read_text()
    [before, after] = [
        yaml.safe_load(block) for block in re.findall(r"```yaml\n(- name: mcrouter\n.*?)```", page, re.S)
    ]
    assert before == [{key: parts(migrated("mcrouter.yaml"))[1]["mcrouter"][key] for key in before[0]}]
    assert after == [{key: parts(migrated("proxima.yaml"))[1]["mcrouter"][key] for key in after[0]}]


FLEET = ROOT / "examples/fleet/kubernetes.yaml"


@pytest.fixture(scope="module")
def fleet():
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(FLEET.read_text())}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifests_of_a_fleet_are_valid_kubernetes(fleet, version):
    for each in fleet.values():
        kubernetes_validate.validate(each, version, strict=True)


def test_the_parts_of_a_fleet_fit_each_other(fleet):
    written = yaml.safe_load(fleet["ConfigMap", "proxima"]["data"]["proxima.yaml"])
    template = pod(fleet, "proxima")
    parts = {each["name"]: each for each in template["spec"]["containers"]}
    proxy, memcached = parts["proxima"], parts["memcached"]
    ports = {each["name"]: each["containerPort"] for each in proxy["ports"]}
    assert written["fleet"]["listen"] == f"0.0.0.0:{ports['fleet']}"
    assert written["listeners"][0]["address"] == f"0.0.0.0:{ports['memcached']}"
    service = fleet["Service", "proxima-fleet"]["spec"]
    assert service["publishNotReadyAddresses"] and service["clusterIP"] == "None"
    assert service["selector"] == template["metadata"]["labels"]
    assert written["fleet"]["peers"]["dns"].startswith("proxima-fleet.cache.svc")
    assert written["pools"]["cache"]["own"] == f"unix:{memcached['args'][1]}"
    assert "ports" not in memcached and "cpu" not in proxy["resources"]["limits"]
    mounts = {each["mountPath"]: each["name"] for each in proxy["volumeMounts"]}
    assert written["fleet"]["dir"] in mounts
    assert {path.rpartition("/")[0] for path in written["fleet"]["tls"].values()} <= set(mounts)
    named = {each["name"] for each in template["spec"]["volumes"]}
    assert set(mounts.values()) | {"socket"} == named
    assert fleet["DaemonSet", "proxima"]["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1}


def test_proxima_accepts_the_configuration_of_a_fleet(fleet, command, tmp_path, monkeypatch):
    monkeypatch.setenv("NODE_NAME", "node-1")
    file = tmp_path / "proxima.yaml"
    file.write_text(fleet["ConfigMap", "proxima"]["data"]["proxima.yaml"])
    checked = command("check", str(file))
    assert checked.returncode == 0, checked.stderr
