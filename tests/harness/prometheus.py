"""A real Prometheus with the rules of deploy/monitoring."""

import json
import pathlib
import time
import urllib.parse
import urllib.request

import yaml

from . import PATIENCE, ports
from .program import Program
from .proxy import ROOT

RULES = ROOT / "deploy/monitoring/proxima.rules.yaml"
EVERY = 1
"""Seconds between two looks at a proxy."""


class Prometheus(Program):
    """It asks the proxies at these admin ports, as one job."""

    def __init__(self, folder, admins, job="proxima"):
        folder = pathlib.Path(folder)
        file = folder / "prometheus.yaml"
        often = {"scrape_interval": f"{EVERY}s", "scrape_timeout": f"{EVERY}s"}
        config = {
            "global": {**often, "evaluation_interval": f"{EVERY}s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": job, "static_configs": [{"targets": list(admins)}]}],
        }
        file.write_text(yaml.safe_dump(config))
        self._begun = time.time()
        address = ports.address()
        options = {"config.file": file, "storage.tsdb.path": folder / "data", "web.listen-address": address}
        super().__init__(["prometheus", *(f"--{name}={value}" for name, value in options.items())], address)

    def answers(self):
        with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=PATIENCE) as answer:
            return answer.status == 200

    def api(self, path, **words):
        """What the API answers."""
        asked = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return json.load(answer)["data"]

    def values(self, query):
        """All numbers that a panel would show since the start; what is not a number it does not show."""
        words = {"start": self._begun, "end": time.time(), "step": EVERY}
        series = self.api("query_range", query=query, **words)["result"]
        return [value for one in series for _, value in one["values"] if value != "NaN"]

    def rules(self):
        """The state of each rule, by its name."""
        [group] = self.api("rules")["groups"]
        return {rule["name"]: rule for rule in group["rules"]}
