"""Pages that a program writes a row at a time."""

from __future__ import annotations

from pathlib import Path


def known_rows(page: Path) -> dict[str, str]:
    """Returns the rows of a page's tables by their first column; none if there is no page."""
    lines = page.read_text("utf-8").splitlines() if page.exists() else []
    return {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}
