"""Links in the documentation lead somewhere, and decisions have one form."""

import re

import pytest

from harness.proxy import ROOT

DECISIONS = ROOT / "docs/decisions"
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/*.md"),
    *DECISIONS.glob("*.md"),
    *ROOT.glob("examples/*/*.md"),
    *ROOT.glob("charts/*/*.md"),
]
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")
DAY = r"\d{4}-\d\d-\d\d"
FORM = re.compile(
    rf"# (?P<number>\d+)\. (?P<title>[^\n]+)\n\nDate: {DAY}\n\n"
    rf"Status: (?P<status>accepted|accepted, amended {DAY}|superseded by \d+)\n\n## Context\n.*"
    r"\n## Decision\n.*\n## Consequences\n.*",
    re.S,
)


def name_of(page):
    return str(page.relative_to(ROOT))


def anchors(page):
    """The anchors that hosts of repositories make of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_in_documents_lead_somewhere(page):
    for path, anchor in LINK.findall(page.read_text()):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize("page", sorted(DECISIONS.glob("[0-9]*.md")), ids=lambda page: page.stem)
def test_a_decision_has_the_form_and_a_row_in_the_table(page):
    decision = FORM.fullmatch(page.read_text())
    assert decision, "the form is in docs/decisions/README.md"
    number = int(decision["number"])
    row = f"| [{number:04}]({page.name}) | {decision['title']} | {decision['status']} |"
    assert row in (DECISIONS / "README.md").read_text()
