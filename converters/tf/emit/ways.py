"""What attributes of vendored sources choose: ways of the kernels, and code with or without std.

An attribute stands on a line of its own before an item, a field, a statement or an arm:

- `#[cfg(not(without = "NAME"))]`: code for the way of that name;
- `#[cfg(without = "NAME")]`: what stands there without the way;
- `#[cfg(true)]`, `#[cfg(false)]` and `#[cfg(not(..))]` of these: what std or its lack decides.

No build of the kernels sets `without`, so that they have all ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Set

from converters.tf.emit.modules import code_of

NAMED = re.compile(r'\bwithout = "([^"]+)"')
"""The name of a way in a source."""

_WAY = re.compile(r'#\[cfg\((?:not\(without = "([^"]+)"\)|without = "([^"]+)")\)\]')
_KNOWN = re.compile(r"#\[cfg\((not\()?(true|false)\)?\)\]")
_NEVER = re.compile(r"#\[cfg\(all\((?:not\(true\)|false), .*\)\)\]")
_LEADS = re.compile(r"\s*(?:///|#\[)")


def with_ways(text: str, closed: Set[str], named: Set[str] | None = None) -> str:
    """Returns a source without the code of closed ways.

    Args:
        text: The source.
        closed: The names of ways to leave out.
        named: The names to decide; others stay as they are. All, if it is `None`.
    """
    if "without = " not in text:
        return text

    def stays(line: str) -> bool | None:
        match = _WAY.fullmatch(line.strip())
        if match is None:
            return None
        name = match[1] or match[2]
        if named is not None and name not in named:
            return None
        return (name in closed) == (match[1] is None)

    return _decided(text, stays)


def with_std(text: str) -> str:
    """Returns a source without conditions such as `#[cfg(true)]` and what they leave out."""
    if not _KNOWN.search(text) and not _NEVER.search(text):
        return text

    def stays(line: str) -> bool | None:
        if _NEVER.fullmatch(line.strip()):
            return False
        match = _KNOWN.fullmatch(line.strip())
        return None if match is None else (match[2] == "true") == (match[1] is None)

    return _decided(text, stays)


def _decided(text: str, stays: Callable[[str], bool | None]) -> str:
    lines, codes = text.split("\n"), code_of(text).split("\n")
    out: list[str] = []
    index = 0
    while index < len(lines):
        kept = stays(lines[index])
        if kept is None:
            out.append(lines[index])
            index += 1
        elif kept and lines[index + 1].strip() == "{":
            # A block that has no other one beside it needs no braces.
            end = _after(lines, codes, index + 1)
            if lines[end].lstrip().startswith("#[cfg(") and stays(lines[end]) is None:
                out.append(lines[index])
                index += 1
                continue
            lines[index + 1 : end] = [
                line.removeprefix("    ") for line in lines[index + 2 : end - 1]
            ]
            codes[index + 1 : end] = codes[index + 2 : end - 1]
            index += 1
        elif kept:
            index += 1
        else:
            while out and _LEADS.match(out[-1]):
                out.pop()
            index = _after(lines, codes, index + 1)
    return "\n".join(out)


def _after(lines: list[str], codes: list[str], index: int) -> int:
    """Returns the line after the item, the statement or the like that begins at `index`.

    rustfmt's layout tells: its last line has the indent of the first one, closes all brackets, and
    ends with what ends such a thing.
    """
    while _LEADS.match(lines[index]) or not codes[index].strip():
        index += 1
    indent = len(lines[index]) - len(lines[index].lstrip())
    depth = 0
    while index < len(lines):
        code = codes[index].rstrip()
        depth += sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))
        begins = len(lines[index]) - len(lines[index].lstrip()) == indent
        index += 1
        if depth <= 0 and begins and code.endswith((";", ",", "}")):
            break
    return index
