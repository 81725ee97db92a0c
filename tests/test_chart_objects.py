"""The chart `charts/proxima`: what single values make of its objects."""

import re

import pytest
import yaml

from harness.helm import OTHERS, PROGRAM, case, container, containers, objects
from harness.proxy import ROOT

pytestmark = pytest.mark.skipif(
    not PROGRAM.exists(), reason="there is no .cache/helm: scripts/helm.sh builds it"
)


def test_a_fleet_has_memcached_in_its_pod_and_no_port_of_it():
    rendered = objects(case("defaults"))
    written, [pod] = (
        rendered.configuration(),
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
        [secret] = [each["secret"] for each in pod["spec"]["volumes"] if each["name"] == "keys"]
        assert [each["key"] for each in secret["items"]] == ["ca.crt", "tls.crt", "tls.key"]


def test_copies_roll_apart_and_only_proxies_reach_them():
    rendered = objects(case("copies"))
    proxies, servers = (
        rendered["DaemonSet", "cache-proxima"],
        rendered["DaemonSet", "cache-proxima-memcached"],
    )
    [container_] = servers["spec"]["template"]["spec"]["containers"]
    assert "readinessProbe" not in container_ and container_["args"][:2] == ["-p", "30213"]
    assert rendered.configuration()["pools"]["cache"]["kubernetes"] == "cache-proxima-memcached:30213"
    assert rendered.configuration()["pools"]["cache"]["replicated"] == {"enabled": True, "min_acks": 1}
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
    assert rendered.configuration()["listeners"][0]["address"] == "[::]:31213"
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
    changed = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["my-keys"]}
    changed["verbs"] = ["get", "update", "patch"]
    seen = {**changed, "resourceNames": ["cache-proxima-token"], "verbs": ["get"]}
    create = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}
    assert rendered["Role", "cache-proxima-keys"]["rules"] == [changed, seen, create]
    assert rendered["Role", "cache-proxima-renewal"]["rules"] == [changed, create]
    cron = rendered["CronJob", "cache-proxima-renewal"]
    assert cron["spec"]["schedule"] == "@weekly" and "annotations" not in cron["metadata"]
    job, renewal = (
        container(rendered.pods()[each], "keys")["args"]
        for each in (("Job", "cache-proxima-keys"), ("CronJob", "cache-proxima-renewal"))
    )
    assert renewal == ["fleet", "keys", "--secret", "my-keys"]
    assert job == [*renewal, "--token-secret", "cache-proxima-token"]


@pytest.mark.parametrize(
    "values, secret",
    [("token-named", "operators"), ("token-by-somebody-else", "operators"), ("no-token", None)],
)
def test_every_proxy_has_the_token_of_its_admin_port_in_a_folder(values, secret):
    rendered = objects(case(values))
    for name in rendered.configurations():
        [pod] = [pod for (kind, owner), pod in rendered.pods().items() if owner == name and kind != "Job"]
        folders = {each["mountPath"]: each["name"] for each in container(pod)["volumeMounts"]}
        secrets = {each["name"]: each.get("secret") for each in pod["spec"]["volumes"]}
        file = rendered.configuration(name)["admin"].get("token_file")
        if secret:
            mounted = secrets[folders[file.rpartition("/")[0]]]
            assert mounted["secretName"] == secret
            assert mounted["items"] == [{"key": "token", "path": file.rpartition("/")[2]}]
        else:
            assert file is None and "token" not in secrets


@pytest.mark.parametrize(
    "values, made",
    [
        ("token-named", ["--token-secret", "operators"]),
        ("token-by-somebody-else", None),
        ("no-token", ["--secret", "cache-proxima-keys"]),
    ],
)
def test_the_job_makes_what_nobody_else_does(values, made):
    rendered = objects(case(values))
    args = [container(pod, "keys")["args"] for (kind, _), pod in rendered.pods().items() if kind == "Job"]
    assert args == ([["fleet", "keys", *made]] if made else [])


def test_a_witness_is_a_peer_without_a_copy_and_without_clients():
    rendered = objects(case("witness"))
    pod = rendered.pods()["Deployment", "cache-proxima-witness"]
    own, peers = rendered.configuration("cache-proxima-witness"), rendered.configuration()
    assert own["fleet"]["role"] == "witness" and "pools" not in own
    assert own["fleet"]["name"] == "witness" != peers["fleet"]["name"]
    same = own["fleet"].keys() - {"role", "name"}
    assert {key: own["fleet"][key] for key in same} == {key: peers["fleet"][key] for key in same}
    assert own["fleet"]["lease"] == "2s"
    assert [each["name"] for each in containers(pod)] == ["folder", "proxima"]
    assert ("Service", "cache-proxima-witness") not in rendered
    # Two at a time would be two peers with one folder.
    assert rendered["Deployment", "cache-proxima-witness"]["spec"]["strategy"] == {"type": "Recreate"}
    assert pod["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux", "cache": "no"}
    [avoided] = pod["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    chosen = avoided["podAffinityTerm"]["labelSelector"]["matchLabels"]
    assert chosen == rendered["DaemonSet", "cache-proxima"]["spec"]["selector"]["matchLabels"]


def test_peers_and_their_witness_reach_each_other_and_alerts_do_not_count_it():
    rendered = objects(case("witness"))
    peers, witness = (
        rendered.pods()[each]["metadata"]["labels"]
        for each in (("DaemonSet", "cache-proxima"), ("Deployment", "cache-proxima-witness"))
    )
    selector = rendered["Service", "cache-proxima-fleet"]["spec"]["selector"]
    assert selector.items() <= peers.items() and selector.items() <= witness.items()
    for name in ("cache-proxima", "cache-proxima-witness"):
        rules = rendered["NetworkPolicy", name]["spec"]["ingress"]
        [clients] = [rule["from"] for rule in rules if rule["ports"] == [{"port": "fleet"}]]
        assert clients == [{"podSelector": {"matchLabels": selector}}]
    scraped = rendered["Service", "cache-proxima-admin"]["spec"]["selector"]
    assert scraped.items() <= peers.items() and not scraped.items() <= witness.items()


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
    assert not rendered.of("CronJob")


def test_a_deployment_has_a_budget_and_no_token():
    rendered = objects(case("redis"))
    deployment = rendered["Deployment", "cache-proxima-redis"]["spec"]
    budget = rendered["PodDisruptionBudget", "cache-proxima-redis"]["spec"]
    assert deployment["replicas"] == 3 and budget["selector"] == deployment["selector"]
    assert deployment["template"]["spec"]["automountServiceAccountToken"] is False
    assert not rendered.of("Role").keys() - {"cache-proxima-keys"}
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
    peers = objects(case("defaults"))["Service", "cache-proxima-fleet"]["spec"]["selector"]
    assert by_port["fleet"] == [{"podSelector": {"matchLabels": peers}}]
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
    assert rendered.configuration()["nodes"] == "agent"
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
    assert rendered.configuration()["listeners"][0]["tls"]["required"] is False


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
