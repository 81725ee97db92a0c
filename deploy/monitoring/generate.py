"""Writes what Prometheus and Grafana read, and the pages about it, from rules.yaml and dashboards.yaml.

.venv/bin/python deploy/monitoring/generate.py
"""

import json
import pathlib

import grafana
import pages
import yaml
from families import ROOT
from queries import check
from rules import alerting, of_release

HERE = pathlib.Path(__file__).resolve().parent


def described(name):
    return yaml.safe_load((HERE / name).read_text())


def as_yaml(value, source):
    text = yaml.safe_dump(value, sort_keys=False, width=100)
    return f"# {pages.NOTICE.format(source)}\n{text}"


def files():
    """Each generated file, with its text."""
    rules, boards = described("rules.yaml"), described("dashboards.yaml")
    rows = [row for board in boards.values() for row in board["rows"]]
    drawn = [panel for row in rows for panel in row.get("stats") or row["panels"]]
    queries = [query for panel in drawn for query in panel["queries"].values()]
    all_rules = [*rules["records"], *map(alerting, rules["alerts"])]
    check([*queries, *(rule["expr"] for rule in all_rules)], {rule["record"] for rule in rules["records"]})
    drawings = {
        HERE / f"{name}.json": json.dumps(grafana.dashboard(name, board), indent=1) + "\n"
        for name, board in boards.items()
    }
    groups = {"groups": [{"name": "proxima", "rules": all_rules}]}
    return {
        HERE / "proxima.rules.yaml": as_yaml(groups, "rules.yaml"),
        ROOT / "charts/proxima/alerts.yaml": as_yaml([*map(of_release, all_rules)], "rules.yaml"),
        ROOT / "docs/alerts.md": pages.alerts(rules["alerts"]),
        ROOT / "docs/dashboards.md": pages.dashboards(boards),
        **drawings,
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
