"""TensorFlow's documentation text -> Markdown that rustdoc shows as it was meant."""

from __future__ import annotations

import re
import textwrap

_CODE_SPAN = re.compile(r"(`+[^`\n]+`+|\[[^\[\]\n]+\]\(https?://[^\s()]+\))")
_URL = re.compile(r"(https?://[^\s)>\]`'\"*]*[^\s)>\]`'\"*.,;:])")
# What Markdown would take for a link or HTML.
_SPECIAL = re.compile(r"[\[\]<>]")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_BULLET = re.compile(r"\s*(?:[*+-]|\d+[.)])\s")
_HEADING = re.compile(r"\s*#+\s*(.*?)\s*#*$")


def escape_line(line: str) -> str:
    """Escapes brackets and links bare addresses; code spans and links stay as they are."""
    out: list[str] = []
    for part in _CODE_SPAN.split(line):
        if _CODE_SPAN.fullmatch(part):
            out.append(part)
            continue
        for piece in _URL.split(part):
            if _URL.fullmatch(piece):
                out.append(f"<{piece}>")
            else:
                text = piece.replace("`", "'") if piece.count("`") % 2 else piece
                out.append(_SPECIAL.sub(lambda m: "\\" + m.group(), text))
    return "".join(out)


class _Writer:
    """Collects lines; code is fenced as text, so that it is never run as a Rust test."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._code: list[str] = []

    def code(self, line: str) -> None:
        self._code.append(line)

    def flush(self) -> None:
        body = textwrap.dedent("\n".join(self._code)).strip("\n")
        self._code.clear()
        if body.strip():
            self.blank()
            fence = "~~~" if "```" in body else "```"
            self.lines += [fence + "text", *(row.rstrip() for row in body.split("\n")), fence, ""]

    def text(self, line: str) -> None:
        self.lines.append(line)

    def blank(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")


def lines(text: str) -> list[str]:
    """Returns Markdown lines without empty ones at the ends.

    Fenced blocks and blocks indented by four or more columns after an empty line become `text`
    blocks; headings become bold lines, as rustdoc's own headings structure the page.

    Args:
        text: Text in the mixture of Markdown and plain text of TensorFlow's documentation.
    """
    writer = _Writer()
    fence = ""
    indented = in_list = False
    before = ""
    for raw in textwrap.dedent(text.expandtabs(4)).strip("\n").split("\n"):
        line = raw.rstrip()
        match = _FENCE.match(line)
        if fence:
            if match and line.strip() == fence:
                fence = ""
                writer.flush()
            else:
                writer.code(line)
        elif match and not line.strip().endswith("```", 3):
            writer.flush()
            indented, fence = False, match.group(1)
        elif indented and (not line or line.startswith("    ")):
            writer.code(line)
        elif line.startswith("    ") and not before and not in_list and not _BULLET.match(line):
            indented = True
            writer.code(line)
        else:
            if indented:
                writer.flush()
                indented = False
            _plain(writer, line)
            in_list = bool(_BULLET.match(line)) or (in_list and (not line or line[0] == " "))
        before = line
    writer.flush()
    while writer.lines and not writer.lines[-1]:
        writer.lines.pop()
    return writer.lines


def _plain(writer: _Writer, line: str) -> None:
    heading = _HEADING.match(line) if line.lstrip().startswith("#") else None
    if not line:
        writer.blank()
    elif heading and heading.group(1):
        writer.blank()
        writer.text(f"**{escape_line(heading.group(1))}**")
        writer.blank()
    else:
        # More than three columns after a list would be code for Rust's tests.
        pad = len(line) - len(line.lstrip())
        writer.text(" " * min(pad, 3) + escape_line(line.strip()))


def item(text: str) -> list[str]:
    """Returns the lines of a text inside of a list item: all but the first indented by two."""
    first, *rest = lines(text) or [""]
    return [first, *(("  " + row).rstrip() for row in rest)]
