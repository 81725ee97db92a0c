"""Comments and pages are whole sentences: none begins with a word that leaves its subject to be guessed."""

import re

import pytest

from harness.proxy import ROOT

ROOTS = ("proxy/src", "wire/src", "bench/src")
SOURCES = sorted(path for root in ROOTS for path in (ROOT / root).rglob("*.rs"))
PAGES = sorted(
    {
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*/*.md"),
        *ROOT.glob("charts/*/*.md"),
    }
)

COMMENT = re.compile(r"\s*(//[/!]?)(?: (.*)|$)")
HEAD = re.compile(r"(That|Whom|In whose|Whose)\b")
NONE = re.compile(r"`None`: it is none\b(?! of)")
ANYWHERE = re.compile(rf"(?:^|[.:!?|*] +|\*\*){HEAD.pattern}|{NONE.pattern}")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)


def in_code(text):
    """The first lines of paragraphs of comments that begin with such a word, and fragments about `None`."""
    found, before = [], None
    for number, line in enumerate(text.splitlines(), 1):
        comment = COMMENT.match(line)
        kind, words = (comment[1], comment[2] or "") if comment else (None, "")
        # A paragraph of a comment begins behind an empty line of it.
        if kind and (kind != before and HEAD.match(words) or NONE.search(words)):
            found.append(f"{number}: {words}")
        before = kind if words else None
    return found


def in_page(text):
    """The sentences of a page that begin with such a word."""
    without = FENCED.sub("", text)
    paragraphs = re.split(r"\n\s*\n|\n\s*(?:[*-]|\d+\.) |\n(?=\|)", without)
    joined = (" ".join(paragraph.split()) for paragraph in paragraphs)
    return [
        found[0] for paragraph in joined for found in re.finditer(rf"{ANYWHERE.pattern}.{{0,60}}", paragraph)
    ]


def test_no_comment_begins_with_a_word_without_its_subject():
    found = {str(path.relative_to(ROOT)): in_code(path.read_text()) for path in SOURCES}
    assert SOURCES and {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sentence_of_a_page_begins_with_a_word_without_its_subject(page):
    assert in_page(page.read_text()) == []


@pytest.mark.parametrize(
    "head",
    [
        "That is closed.",
        "Whom it asks.",
        "In whose manner it answers.",
        "`None`: it is none.",
        "Whose it is.",
    ],
)
def test_such_a_sentence_is_found(head):
    for kind in ("//", "///", "//!"):
        assert in_code(f"let x = 1;\n    {kind} {head}\n    {kind} More.\n") == [f"2: {head}"]
        assert in_code(f"{kind} First.\n{kind}\n{kind} {head}\n") == [f"3: {head}"]
    for page in (
        f"{head}\n",
        f"A sentence.\n{head}\n",
        f"* {head}\n",
        f"| a | b. {head} |\n",
        f"**{head}**\n",
    ):
        assert len(in_page(page)) == 1, page
    assert in_page("It is said that this is so: that one is not.\n") == []
    assert in_code("// It is said\n// That way.\n") == []
