"""A backup, as the operator knows it: a Job that is active."""

from .galera import SPACE


def backup(lab):
    """A Job that runs until it is deleted."""
    container = {"name": "backup", "image": lab.image("pause"), "imagePullPolicy": "Never"}
    labels = {"app": "backup"}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "backup", "namespace": SPACE, "labels": labels},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": pod}},
    }
