"""The table of rules that `make soak` switches off is about the sources as they are."""

import importlib.util

import pytest

from harness.proxy import ROOT

SPEC = importlib.util.spec_from_file_location("mutants", ROOT / "tests/mutants/run.py")
mutants = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mutants)


@pytest.mark.parametrize("rule", mutants.rules(), ids=lambda rule: rule[3])
def test_a_rule_that_is_to_be_switched_off_stands_in_its_file_exactly_once(rule):
    file, text, instead, _ = rule
    assert mutants.changed(file, text, instead).count(instead) >= 1
