"""The chart `charts/proxima`: what helm makes of files of values, good and bad."""

import os
import re
import subprocess
import sys

import kubernetes_validate
import pytest
import yaml

from harness.helm import CHART, PROGRAM, helm, objects, template
from harness.proxy import BINARY, ROOT, environment

pytestmark = pytest.mark.skipif(
    not PROGRAM.exists(), reason="there is no .cache/helm: scripts/helm.sh builds it"
)

CASES = ROOT / "tests/charts"
GOOD = sorted(CASES.glob("good/*.yaml"))
BAD = sorted(CASES.glob("bad/*.yaml"))
VERSIONS = ("1.30", kubernetes_validate.latest_version().rpartition(".")[0])
OTHERS = ("Certificate", "ServiceMonitor", "PrometheusRule")
"""Kinds that other programs define, of which the schemas of Kubernetes say nothing."""

good = pytest.mark.parametrize("values", GOOD, ids=lambda file: file.stem)
versions = pytest.mark.parametrize("version", VERSIONS)


def case(name):
    return CASES / f"good/{name}.yaml"


def container(pod, name="proxima"):
    [found] = [each for each in containers(pod) if each["name"] == name]
    return found


def containers(pod):
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def configuration(rendered, name="cache-proxima"):
    return yaml.safe_load(rendered.configurations()[name])


def listened(written):
    """The ports of a configuration that other pods reach."""
    addresses = [each["address"] for each in written["listeners"]]
    addresses += [written["admin"], *([written["fleet"]["listen"]] if "fleet" in written else [])]
    reached = [each for each in addresses if not each.startswith(("unix:", "127."))]
    return {int(each.rpartition(":")[2]) for each in reached}


@good
@versions
def test_a_good_file_renders_what_kubernetes_knows(values, version):
    rendered = objects(values, version=version)
    for (kind, _), each in rendered.items():
        if kind not in OTHERS:
            kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("values", BAD, ids=lambda file: file.stem)
