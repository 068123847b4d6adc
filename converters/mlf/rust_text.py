"""Lays out Rust as rustfmt does: calls, signatures and literals that may not fit on a line."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

WIDTH = 100
INDENT = "    "


def fitted(head: str, items: Sequence[str], tail: str, depth: int) -> list[str]:
    """Returns `head(items)tail` on one line if it fits, else one item a line, as rustfmt does."""
    pad = INDENT * depth
    line = f"{pad}{head}({', '.join(items)}){tail}"
    if len(line) <= WIDTH:
        return [line]
    return [f"{pad}{head}(", *(f"{pad}{INDENT}{i}," for i in items), f"{pad}){tail}"]


def imported(path: str, names: Sequence[str]) -> str:
    """Returns `use path::{names};`, whose names rustfmt fills into lines."""
    line = f"use {path}::{{{', '.join(names)}}};"
    if len(line) <= WIDTH:
        return line
    filled = textwrap.fill(
        ", ".join(names) + ",", WIDTH, initial_indent=INDENT, subsequent_indent=INDENT
    )
    return f"use {path}::{{\n{filled}\n}};"


def called(head: str, items: Sequence[str], tail: str, depth: int) -> list[str]:
    """Returns a call; rustfmt breaks its arguments when they are wider than 60 characters."""
    if len(", ".join(items)) <= 60:
        return fitted(head, items, tail, depth)
    pad = INDENT * depth
    if all(len(item) <= 10 for item in items):
        # It fills lines with arguments that are all short.
        inside = pad + INDENT
        text = ", ".join(items) + ","
        lines = textwrap.wrap(text, WIDTH, initial_indent=inside, subsequent_indent=inside)
        return [f"{pad}{head}(", *lines, f"{pad}){tail}"]
    return [f"{pad}{head}(", *(f"{pad}{INDENT}{i}," for i in items), f"{pad}){tail}"]


def literal(head: str, items: Sequence[str], tail: str, depth: int) -> list[str]:
    """Returns a struct literal; rustfmt breaks fields that are wider than 18 characters."""
    pad = INDENT * depth
    inside = ", ".join(items)
    if len(inside) <= 18:
        return [f"{pad}{head} {{ {inside} }}{tail}"]
    return [f"{pad}{head} {{", *(f"{pad}{INDENT}{i}," for i in items), f"{pad}}}{tail}"]
