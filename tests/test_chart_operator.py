"""The chart's operator: its rights, what it mounts, who reaches it, its kind, and the server of versions."""

import pytest
import yaml

from harness.helm import CHART, PROGRAM, objects
from harness.proxy import ROOT

pytestmark = pytest.mark.skipif(
    not PROGRAM.exists(), reason="there is no .cache/helm: scripts/helm.sh builds it"
)

CASES = ROOT / "tests/charts/good"
NAME = "cache-proxima-operator"
DEFINITION = ROOT / "operator/config/crd/proxima.io_smartupdates.yaml"
KEEP = "helm.sh/resource-policy"

ENABLED = ["operator.enabled=true"]
"""The operator beside the cache of a fleet, with nothing else said."""


@pytest.fixture(scope="module")
def full():
    return objects(CASES / "operator.yaml")


def granted(role):
    """Each right: group, resource, verb."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def rights(rendered):
    return granted(rendered["Role", NAME])


def test_the_operator_may_look_evict_and_tell_and_nothing_else():
    read = [
        ("proxima.io", "smartupdates"),
        ("apps", "statefulsets"),
        ("", "pods"),
        ("discovery.k8s.io", "endpointslices"),
        ("batch", "jobs"),
    ]
    expected = {(*kind, verb) for kind in read for verb in ("get", "list", "watch")}
    expected |= {("proxima.io", "smartupdates/status", verb) for verb in ("get", "update", "patch")}
    expected |= {("", "pods/eviction", "create")}
    expected |= {(group, "events", verb) for group in ("", "events.k8s.io") for verb in ("create", "patch")}
    expected |= {("coordination.k8s.io", "leases", verb) for verb in ("get", "create", "update")}
    assert rights(objects(sets=ENABLED)) == expected


def test_images_are_set_and_backups_read_only_where_the_values_ask_for_it(full):
    asked = rights(full) - rights(objects(sets=ENABLED))
    pxc, mariadb = "pxc.percona.com", "k8s.mariadb.com"
    kinds = [(pxc, "perconaxtradbclusterbackups"), (mariadb, "backups"), (mariadb, "physicalbackups")]
    assert asked == {
        ("apps", "statefulsets", "patch"),
        *((pxc, "perconaxtradbclusters", verb) for verb in ("get", "patch")),
        *((mariadb, "mariadbs", verb) for verb in ("get", "patch")),
        *((*kind, verb) for kind in kinds for verb in ("get", "list", "watch")),
    }


def test_the_charts_rights_are_those_of_the_manifests_beside_the_operator(full):
    files = sorted((ROOT / "operator/config/rbac").glob("*.yaml"))
    written = [each for file in files for each in yaml.safe_load_all(file.read_text())]
    rules = [granted(each) for each in written if each["kind"] == "Role"]
    # Leaders tell of the Lease by events of the older form.
    of_the_lease = {("", "events", verb) for verb in ("create", "patch")}
    assert len(rules) == 3 and set().union(of_the_lease, *rules) == rights(full)


def test_the_operator_has_the_token_of_its_proxies_as_a_file_and_no_right_to_secrets(full):
    [proxy] = [pod for (_, name), pod in full.pods().items() if name == "cache-proxima-sessions"]
    operator = full["Deployment", NAME]["spec"]["template"]
    tokens = [
        [each["secret"]["secretName"] for each in pod["spec"]["volumes"] if "secret" in each]
        for pod in (proxy, operator)
    ]
    assert tokens == [["cache-proxima-token"]] * 2
    [container] = operator["spec"]["containers"]
    [mount] = container["volumeMounts"]
    [option] = [each for each in container["args"] if each.startswith("--token-file=")]
    assert option == f"--token-file={mount['mountPath']}/token" and mount["readOnly"]
    assert not [right for right in rights(full) if right[1] in ("secrets", "nodes", "pods/exec")]
    elsewhere = objects(CASES / "operator-alone.yaml")["Deployment", NAME]["spec"]["template"]["spec"]
    assert [each["secret"]["secretName"] for each in elsewhere["volumes"]] == ["proxies-token"]


def test_containers_are_restricted_and_have_a_limit_of_memory(full):
    for name in (NAME, "cache-proxima-versions"):
        [container] = full["Deployment", name]["spec"]["template"]["spec"]["containers"]
        security = container["securityContext"]
        assert security["capabilities"] == {"drop": ["ALL"]} and security["runAsNonRoot"]
        assert security["readOnlyRootFilesystem"] and security["allowPrivilegeEscalation"] is False
        assert "memory" in container["resources"]["limits"] and "cpu" not in container["resources"]["limits"]
        ports = {each["name"] for each in container["ports"]}
        assert container["livenessProbe"]["httpGet"]["port"] in ports
        assert container["readinessProbe"]["httpGet"]["port"] in ports


def test_the_admin_port_is_for_the_operator_and_for_whoever_reads_metrics(full):
    rules = full["NetworkPolicy", "cache-proxima-sessions"]["spec"]["ingress"]
    [peers] = [rule["from"] for rule in rules if rule["ports"] == [{"port": "admin"}]]
    operator = full["Deployment", NAME]["spec"]["selector"]["matchLabels"]
    assert peers == [
        {"namespaceSelector": {"matchLabels": {"team": "monitoring"}}},
        {"podSelector": {"matchLabels": operator}},
    ]
    without = objects()["NetworkPolicy", "cache-proxima"]["spec"]["ingress"]
    [peers] = [rule["from"] for rule in without if rule["ports"] == [{"port": "admin"}]]
    assert not [peer for peer in peers if "podSelector" in peer]


def test_the_operator_finds_ready_proxies_alone_by_a_service_of_admin_ports(full):
    service = full["Service", "cache-proxima-sessions-admin"]["spec"]
    assert service["clusterIP"] == "None" and "publishNotReadyAddresses" not in service
    assert [each["name"] for each in service["ports"]] == ["admin"]
    pod = full.pods()["Deployment", "cache-proxima-sessions"]
    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    # Applications' Service may be open to the world.
    assert [each["port"] for each in full["Service", "cache-proxima-sessions"]["spec"]["ports"]] == [6379]
    assert ("Service", "cache-proxima-sessions-admin") not in objects(
        CASES / "operator.yaml", sets=["operator.enabled=false"]
    )


def test_the_definition_of_the_kind_is_the_operators_to_the_byte_and_is_kept():
    assert (CHART / "smartupdates.yaml").read_bytes() == DEFINITION.read_bytes(), (
        f"cp {DEFINITION} {CHART / 'smartupdates.yaml'}"
    )
    own = yaml.safe_load(DEFINITION.read_text())
    rendered = objects(sets=ENABLED)["CustomResourceDefinition", "smartupdates.proxima.io"]
    assert rendered["metadata"]["annotations"].pop(KEEP) == "keep"
    assert rendered == own
    for sets in (["operator.enabled=false"], [*ENABLED, "crds.enabled=false"]):
        assert not objects(sets=sets).of("CustomResourceDefinition")


def test_the_api_server_takes_the_definition(plane):
    rendered = objects(sets=ENABLED)["CustomResourceDefinition", "smartupdates.proxima.io"]
    # Other tests may have made it already.
    place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/smartupdates.proxima.io"
    asked = f"{place}?dryRun=All&fieldValidation=Strict&fieldManager=helm&force=true"
    status, answer = plane.ask("PATCH", asked, rendered, kind="application/apply-patch+yaml")
    assert status in (200, 201), answer


def test_versions_are_a_file_in_the_form_of_the_api(full):
    written = yaml.safe_load(full["ConfigMap", "cache-proxima-versions"]["data"]["versions.yaml"])
    said = yaml.safe_load((CASES / "operator.yaml").read_text())["versions"]["products"]
    assert written == {"versions": said}
    pod = full["Deployment", "cache-proxima-versions"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    [mount] = container["volumeMounts"]
    assert container["args"] == ["versions", f"--file={mount['mountPath']}/versions.yaml", "--listen=:11000"]
    assert not pod["automountServiceAccountToken"] and "serviceAccountName" not in pod


def test_versions_may_be_those_of_a_config_map_that_somebody_else_writes():
    rendered = objects(sets=["versions.enabled=true", "versions.configMap=mine", "versions.port=11001"])
    pod = rendered["Deployment", "cache-proxima-versions"]["spec"]["template"]["spec"]
    assert [each["configMap"]["name"] for each in pod["volumes"]] == ["mine"]
    assert ("ConfigMap", "cache-proxima-versions") not in rendered
    [port] = rendered["Service", "cache-proxima-versions"]["spec"]["ports"]
    assert port["port"] == 11001 and not rendered.of("CustomResourceDefinition")


def test_without_the_operator_nothing_of_it_is_rendered():
    off = objects(CASES / "operator.yaml", sets=["operator.enabled=false", "versions.enabled=false"])
    assert off and not [
        name for _, name in off if name.endswith(("-operator", "-versions", "-sessions-admin"))
    ]
    assert not objects().keys() & {("Deployment", NAME), ("Deployment", "cache-proxima-versions")}


def test_the_operator_upgraded_moves_no_pod_of_a_proxy():
    """Neither another image of the operator nor its coming changes a template of another pod."""
    before = objects(CASES / "operator.yaml", sets=["operator.enabled=false"]).pods()
    after = objects(CASES / "operator.yaml", sets=["operator.image.tag=9.9.9"]).pods()
    others = {owner: pod for owner, pod in after.items() if owner[1] != NAME}
    versions = ("Deployment", "cache-proxima-versions")
    assert before.pop(versions) != others.pop(versions)
    assert before == others