def test_a_bad_file_is_refused_in_words(values):
    expected = values.read_text().splitlines()[0].removeprefix("# ")
    made = template(values)
    assert made.returncode != 0 and expected in made.stderr, made.stderr


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
        assert offered == listened(configuration(rendered, name))
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
        is_of_all = service["metadata"]["labels"]["app.kubernetes.io/component"] == "admin"
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
    """A folder with the certificate of a peer, by the names that the chart's Secret has."""
    folder = tmp_path_factory.mktemp("keys")
    made = subprocess.run([BINARY, "fleet", "keys", folder, "peer"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    for name, key in (("peer.pem", "tls.crt"), ("peer.key", "tls.key"), ("ca.pem", "ca.crt")):
        (folder / name).rename(folder / key)
    return folder


@good
def test_the_program_accepts_every_configuration(values, keys, tmp_path):
    """The folders of the pod are folders of the test here."""
    for name, text in objects(values).configurations().items():
        text = text.replace("/etc/proxima/tls", str(keys)).replace("/var/lib/proxima", str(tmp_path))
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


def test_a_fleet_has_memcached_in_its_pod_and_no_port_of_it():
    rendered = objects(case("defaults"))
    written, [pod] = (
        configuration(rendered),
        [pod for (kind, _), pod in rendered.pods().items() if kind == "DaemonSet"],
    )
    memcached = container(pod, "memcached")
    assert written["pools"]["cache"]["own"] == f"unix:{memcached['args'][1]}" and "ports" not in memcached
    # It ends behind the proxy, which drains.
    assert memcached in pod["spec"]["initContainers"] and memcached["restartPolicy"] == "Always"
    service = rendered["Service", "cache-proxima-fleet"]["spec"]
    assert service["clusterIP"] == "None" and service["publishNotReadyAddresses"]
    [port] = service["ports"]
    assert written["fleet"]["peers"] == {"kubernetes": f"cache-proxima-fleet:{port['port']}"}
    assert written["fleet"]["name"] == "${NODE_NAME}" and "expect" not in written["fleet"]
    mounts = {each["mountPath"] for each in container(pod)["volumeMounts"]}
    assert {file.rpartition("/")[0] for file in written["fleet"]["tls"].values()} <= mounts
    assert written["fleet"]["dir"].rpartition("/")[0] in mounts
    assert rendered["DaemonSet", "cache-proxima"]["spec"]["updateStrategy"]["rollingUpdate"] == {
        "maxUnavailable": 1,
        "maxSurge": 0,
    }
    assert not rendered.of("PodDisruptionBudget")


def test_peers_whose_votes_go_with_the_pod_are_replaced_after_a_pause():
    waits = {
        name: objects(case(name))["DaemonSet", "cache-proxima"]["spec"] for name in ("empty-dir", "defaults")
    }
    assert waits["empty-dir"]["minReadySeconds"] > 30 and "minReadySeconds" not in waits["defaults"]


def test_the_authoritys_key_reaches_no_proxy():
    for values in ("defaults", "secret", "cert-manager"):
        pod = objects(case(values))["DaemonSet", "cache-proxima"]["spec"]["template"]
        [secret] = [each["secret"] for each in pod["spec"]["volumes"] if "secret" in each]
        assert [each["key"] for each in secret["items"]] == ["ca.crt", "tls.crt", "tls.key"]


def test_copies_roll_apart_and_only_proxies_reach_them():
    rendered = objects(case("copies"))
    proxies, servers = (
        rendered["DaemonSet", "cache-proxima"],
        rendered["DaemonSet", "cache-proxima-memcached"],
    )
    [container_] = servers["spec"]["template"]["spec"]["containers"]
    assert "readinessProbe" not in container_ and container_["args"][:2] == ["-p", "30213"]
    assert configuration(rendered)["pools"]["cache"]["kubernetes"] == "cache-proxima-memcached:30213"
    assert configuration(rendered)["pools"]["cache"]["replicated"] == {"enabled": True, "min_acks": 1}
    pods = [each["spec"]["template"]["spec"] for each in (proxies, servers)]
    assert [pod["priorityClassName"] for pod in pods] == ["cache", "system-node-critical"]
    assert [pod["tolerations"] for pod in pods] == [[{"operator": "Exists"}]] * 2
    [rule] = rendered["NetworkPolicy", "cache-proxima-memcached"]["spec"]["ingress"]
    assert rule["from"][0]["podSelector"]["matchLabels"] == proxies["spec"]["selector"]["matchLabels"]


@pytest.mark.parametrize(
    "values, proxy, memcached",
    [
        ("defaults", "512Mi", "1280Mi"),
        ("sizes", f"{1024 + 512 + 96 + 256}Mi", "4736Mi"),
        ("memory-said", "3Gi", "2Gi"),
    ],
)
def test_memory_follows_from_sizes(values, proxy, memcached):
    pod = objects(case(values))["DaemonSet", "cache-proxima"]["spec"]["template"]
    limits = [container(pod, name)["resources"]["limits"]["memory"] for name in ("proxima", "memcached")]
    assert limits == [proxy, memcached]


def test_requests_are_as_said():
    pod = objects(case("memory-said"))["DaemonSet", "cache-proxima"]["spec"]["template"]
    assert container(pod, "memcached")["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert container(pod)["resources"]["requests"] == {"cpu": "200m", "memory": "3Gi"}


@pytest.mark.parametrize(
    "version, preferred", [("1.33", None), ("1.34", "PreferSameNode"), ("1.37.2", "PreferSameNode")]
)
def test_the_service_prefers_the_node_where_the_cluster_can(version, preferred):
    service = objects(case("defaults"), version=version)["Service", "cache-proxima"]["spec"]
    assert service.get("trafficDistribution") == preferred and "internalTrafficPolicy" not in service


def test_addresses_are_as_asked_for():
    local = objects(case("local"))["Service", "cache-proxima"]
    assert local["spec"]["internalTrafficPolicy"] == "Local" and local["metadata"]["annotations"] == {
        "team": "cache"
    }
    rendered = objects(case("host-port"))
    assert ("Service", "cache-proxima") not in rendered
    ports = container(rendered.pods()["DaemonSet", "cache-proxima"])["ports"]
    assert [each["name"] for each in ports if each.get("hostPort") == 31213] == ["memcached-31213"]
    assert sum("hostPort" in each for each in ports) == 1
    assert configuration(rendered)["listeners"][0]["address"] == "[::]:31213"
    rendered = objects(case("host-network"))
    pod = rendered.pods()["DaemonSet", "cache-proxima"]
    assert pod["spec"]["hostNetwork"] and pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert all(each["hostPort"] == each["containerPort"] for each in container(pod)["ports"])
    own = ["--admin=$(HOST_IP):9150", "--listen=$(HOST_IP):31213"]
    assert container(pod)["args"][3:] == own
    assert "HOST_IP" in [each["name"] for each in container(pod)["env"]]


def test_the_kubelet_waits_longer_than_the_drain():
    for values, seconds in (("defaults", 5 + 20 + 10), ("fleet-settings", 60 + 1 + 10)):
        pod = objects(case(values)).pods()["DaemonSet", "cache-proxima"]
        assert pod["spec"]["terminationGracePeriodSeconds"] == seconds


def test_probes_ask_the_admin_port():
    pod = objects(case("defaults")).pods()["DaemonSet", "cache-proxima"]
    paths = {
        probe: container(pod)[probe]["httpGet"]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    assert {probe: get["path"] for probe, get in paths.items()} == {
        "startupProbe": "/live",
        "livenessProbe": "/live",
        "readinessProbe": "/ready",
    }
    assert {get["port"] for get in paths.values()} == {"admin"}


def test_keys_are_made_before_an_install_and_renewed_each_week():
    rendered = objects(case("keys-named"))
    weights = {}
    for kind in ("ServiceAccount", "Role", "RoleBinding", "Job"):
        annotations = rendered[kind, "cache-proxima-keys"]["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "pre-install,pre-upgrade"
        weights[kind] = int(annotations["helm.sh/hook-weight"])
    assert max(weights[kind] for kind in ("ServiceAccount", "Role", "RoleBinding")) < weights["Job"]
    for name in ("cache-proxima-keys", "cache-proxima-renewal"):
        named, create = rendered["Role", name]["rules"]
        assert named["resourceNames"] == ["my-keys"] and named["verbs"] == ["get", "update", "patch"]
        assert create["verbs"] == ["create"]
    cron = rendered["CronJob", "cache-proxima-renewal"]
    assert cron["spec"]["schedule"] == "@weekly" and "annotations" not in cron["metadata"]
    for pod in (
        rendered.pods()["Job", "cache-proxima-keys"],
        rendered.pods()["CronJob", "cache-proxima-renewal"],
    ):
        assert container(pod, "keys")["args"] == ["fleet", "keys", "--secret", "my-keys"]


def test_cert_manager_is_asked_for_the_name_that_peers_must_have():
    rendered = objects(case("cert-manager"))
    certificate = rendered["Certificate", "cache-proxima-keys"]["spec"]
    assert certificate["dnsNames"] == ["proxima-fleet"] and {"server auth", "client auth"} <= set(
        certificate["usages"]
    )
    assert certificate["issuerRef"] == {
        "group": "cert-manager.io",
        "kind": "ClusterIssuer",
        "name": "fleet-ca",
    }
    assert not rendered.of("Job") and not rendered.of("CronJob")


def test_a_deployment_has_a_budget_and_no_token():
    rendered = objects(case("redis"))
    deployment = rendered["Deployment", "cache-proxima-redis"]["spec"]
    budget = rendered["PodDisruptionBudget", "cache-proxima-redis"]["spec"]
    assert deployment["replicas"] == 3 and budget["selector"] == deployment["selector"]
    assert deployment["template"]["spec"]["automountServiceAccountToken"] is False
    assert not rendered.of("Role")
    single = objects(case("surge"))
    assert not single.of("PodDisruptionBudget")
    assert (
        single["Deployment", "cache-proxima-redis"]["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == "50%"
    )


def test_who_follows_a_service_may_read_endpoints():
    rendered = objects(case("service-followed"))
    pod = rendered["Deployment", "cache-proxima-shards"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is True
    [rule] = rendered["Role", pod["serviceAccountName"]]["rules"]
    assert rule == {
        "apiGroups": ["discovery.k8s.io"],
        "resources": ["endpointslices"],
        "verbs": ["get", "list", "watch"],
    }


def test_policies_let_in_whom_they_name():
    rules = objects(case("network-policy"))["NetworkPolicy", "cache-proxima"]["spec"]["ingress"]
    by_port = {rule["ports"][0]["port"]: rule.get("from") for rule in rules}
    assert by_port["memcached-11311"] == [{"podSelector": {"matchLabels": {"uses": "cache"}}}]
    assert by_port["admin"] is None
    peers = objects(case("defaults"))["DaemonSet", "cache-proxima"]["spec"]["selector"]
    assert by_port["fleet"] == [{"podSelector": peers}]
    assert not objects(case("no-network-policy")).of("NetworkPolicy")


def test_monitoring_is_there_where_its_kinds_are():
    assert not {kind for kind, _ in objects(case("monitoring"), apis=())} & set(OTHERS)
    assert not {kind for kind, _ in objects(case("no-monitoring"))} & set(OTHERS)
    rendered = objects(case("monitoring"))
    monitor, rules = (
        rendered["ServiceMonitor", "cache-proxima-admin"],
        rendered["PrometheusRule", "cache-proxima-admin"],
    )
    service = rendered["Service", "cache-proxima-admin"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"] == [{"port": "admin", "path": "/metrics", "interval": "30s"}]
    assert {each["metadata"]["labels"]["release"] for each in (monitor, rules)} == {"kube-prometheus"}
    [group] = rules["spec"]["groups"]
    page = (ROOT / "docs/operating.md").read_text()
    for rule in group["rules"]:
        assert 'service="cache-proxima-admin"' in rule["expr"] and "SELECTOR" not in rule["expr"]
        [*metrics] = set(re.findall(r"proxima_\w+", rule["expr"]))
        assert metrics and all(metric in page for metric in metrics), rule["alert"]


def test_the_agent_is_the_one_of_its_manifest():
    manifest = yaml.safe_load_all((ROOT / "agent/deploy/nri.yaml").read_text())
    [daemons] = [each for each in manifest if each["kind"] == "DaemonSet"]
    [written] = daemons["spec"]["template"]["spec"]["containers"]
    rendered = objects(case("agent"))
    spec = rendered["DaemonSet", "cache-proxima-agent"]["spec"]["template"]["spec"]
    agent = container({"spec": spec}, "agent")
    further = ["--nodes-readers=uid:65532", "--cri-runtime=/host/run/containerd/containerd.sock"]
    assert agent["args"] == written["args"] + further
    assert [mount for mount in agent["volumeMounts"] if mount["name"] != "cri"] == written["volumeMounts"]
    for key in ("env", "securityContext", "livenessProbe", "readinessProbe", "resources"):
        assert agent[key] == written[key], key
    paths = {each["name"]: each["hostPath"]["path"] for each in spec["volumes"] if "hostPath" in each}
    assert paths["kubelet"] == "/var/lib/k0s/kubelet"
    assert set(rendered["ConfigMap", "cache-proxima-agent"]["data"]) == {"default", "node.big"}
    assert configuration(rendered)["nodes"] == "agent"
    [mount] = [
        each
        for each in container(rendered.pods()["DaemonSet", "cache-proxima"])["volumeMounts"]
        if each["name"] == "agent"
    ]
    assert mount["mountPath"] == "/run/proxima-agent" == paths["run"]


def test_a_pod_has_whatever_is_said_of_it():
    rendered = objects(case("everything-on-pods"))
    pod = rendered.pods()["DaemonSet", "cache-proxima"]
    said = yaml.safe_load(case("everything-on-pods").read_text())["proxy"]
    for key in ("tolerations", "affinity", "priorityClassName"):
        assert pod["spec"][key] == said["pod"][key]
    assert pod["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux", "cache": "yes"}
    assert (
        pod["metadata"]["labels"]["tier"] == "data" and pod["metadata"]["annotations"]["sidecar"] == "false"
    )
    assert container(pod)["args"][3:] == ["--log-format", "json"]
    assert (
        said["env"][0] in container(pod)["env"] and said["volumeMounts"][0] in container(pod)["volumeMounts"]
    )
    assert [each["name"] for each in pod["spec"]["containers"]] == ["exporter", "proxima", "beside"]
    assert container(pod, "memcached")["args"][-2:] == ["-I", "4m"]
    assert rendered["DaemonSet", "cache-proxima"]["metadata"]["annotations"] == {"reloader": "off"}
    assert all(each["metadata"]["labels"]["team"] == "cache" for each in rendered.values())


def test_what_is_said_of_all_proxies_is_taken_back_for_one():
    rendered = objects(case("taken-back"))
    own, other = (
        rendered.pods()[each]
        for each in (("DaemonSet", "cache-proxima"), ("Deployment", "cache-proxima-far"))
    )
    assert [any("hostPort" in port for port in container(pod)["ports"]) for pod in (own, other)] == [
        False,
        True,
    ]
    assert [len(container(pod)["args"]) for pod in (own, other)] == [3, 5]
    assert ["tolerations" in pod["spec"] for pod in (own, other)] == [False, True]
    assert configuration(rendered)["listeners"][0]["tls"]["required"] is False


def test_images_come_from_the_registry_of_all_charts():
    pods = objects(case("images")).pods()
    containers = [
        each
        for pod in pods.values()
        for each in pod["spec"]["containers"] + pod["spec"].get("initContainers", [])
    ]
    digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    assert {each["image"] for each in containers} == {
        "registry.example:5000/proxima:9.9.9",
        f"registry.example:5000/library/memcached@{digest}",
        "registry.example:5000/proxima-agent:0.1.0",
    }
    for pod in pods.values():
        assert pod["spec"]["imagePullSecrets"] == [{"name": "shared"}, {"name": "own"}]


@pytest.mark.parametrize(
    "sets, restarts", [(["proxy.config.workers=3"], True), (["proxy.config.limits.clients=9"], False)]
)
def test_pods_are_replaced_for_what_is_read_at_the_start_alone(sets, restarts):
    before, after = (objects(case("defaults"), sets=each) for each in ([], sets))
    assert before.configurations() != after.configurations()
    assert (before.pods() != after.pods()) is restarts


def test_two_releases_in_a_namespace_share_no_object_no_folder_and_no_pod():
    one, two = (objects(case("agent"), release=release) for release in ("one", "two"))
    assert not one.keys() & two.keys()
    for (kind, _), each in one.items():
        if kind in ("DaemonSet", "Service"):
            selector = each["spec"]["selector"].get("matchLabels", each["spec"]["selector"])
            assert not [
                pod for pod in two.pods().values() if selector.items() <= pod["metadata"]["labels"].items()
            ]
    folders = [
        {
            each["hostPath"]["path"]
            for each in pods.pods()["DaemonSet", name]["spec"]["volumes"]
            if each["name"] == "folder"
        }
        for pods, name in ((one, "one-proxima"), (two, "two-proxima"))
    ]
    assert folders[0] and not folders[0] & folders[1]


@pytest.mark.parametrize("release", ["a" * 53, "a" * 52 + "b"])
def test_long_names_stay_within_their_limits_and_apart(release):
    for values in ("long-names", "agent"):
        rendered = objects(case(values), release=release)
        assert max(len(name) for _, name in rendered) <= 52
        for each in rendered.values():
            assert all(len(value) <= 63 for value in each["metadata"]["labels"].values())
    other = objects(case("agent"), release="a" * 51 + "cc")
    assert not other.keys() & rendered.keys()


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
