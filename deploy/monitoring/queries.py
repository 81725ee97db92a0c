"""Queries of Prometheus, and the metrics in them."""

import re

from families import bare, families

METRIC = re.compile(r"\b((?:proxima|process)[_:][\w:]+)(?:\{([^}]*)\})?")


class UnknownMetric(Exception):
    """A query names a metric that neither the proxy nor a recording rule has."""


def with_labels(query, labels):
    """The query with these matchers at each metric."""
    return METRIC.sub(lambda at: f"{at[1]}{{{','.join(filter(None, [at[2], labels]))}}}", query)


def check(queries, recorded):
    """Refuses a metric that is neither one of the proxy's nor one of the recorded ones."""
    for name in {name for query in queries for name, _ in METRIC.findall(query)}:
        if name not in recorded and bare(name) not in families():
            raise UnknownMetric(name)
