"""What the documentation names is there."""

import re

import pytest

from harness.proxy import ROOT

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")]
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")
SOURCE = re.compile(r"`((?:proxy|wire|bench|agent|tests|scripts|examples|docs)/[\w./-]+)`")
PLACEHOLDER = re.compile(r"NAME|DATE")


def name_of(page):
    return str(page.relative_to(ROOT))


def anchors(page):
    """As hosts of repositories make them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for path, anchor in LINK.findall(page.read_text()):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_named_in_the_text_are_there(page):
    named = [path for path in SOURCE.findall(page.read_text()) if not PLACEHOLDER.search(path)]
    assert [path for path in named if not (ROOT / path).exists()] == []
