"""The chart in a cluster: the certificates of its peers are renewed."""

import base64
import subprocess

import pytest

from harness.lab.release import SPACE

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
    place = f"--namespace={SPACE}"
    lab.kubectl("create", place, "job", "renewal-now", "--from=cronjob/cache-proxima-renewal")
    lab.kubectl("wait", place, "job/renewal-now", "--for=condition=complete", "--timeout=50s")
    after = keys(lab)
    assert after["ca.crt"] == before["ca.crt"]
    assert after["tls.crt"] not in (soon, before["tls.crt"])
    (tmp_path / "renewed.crt").write_bytes(after["tls.crt"])
    # The command fails if the certificate ends before that.
    openssl(tmp_path, "x509", "-in", "renewed.crt", "-noout", "-checkend", str(80 * 86400))
    openssl(tmp_path, "verify", "-CAfile", "ca.crt", "renewed.crt")
    release.wait_until_coherent()
