"""Rules and dashboards are what their descriptions say and name what exists, each alert fires when it should,
and the pages have a line for every metric."""

import functools
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from harness import helm
from harness.proxy import ROOT

sys.path.insert(0, str(ROOT / "deploy/monitoring"))

import families  # noqa: E402
import generate  # noqa: E402
import queries  # noqa: E402
import rules  # noqa: E402

RULES = ROOT / "deploy/monitoring/proxima.rules.yaml"
CASES = yaml.safe_load((ROOT / "tests/monitoring/alerts.yaml").read_text())
ALERTS = {rule["alert"]: rule for rule in generate.described("rules.yaml")["alerts"]}
PAGES = sorted(ROOT.glob("docs/*.md"))
METRIC = re.compile(r"`(?:…|[^`\n]*?\b)((?:proxima|process)_\w+)[^`\n]*`")
NO_METRICS = re.compile(r"proxima_(bench|consistency|monitor|server_)$")


@pytest.fixture(scope="module")
def promtool():
    """Runs promtool to its end, which must be good."""
    if not shutil.which("promtool"):
        pytest.skip("promtool is missing: scripts/prepare.sh installs it")

    def run(*arguments):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr

    return run


@functools.cache
def named():
    """The metrics that pages name in code, by page."""
    pages = {page.name: set(METRIC.findall(page.read_text())) for page in PAGES}
    return {page: {name for name in names if not NO_METRICS.match(name)} for page, names in pages.items()}


@pytest.mark.parametrize("path", generate.files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_generated_file_is_what_its_description_says(path):
    assert path.read_text() == generate.files()[path], "run deploy/monitoring/generate.py"


def test_a_metric_that_is_made_up_is_refused():
    with pytest.raises(queries.UnknownMetric, match="proxima_nowhere_total"):
        queries.check(["sum(rate(proxima_nowhere_total[5m]))"], set())


def test_labels_are_put_at_each_metric_of_a_query():
    query = 'sum(a:b) + proxima_x / on (job) proxima:y{z="proxima"} > 7 and up'
    labelled = 'sum(a:b) + proxima_x{L} / on (job) proxima:y{z="proxima",L} > 7 and up'
    assert queries.with_labels(query, "L") == labelled


@pytest.mark.parametrize("page", [page.name for page in PAGES])
def test_each_metric_that_a_page_names_exists(page):
    assert {name for name in named()[page] if families.bare(name) not in families.families()} == set()


def test_each_metric_that_exists_has_a_line_in_the_pages():
    documented = {families.bare(name) for names in named().values() for name in names}
    assert families.families() - documented == set(), "docs/monitoring.md has the place for them"


def test_each_alert_has_a_case():
    assert list(CASES) == list(ALERTS)


def test_promtool_takes_the_rules(promtool):
    promtool("check", "rules", str(RULES))


def test_promtool_takes_the_rules_of_a_release_which_look_at_its_pods_alone(promtool, tmp_path):
    if not helm.PROGRAM.exists():
        pytest.skip("scripts/helm.sh has not built helm")
    [spec] = [each["spec"] for each in helm.objects().of("PrometheusRule").values()]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(spec))
    promtool("check", "rules", str(file))
    [group] = spec["groups"]
    for rule in group["rules"]:
        looks_at = queries.METRIC.findall(rule["expr"])
        assert all('service="cache-proxima-admin"' in labels for _, labels in looks_at), rule
    assert [rule["alert"] for rule in group["rules"] if "alert" in rule] == list(ALERTS)


@pytest.mark.parametrize("is_firing", [True, False], ids=["fires", "quiet"])
@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_fires_when_it_should_and_only_then(name, is_firing, promtool, tmp_path):
    rule, file = rules.alerting(ALERTS[name]), tmp_path / "case.yaml"
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": name, "rules": [rule]}]}))
    file.write_text(yaml.safe_dump(as_test(rule, CASES[name], is_firing)))
    promtool("test", "rules", str(file))


def as_test(rule, case, is_firing):
    """A case in promtool's words, with the rule in a file beside it: many rules take long."""
    samples = case["fires" if is_firing else "quiet"]
    series = [{"series": completed(series), "values": values} for series, values in samples.items()]
    annotations = {key: rendered(text, case["labels"]) for key, text in rule["annotations"].items()}
    alert = {"exp_labels": {**rule["labels"], **case["labels"]}, "exp_annotations": annotations}
    checked = {"eval_time": "150m", "alertname": rule["alert"], "exp_alerts": [alert] if is_firing else []}
    test = {"interval": "1m", "input_series": series, "alert_rule_test": [checked]}
    return {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}


def completed(series):
    """A series with the job and, unless it names one, the instance of the cases."""
    name, _, labels = series.rstrip("}").partition("{")
    if "instance=" not in labels:
        labels = ",".join(filter(None, [labels, 'instance="10.0.0.1:9150"']))
    return f'{name}{{{labels},job="proxima"}}'


def rendered(text, labels):
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda label: labels[label[1]], text)
