"""Rules as Prometheus reads them."""

import json

from queries import with_labels


def alerting(alert):
    """A rule as Prometheus knows it."""
    looks = "".join(f"\n$ {command}" for command in alert["look"])
    return {
        "alert": alert["alert"],
        "expr": alert["expr"],
        "for": alert["for"],
        "labels": {"severity": alert["severity"]},
        "annotations": {
            "summary": alert["summary"],
            "description": f"{alert['means']} {alert['do']}{looks}",
            "runbook": f"docs/operating.md#{alert['see']}",
        },
    }


def of_release(rule):
    """A rule of the chart, which looks at the pods of one release alone."""
    text = json.dumps({**rule, "expr": with_labels(rule["expr"], "SELECTOR")})
    return json.loads(text.replace("$labels.instance", "$labels.pod"))
