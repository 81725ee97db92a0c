"""The objects of a cluster, as its administrator sees and changes them."""

import json

import yaml

from .. import until


def _documents(manifest):
    """The objects of a manifest: a text of YAML, an object, or a list of objects."""
    if isinstance(manifest, str):
        return [document for document in yaml.safe_load_all(manifest) if document]
    return manifest if isinstance(manifest, list) else [manifest]


def is_ready(thing):
    """Whether a node or a pod says that it is ready."""
    conditions = thing.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def node_of(pod):
    """The name of a pod's node; None: it has no place yet."""
    return pod["spec"].get("nodeName")


def path_of(pod):
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


class Objects:
    """The objects behind an API server."""

    def __init__(self, plane):
        self.plane = plane
        self._kinds = {}

    def get(self, path):
        """What the API server answers there."""
        status, answer = self.plane.ask("GET", path)
        assert status == 200, answer
        return json.loads(answer)

    def apply(self, manifest):
        """Makes these objects, or makes them so. What the schema does not know is an error."""
        for each in _documents(manifest):
            path = f"{self._path(each)}?fieldManager=tests&force=true&fieldValidation=Strict"
            body = "application/apply-patch+yaml"
            status, answer = self.plane.ask("PATCH", path, each, kind=body)
            assert status in (200, 201), answer

    def delete(self, manifest):
        """Deletes these objects, and waits until they and all that is theirs are gone."""
        paths = [self._path(each) for each in reversed(_documents(manifest))]
        for path in paths:
            status, answer = self.plane.ask("DELETE", path, {"propagationPolicy": "Foreground"})
            assert status in (200, 202, 404), answer
        until(lambda: all(self.plane.ask("GET", path)[0] == 404 for path in paths), f"{paths} are gone")

    def _path(self, thing):
        version, kind = thing["apiVersion"], thing["kind"]
        group = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if (group, kind) not in self._kinds:
            found = {each["kind"]: each for each in self.get(group)["resources"] if "/" not in each["name"]}
            self._kinds[group, kind] = found[kind]
        resource = self._kinds[group, kind]
        namespace = thing["metadata"].get("namespace", "default")
        place = f"/namespaces/{namespace}" if resource["namespaced"] else ""
        return f"{group}{place}/{resource['name']}/{thing['metadata']['name']}"

    def pods(self, selector, namespace="default"):
        """The pods with these labels, `app=mc`."""
        return self.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")["items"]

    def ready(self, selector, count, namespace="default"):
        """Waits until there are so many pods with these labels, all of them ready, and returns them."""

        def found():
            pods = self.pods(selector, namespace)
            return pods if len(pods) == count and all(map(is_ready, pods)) else None

        return until(found, f"{count} pods with {selector} are ready", every=0.1)

    def delete_pod(self, pod):
        """Deletes a pod, and waits for nothing."""
        status, answer = self.plane.ask("DELETE", path_of(pod))
        assert status in (200, 202), answer
