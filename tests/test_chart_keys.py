"""The chart in a cluster: the certificates of its peers are renewed, and their authority is exchanged."""

import base64
import json
import re
import subprocess

import pytest

from harness import SOAK, until
from harness.lab.release import SPACE
from harness.lab.witness import Witness

# One process has the lab.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "cache-proxima-keys", "namespace": SPACE},
}


def keys(lab):
    """The files of the Secret."""
    found = lab.get(f"/api/v1/namespaces/{SPACE}/secrets/{SECRET['metadata']['name']}")["data"]
    return {name: base64.b64decode(text) for name, text in found.items()}


def run(lab, name, *words):
    """The Job of the CronJob runs, with more words of its command."""
    place = f"--namespace={SPACE}"
    made = ["create", place, "job", name, "--from=cronjob/cache-proxima-renewal"]
    job = json.loads(lab.kubectl(*made, "--dry-run=client", "--output=json"))
    job["spec"]["template"]["spec"]["containers"][0]["args"] += words
    lab.apply(job)
    lab.kubectl("wait", place, f"job/{name}", "--for=condition=complete", "--timeout=50s")
    return lab.kubectl("logs", place, f"job/{name}")


def mounted(lab, pod):
    """The files as the kubelet has written them."""
    folder = f"/var/lib/kubelet/pods/{pod['metadata']['uid']}/volumes/kubernetes.io~secret/keys"
    node = lab.nodes[pod["spec"]["nodeName"]]
    return {name: node.run("cat", f"{folder}/{name}").encode() for name in ("ca.crt", "tls.crt", "tls.key")}


def reloads(lab, pod):
    """How often a proxy has taken changed files."""
    text = lab.http(pod, 9150, "/metrics")[1]
    return int(re.search(r"^proxima_tls_certificate_reloads_total (\d+)", text, re.MULTILINE)[1])


def openssl(folder, *words):
    done = subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)
    return done.stdout


def shortened(folder):
    """A certificate that is as `tls.crt`, and has ten days left."""
    names = openssl(folder, "x509", "-in", "tls.crt", "-noout", "-ext", "subjectAltName").decode()
    name = names.split("DNS:")[1].strip()
    (folder / "names").write_text(f"subjectAltName=DNS:{name}")
    openssl(folder, "req", "-new", "-key", "tls.key", "-subj", f"/CN={name}", "-out", "request")
    signed = ["-CA", "ca.crt", "-CAkey", "ca.key", "-days", "10", "-extfile", "names"]
    return openssl(folder, "x509", "-req", "-in", "request", *signed)


def test_a_certificate_that_ends_soon_is_renewed_by_the_cron_job(lab, release, tmp_path):
    release.ready(len(lab.nodes))
    before = keys(lab)
    for name, text in before.items():
        (tmp_path / name).write_bytes(text)
    soon = shortened(tmp_path)
    lab.apply({**SECRET, "data": {"tls.crt": base64.b64encode(soon).decode()}})
    assert keys(lab)["tls.crt"] == soon
    run(lab, "renewal-now")
    after = keys(lab)
    assert after["ca.crt"] == before["ca.crt"]
    assert after["tls.crt"] not in (soon, before["tls.crt"])
    (tmp_path / "renewed.crt").write_bytes(after["tls.crt"])
    # The command fails if the certificate ends before that.
    openssl(tmp_path, "x509", "-in", "renewed.crt", "-noout", "-checkend", str(80 * 86400))
    openssl(tmp_path, "verify", "-CAfile", "ca.crt", "renewed.crt")
    release.wait_until_coherent()


def test_the_authority_is_exchanged_without_an_error_or_a_stale_read(lab, release):
    lab.at_least(3)
    release.wait_until_coherent()
    first = keys(lab)
    with Witness(release, sorted(lab.nodes)) as witness:
        for number, step in enumerate(("is trusted beside", "has signed", "is not trusted any more")):
            pods = release.ready(len(lab.nodes))
            before = [reloads(lab, pod) for pod in pods]
            assert step in run(lab, f"rotation-{number}", "--rotate")
            secret = keys(lab)

            def follow():
                """Whether each proxy uses what its kubelet has written, and that is what the Secret has."""
                files = [mounted(lab, pod) for pod in pods]
                return all(each.items() <= secret.items() for each in files) and all(
                    reloads(lab, pod) > count for pod, count in zip(pods, before, strict=True)
                )

            until(follow, f"the new authority {step}", every=0.2)
            if SOAK or step == "is not trusted any more":
                # A proxy that begins makes all of its connections anew.
                lab.delete_pod(pods[number])
                until(lambda: release.has_other(pods[number]), "there is another pod", every=0.1)
                release.ready(len(lab.nodes))
            witness.more()
    print(witness)
    last = keys(lab)
    assert all(last[name] != first[name] for name in ("ca.crt", "ca.key", "tls.crt", "tls.key"))
    assert witness.wrong == []
    assert witness.errors == []
    release.wait_until_coherent()
