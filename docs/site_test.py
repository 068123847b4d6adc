"""The site's pages: all of them are reached, no link is broken, and drawings show the numbers."""

from __future__ import annotations

import html
import os
import pathlib
import posixpath
import re
import tarfile
import urllib.parse
from xml.etree import ElementTree

import pytest

from docs import numbers, plots

DOCS = pathlib.Path("docs")
DRAWN = {"build.md": 1, "client.md": 3, "kernels.md": 10, "models.md": 2, "plugin.md": 3}
"""How many tables at least of a page are drawn."""


def pages() -> set[str]:
    return {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}


def test_the_navigation_has_every_page_and_no_other() -> None:
    named = re.findall(r"^ +- [^:\n]+: (\S+\.md)$", pathlib.Path("mkdocs.yml").read_text(), re.M)
    assert len(named) == len(set(named))
    assert set(named) == pages()


@pytest.fixture(scope="module")
def site() -> dict[str, str | None]:
    """The built site: the text of its pages by their path, None for other files."""
    with tarfile.open(os.environ["SITE"]) as archive:
        found: dict[str, str | None] = {}
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None, f"{member.name} is no plain file"
            html_page = member.name.endswith(".html")
            found[member.name] = file.read().decode() if html_page else None
        return found


def test_every_page_and_every_crate_is_on_the_site(site: dict[str, str | None]) -> None:
    for page in pages():
        place = page.removesuffix(".md").removesuffix("index")
        assert posixpath.join(place, "index.html").lstrip("/") in site, page
    crates = (
        "tfp",
        "tfp_bindings",
        "tfp_core",
        "tfp_embedded",
        "tfp_kernels",
        "tfp_ops",
        "tfp_runtime",
        "tfp_sys",
    )
    for crate in crates:
        assert f"api/{crate}/index.html" in site
    assert "api/tfp_ops/math/fn.add_v2.html" in site


def test_no_link_is_broken(site: dict[str, str | None]) -> None:
    """Links of pages with their fragments, and the files that the crates' pages name."""
    marked = {
        name: set(re.findall(r'\b(?:id|name)="([^"]+)"', text))
        for name, text in site.items()
        if text is not None and not name.startswith("api/")
    }
    broken, followed = [], 0
    for name, text in site.items():
        for target in re.findall(r'<[a-z][^>]*?\s(?:href|src)="([^"]*)"', text or ""):
            parts = urllib.parse.urlsplit(html.unescape(target))
            if parts.scheme or parts.netloc or target in ("", "#") or name == "404.html":
                continue
            # The page of a trait that nothing implements names a script that is not written.
            if "/trait.impl/" in f"/{parts.path}":
                continue
            path = urllib.parse.unquote(parts.path)
            place = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            place = name if not path else place.removeprefix("./")
            if place not in site:
                place = posixpath.normpath(posixpath.join(place, "index.html"))
            if place not in site:
                broken.append(f"{name}: {target}")
            elif parts.fragment and place in marked:
                fragment = urllib.parse.unquote(parts.fragment)
                if fragment not in marked[place] and not fragment.startswith("__"):
                    broken.append(f"{name}: {target}")
            followed += 1
    assert not broken, "\n".join(broken[:20])
    assert followed > 10_000


def test_a_drawing_has_a_bar_per_number() -> None:
    table = (
        "| case | TFP | CPU | ratio | middle half of the ratios |\n|---|---|---|---|---|\n"
        "| A<B | 1 ms | 2 ms | 2.00 | 1.50 to 2.50 |\n"
        "| `C` | 3 ms | 1 ms | 0.33 loses | 0.30 to 0.40 |\n"
    )
    plot = plots.read(table)
    assert plot is not None
    assert plot.bars == (plots.Bar("A<B", 2.0, 1.5, 2.5), plots.Bar("C", 0.33, 0.3, 0.4))
    for less, colours in ((False, ["#2e7d32", "#c62828"]), (True, ["#c62828", "#2e7d32"])):
        drawing = ElementTree.fromstring(plots.draw("<all>", plot, less))
        bars = [each for each in drawing if each.tag.endswith("rect")]
        assert [bar.get("fill") for bar in bars] == colours
        # Of ratios 2 and 1/3 on a logarithmic scale; one begins where the other ends.
        wide, long = (float(bar.get("width", 0)) for bar in bars)
        assert long / wide == pytest.approx(1.6, abs=0.01)
        assert float(bars[0].get("x", 0)) == pytest.approx(float(bars[1].get("x", 0)) + long, abs=1)


def test_tables_without_numbers_to_draw_stay_as_they_are() -> None:
    text = "# A\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nrest\n"
    assert plots.add_plots(text, "performance/x.md") == text


def test_columns_of_numbers_are_set_to_the_right() -> None:
    rows = [["case", "x", "note"], ["a", "2704.65", "7"], ["b", "", "seven"], ["c", "1.5 ms", ""]]
    cells = [[f"<td>{cell}</td>" for cell in row] for row in rows]
    table = "<table>" + "".join(f"<tr>{''.join(row)}</tr>" for row in cells) + "</table>"
    right = re.findall(r'<td class="number">(.*?)</td>', numbers.on_page_content(table))
    assert right == ["x", "2705", "", "1.5 ms"]
    for text in ("2.64", "1,172", "3.1e-07", "5940 (5873 to 8182)", "12 MB", "33%", "1.50 loses"):
        assert numbers.is_number(text), text
    for text in ("2026-11-23", "TFP:0", "Zen 5", "1.2 to 1.4 of it", "0.9 of the peak"):
        assert not numbers.is_number(text), text


def test_the_front_page_has_the_numbers_of_the_measured_pages() -> None:
    """Each ratio `PEER: CASE` stands in the row of that case, after the heading of two threads."""
    device = (DOCS / "performance/plugin.md").read_text(encoding="utf-8")
    models = (DOCS / "performance/models.md").read_text(encoding="utf-8").split("## 2 threads")[1]
    rows = re.findall(
        r"^\| ([^:|]+): ([^|]+) \| ((?:\*\*)?[\d.]+(?:\*\*)?) \|$",
        (DOCS / "index.md").read_text(),
        re.M,
    )
    assert len(rows) == 8
    for peer, case, ratio in rows:
        if case.endswith(" as a crate"):
            lines = models.splitlines()
            header = next(line for line in lines if line.startswith("| model |")).split(" | ")
            name = case.removesuffix(" as a crate")
            cells = next(line for line in lines if line.startswith(f"| {name} |")).split(" | ")
            assert cells[header.index(peer) + 1] == ratio, (peer, case)
        else:
            start = case.replace("ResNet50, ", "ResNet50 inference, ")
            row = next(line for line in device.splitlines() if line.startswith(f"| {start}"))
            assert row.split(" | ")[3] == ratio, (peer, case)


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("performance/*.md")))
def test_the_measured_pages_are_drawn(page: str) -> None:
    text = (DOCS / "performance" / page).read_text(encoding="utf-8")
    drawn = plots.add_plots(text, f"performance/{page}")
    drawings = re.findall(r"<svg.*?</svg>", drawn)
    assert len(drawings) >= DRAWN.get(page, 0)
    for drawing in drawings:
        ElementTree.fromstring(drawing)
    assert re.sub(r"\n<div><svg.*?</svg></div>\n", "", drawn) == text
