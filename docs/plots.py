"""Draws the committed measurements beside a performance page into it, for the site.

A page `performance/NAME.md` with a file `NAME.json` of ratios gets a bar per case: how many times
as fast the device is as the CPU, on a logarithmic scale, with the middle half of the measurements.
"""

from __future__ import annotations

import html
import json
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

ROW: Final = 18
LEFT: Final = 230
WIDTH: Final = 640
SPAN: Final = math.log2(16)
"""The scale goes from 1/16 to 16."""


def _x(ratio: float) -> float:
    place = max(-SPAN, min(SPAN, math.log2(max(ratio, 1e-9))))
    return LEFT + (place + SPAN) / (2 * SPAN) * WIDTH


def bars(title: str, cases: Sequence[Mapping[str, Any]]) -> str:
    """Draws one group.

    Args:
        title: What the group is.
        cases: Entries with `name` and `ratio`: lower quartile, median, upper quartile.

    Returns:
        An SVG element.
    """
    height = ROW * (len(cases) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 60} {height}" '
        'font-size="12" fill="currentColor" role="img">',
        f"<title>{html.escape(title)}</title>",
    ]
    for power in range(-4, 5):
        at = _x(2.0**power)
        label = f"{2**power}x" if power >= 0 else f"1/{2**-power}"
        stroke = 1.5 if power == 0 else 0.3
        parts.append(
            f'<line x1="{at:.1f}" y1="{ROW}" x2="{at:.1f}" y2="{height}" '
            f'stroke="currentColor" stroke-width="{stroke}"/>'
            f'<text x="{at:.1f}" y="12" text-anchor="middle">{label}</text>'
        )
    for index, case in enumerate(cases):
        low, middle, high = case["ratio"]
        top = ROW * (index + 1) + 4
        start, end = sorted((_x(1.0), _x(middle)))
        colour = "#2e7d32" if middle >= 1 else "#c62828"
        name = html.escape(case["name"])
        parts.append(
            f'<text x="{LEFT - 8}" y="{top + 11}" text-anchor="end">{name}</text>'
            f'<rect x="{start:.1f}" y="{top}" width="{max(end - start, 1):.1f}" height="{ROW - 6}" '
            f'fill="{colour}"/>'
            f'<line x1="{_x(low):.1f}" y1="{top + 6}" x2="{_x(high):.1f}" y2="{top + 6}" '
            'stroke="currentColor"/>'
        )
    return "".join([*parts, "</svg>"])


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Adds the drawings to a page that has numbers; called by the site's generator."""
    data = pathlib.Path(page.file.abs_src_path).with_suffix(".json")
    if not data.is_file():
        return markdown
    cases = json.loads(data.read_text(encoding="utf-8"))
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for case in cases:
        groups.setdefault(case["group"], []).append(case)
    drawn = [f"\n\n### {name}\n\n{bars(name, group)}" for name, group in groups.items()]
    return f"{markdown}\n\n## How many times as fast as the CPU\n{''.join(drawn)}\n"
