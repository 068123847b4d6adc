"""Sets columns of numbers to the right, for the site."""

from __future__ import annotations

import re
from typing import Any, Final

_NUMBER: Final = re.compile(
    r"[<~+-]?\d[\d,.]*(?:e[+-]?\d+)?x?"
    r"(?: ?(?:%|s|ms|us|µs|ns|[kMG]?B|k|M|G|MFLOP|loses))?(?: \([\d., to]+\))?"
)
_LARGE: Final = re.compile(r"\d{3,}\.\d+")
_EMPTY: Final = ("", "-", "none")
_TABLE: Final = re.compile(r"<table>.*?</table>", re.S)
_ROW: Final = re.compile(r"<tr>(.*?)</tr>", re.S)
_CELL: Final = re.compile(r"<(t[hd])( [^>]*)?>(.*?)</t[hd]>", re.S)


def is_number(text: str) -> bool:
    """Tells whether a cell is a quantity, with its unit or spread; it has no tags."""
    return _NUMBER.fullmatch(text.strip()) is not None


def align(table: str) -> str:
    """Gives the cells of each column of numbers the class `number`, and large ratios no fraction.

    Args:
        table: An HTML table. A column counts if it has a number, and all cells below the heading
            are numbers or empty. The first column never counts: it says what the others are about.
    """
    rows = [_CELL.findall(row) for row in _ROW.findall(table)]
    body = [[re.sub(r"<[^>]+>", "", cell[2]) for cell in row] for row in rows[1:]]
    numeric = {
        at
        for at in range(1, len(rows[0]) if rows else 0)
        if any(is_number(row[at]) for row in body if at < len(row))
        and all(is_number(row[at]) or row[at].strip() in _EMPTY for row in body if at < len(row))
    }

    def with_class(row: re.Match[str]) -> str:
        position = -1

        def cell(match: re.Match[str]) -> str:
            nonlocal position
            position += 1
            tag, attributes, text = match.groups()
            name = ' class="number"' if position in numeric else attributes or ""
            if position in numeric and _LARGE.fullmatch(text):
                text = f"{float(text):.0f}"
            return f"<{tag}{name}>{text}</{tag}>"

        return f"<tr>{_CELL.sub(cell, row.group(1))}</tr>"

    return _ROW.sub(with_class, table)


def on_page_content(html: str, **_: Any) -> str:
    """Aligns the tables of a page; called by the site's generator."""
    return _TABLE.sub(lambda match: align(match.group()), html)
