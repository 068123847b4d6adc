"""The site's pages: all of them are reached, none is missing, and the drawings show the numbers."""

from __future__ import annotations

import json
import pathlib
import re
from xml.etree import ElementTree

from docs import plots

DOCS = pathlib.Path("docs")


def pages() -> set[str]:
    return {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}


def test_the_navigation_has_every_page_and_no_other() -> None:
    named = re.findall(r"^ +- [^:\n]+: (\S+\.md)$", pathlib.Path("mkdocs.yml").read_text(), re.M)
    assert len(named) == len(set(named))
    assert set(named) == pages()


def test_links_between_pages_lead_to_pages() -> None:
    for page in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).is_file(), f"{page}: {target}"


def test_drawings_are_well_formed_and_have_a_bar_per_case() -> None:
    cases = json.loads((DOCS / "performance/plugin.json").read_text())
    drawing = ElementTree.fromstring(plots.bars("<all>", cases))
    bars = [each for each in drawing if each.tag.endswith("rect")]
    assert len(bars) == len(cases) > 50
    colours = [bar.get("fill") == "#2e7d32" for bar in bars]
    assert colours == [case["ratio"][1] >= 1 for case in cases]
