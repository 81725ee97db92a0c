"""The EndpointSlices of a Service, which a test posts as controllers would."""

from .lab.control_plane import PROXY
from .pod import Pod


class Namespace:
    """A namespace with a Service, and a pod's account in it for a proxy behind the command `before`."""

    def __init__(self, plane, folder, name, service="mc"):
        self._plane, self.name, self.service = plane, name, service
        plane.make("/api/v1/namespaces", {"metadata": {"name": name}})
        self.before = Pod(folder, plane.authority, plane.port, name, PROXY).before

    def let(self, what="endpointslices", group="discovery.k8s.io", verbs=("get", "list", "watch")):
        """Lets the proxy follow EndpointSlices here, or do something else."""
        rules = [{"apiGroups": [group], "resources": [what], "verbs": list(verbs)}]
        place = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.name}"
        self._plane.make(f"{place}/roles", {"metadata": {"name": "proxy"}, "rules": rules})
        self._plane.make(
            f"{place}/rolebindings",
            {
                "metadata": {"name": "proxy"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "proxy"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "proxy"}],
            },
        )

    @property
    def _path(self):
        return f"/apis/discovery.k8s.io/v1/namespaces/{self.name}/endpointslices"

    def set(self, name, *endpoints, port=11211, family="IPv4"):
        """A slice has these endpoints now."""
        slice = {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": self.service}},
            "addressType": family,
            "endpoints": list(endpoints),
            "ports": [{"name": "mc", "port": port, "protocol": "TCP"}],
        }
        status, _ = self._plane.ask("GET", f"{self._path}/{name}")
        if status == 404:
            self._plane.make(self._path, slice)
            return
        status, answer = self._plane.ask("PUT", f"{self._path}/{name}", slice)
        assert status == 200, answer

    def delete(self, name):
        status, answer = self._plane.ask("DELETE", f"{self._path}/{name}")
        assert status == 200, answer
