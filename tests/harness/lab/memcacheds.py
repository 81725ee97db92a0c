"""A memcached on each node of a lab, behind the Service `mc`."""


def memcacheds(lab, headless=False, linger=0):
    """Its objects. A headless Service has no address of its own. A server that is to end goes on for so many
    seconds."""
    container = {"name": "memcached", "image": lab.image("memcached"), "imagePullPolicy": "Never"}
    if linger:
        container["lifecycle"] = {"preStop": {"sleep": {"seconds": linger}}}
    labels = {"app": "mc"}
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "mc"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 2 * linger + 1},
            },
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "mc"},
        "spec": {"selector": labels, "ports": [{"port": 11211}]},
    }
    if headless:
        service["spec"]["clusterIP"] = "None"
    return [daemons, service]
