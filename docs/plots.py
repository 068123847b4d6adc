"""Draws the tables of the performance pages and of the front page, for the site.

A table with ratios gets bars on a logarithmic scale, green where we are the faster side. A table of
seconds gets bars from zero. The numbers are those of the page: there are no others.
"""

from __future__ import annotations

import dataclasses
import html
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

FOLDER: Final = "performance/"
HOME: Final = "index.md"
OURS_OVER_THEIRS: Final = (
    "performance/client.md",
    "performance/distributed.md",
    "performance/loading.md",
)
"""Pages whose ratios are our time over the other's, so that less is better."""

ROW: Final = 15
LEFT: Final = 300
WIDTH: Final = 560
RIGHT: Final = 70
SPAN: Final = math.log2(16)
"""The scale of ratios goes from 1/16 to 16; what is beyond ends at its edge, with its number."""

_TABLE: Final = re.compile(r"^\|.*\|\n\|[-:| ]+\|\n(?:\|.*\|\n?)+", re.M)
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")


@dataclasses.dataclass(frozen=True)
class Bar:
    """A number of a table.

    Attributes:
        label: What it is about.
        value: The number.
        low: Where its spread begins.
        high: Where it ends.
    """

    label: str
    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Plot:
    """What is drawn of a table.

    Attributes:
        unit: `ratio` or `seconds`.
        bars: The numbers from top to bottom.
    """

    unit: str
    bars: tuple[Bar, ...]


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


def _numbers(cell: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(cell)]


def _column(header: Sequence[str], name: str) -> int | None:
    return header.index(name) if name in header else None


def read(table: str) -> Plot | None:
    """Finds what there is to draw in a table of Markdown; None if nothing."""
    lines = table.strip().splitlines()
    header, rows = _cells(lines[0]), [_cells(line) for line in lines[2:]]
    mean = _column(header, "geometric mean")
    if mean is not None:
        worst, best = header.index("worst"), _column(header, "best") or mean
        bars = []
        for row in rows:
            label = ", ".join(row[:mean])
            if not any(cell.isalpha() for cell in label):
                label = ", ".join(map(" ".join, zip(header[:mean], row, strict=False)))
            bars.append(Bar(label, *(_numbers(row[at])[0] for at in (mean, worst, best))))
        return Plot("ratio", tuple(bars))
    seconds = _column(header, "seconds")
    if seconds is not None:
        values = [(row[0], _numbers(row[seconds])[0]) for row in rows]
        return Plot("seconds", tuple(Bar(name, value, value, value) for name, value in values))
    columns = [at for at, name in enumerate(header) if name.endswith("ratio") or " / " in name]
    middle = _column(header, "middle half of the ratios")
    found = []
    for row in rows:
        for at in columns:
            numbers = _numbers(row[at])
            if not numbers:
                continue
            of = header[at].removesuffix("ratio").strip() or header[at - 1].partition(",")[0]
            label = row[0] if len(columns) == 1 else f"{row[0]}: {of}"
            spread = _numbers(row[middle]) if middle is not None else []
            low, high = spread if len(spread) == 2 else (numbers[0], numbers[0])
            found.append(Bar(label, numbers[0], low, high))
    return Plot("ratio", tuple(found)) if found else None


def _grid(plot: Plot) -> Iterator[tuple[float, str]]:
    """Gives the numbers and the labels of the scale."""
    if plot.unit == "ratio":
        for power in range(-4, 5):
            yield 2.0**power, f"{2**power}x" if power >= 0 else f"1/{2**-power}"
    else:
        most = max(bar.value for bar in plot.bars)
        step = 10 ** math.floor(math.log10(most))
        for count in range(math.ceil(most / step) + 1):
            yield count * step, f"{count * step:g} s"


def _place(plot: Plot, value: float) -> float:
    if plot.unit == "ratio":
        power = max(-SPAN, min(SPAN, math.log2(max(value, 1e-9))))
        return LEFT + (power + SPAN) / (2 * SPAN) * WIDTH
    last = max(at for at, _ in _grid(plot))
    return LEFT + value / last * WIDTH


def draw(title: str, plot: Plot, less_is_better: bool = False) -> str:
    """Draws a plot.

    Args:
        title: What a reader who sees no pictures is told.
        plot: What to draw.
        less_is_better: Whether a ratio below 1 is the good one.

    Returns:
        An SVG element.
    """
    height = ROW * (len(plot.bars) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + RIGHT} {height}" '
        'font-size="11" fill="currentColor" role="img">',
        f"<title>{html.escape(title)}</title>",
    ]
    start = 1.0 if plot.unit == "ratio" else 0.0
    for value, label in _grid(plot):
        at = _place(plot, value)
        parts.append(
            f'<line x1="{at:.1f}" y1="{ROW}" x2="{at:.1f}" y2="{height}" '
            f'stroke="currentColor" stroke-width="{1.5 if value == start else 0.3}"/>'
            f'<text x="{at:.1f}" y="11" text-anchor="middle">{label}</text>'
        )
    for index, bar in enumerate(plot.bars):
        top = ROW * (index + 1) + 3
        first, last = sorted((_place(plot, start), _place(plot, bar.value)))
        good = plot.unit == "seconds" or (bar.value <= 1 if less_is_better else bar.value >= 1)
        low, high = _place(plot, bar.low), _place(plot, bar.high)
        parts.append(
            f'<text x="{LEFT - 8}" y="{top + 9}" text-anchor="end">{html.escape(bar.label)}</text>'
            f'<rect x="{first:.1f}" y="{top}" width="{max(last - first, 1):.1f}" '
            f'height="{ROW - 5}" fill="{"#2e7d32" if good else "#c62828"}"/>'
            f'<line x1="{low:.1f}" y1="{top + 5}" x2="{high:.1f}" y2="{top + 5}" '
            'stroke="currentColor"/>'
            f'<text x="{LEFT + WIDTH + 8}" y="{top + 9}">{bar.value:g}</text>'
        )
    return "".join([*parts, "</svg>"])


def add_plots(markdown: str, page: str) -> str:
    """Puts a drawing after each table that has something to draw.

    Args:
        markdown: The page.
        page: Its path in the documentation.
    """

    def with_drawing(match: re.Match[str]) -> str:
        plot = read(match.group())
        if plot is None:
            return match.group()
        headings = re.findall(r"^#+ (.*)$", markdown[: match.start()], re.M)
        title = headings[-1] if headings else page
        less = page in OURS_OVER_THEIRS
        return f"{match.group()}\n<div>{draw(title, plot, less)}</div>\n"

    return _TABLE.sub(with_drawing, markdown)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Adds the drawings to a page; called by the site's generator."""
    path = str(page.file.src_uri)
    measured = path.startswith(FOLDER) or path == HOME
    return add_plots(markdown, path) if measured else markdown
