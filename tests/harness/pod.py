"""What the kubelet gives the process of a pod: an account, and where the API server is."""

import pathlib

ACCOUNT = "/var/run/secrets"
"""Where a pod finds its account; below it `kubernetes.io/serviceaccount`."""


class Pod:
    """A process behind the command `before` finds itself in a pod of this namespace on the node n1."""

    def __init__(self, folder, authority, port, namespace, token):
        self._account = pathlib.Path(folder) / "account/kubernetes.io/serviceaccount"
        self._account.mkdir(parents=True)
        (self._account / "ca.crt").write_text(authority.file.read_text())
        (self._account / "namespace").write_text(namespace)
        self.give(token)
        place = ["KUBERNETES_SERVICE_HOST=127.0.0.1", f"KUBERNETES_SERVICE_PORT={port}", "NODE_NAME=n1"]
        mounts = f"mkdir -p {ACCOUNT} && mount --bind {folder}/account {ACCOUNT}"
        self.before = ["env", *place, "unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh"]

    def give(self, token):
        """Its token is this one now."""
        new = self._account / "token.new"
        new.write_text(token)
        new.rename(self._account / "token")
