"""Dashboards as Grafana reads them."""

from queries import with_labels

COLUMNS, STAT, PANEL = 24, (4, 4), (8, 8)
"""Grafana's grid, and the size of panels in it."""

SOURCE = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
DATA = {"type": "prometheus", "uid": "${source}"}


def dashboard(name, board):
    labels = ",".join(f'{label}=~"${label}"' for label in board["of"])
    panels, top = [], 0
    for row in board["rows"]:
        place = {"x": 0, "y": top, "w": COLUMNS, "h": 1}
        panels.append(
            {"type": "row", "title": row["title"], "gridPos": place, "collapsed": False, "panels": []}
        )
        top += 1
        kind, size = ("stat", STAT) if "stats" in row else ("timeseries", PANEL)
        for number, panel in enumerate(row.get("stats") or row["panels"]):
            below, column = divmod(number * size[0], COLUMNS)
            place = {"x": column, "y": top + below * size[1], "w": size[0], "h": size[1]}
            panels.append(drawn(panel, kind, place, labels))
        top += (below + 1) * size[1]
    for number, panel in enumerate(panels, 1):
        panel["id"] = number
    return {
        "uid": name,
        "title": board["title"],
        "description": board["about"],
        "tags": ["proxima"],
        "schemaVersion": 39,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [SOURCE, *(chosen(label, board["of"]) for label in board["of"])]},
        "panels": panels,
    }


def chosen(label, labels):
    """The choice of a label's value. Each narrows the choices behind it."""
    before = labels[: labels.index(label)]
    matchers = ",".join(f'{each}=~"${each}"' for each in before)
    query = f"label_values(proxima_build_info{{{matchers}}}, {label})"
    return {"name": label, "type": "query", "datasource": DATA, "query": query, "refresh": 2, "sort": 1}


def drawn(panel, kind, place, labels):
    targets = [
        {
            "refId": chr(ord("A") + number),
            "datasource": DATA,
            "expr": with_labels(query, labels).replace("RATE", "$__rate_interval"),
            "legendFormat": legend,
        }
        for number, (legend, query) in enumerate(panel["queries"].items())
    ]
    # Without thresholds everything above 80 would be red.
    steps = [{"color": "green", "value": None}]
    if "red" in panel:
        steps.append({"color": "red", "value": panel["red"]})
    thresholds = {"mode": "absolute", "steps": steps}
    return {
        "type": kind,
        "title": panel["title"],
        "description": panel["about"],
        "datasource": DATA,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel["unit"], "thresholds": thresholds}, "overrides": []},
        "targets": targets,
    }
