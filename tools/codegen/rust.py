"""Rust text: literals and comments; the only place that writes a text of a stranger into a file.

A name from a model file may hold anything: line ends that would end a comment, quotes, marks that
turn the direction of the text around it, halves of UTF-16 pairs. `string_literal` writes it as a
string, `one_line` and `code_span` into a comment of one line, `c_comment` into one of C.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# An underscore inside of a word is no emphasis.
_DOC_SPECIAL = re.compile(r"([\[\]<>*|\\`]|(?<!\w)[_#]|_(?!\w))")
_CODE_SPAN = re.compile(r"(`[^`\n]+`)")
_URL = re.compile(r"(https?://[^\s)>\]]*[^\s)>\].,;:])")


def string_literal(text: str) -> str:
    """Writes a text as a Rust string literal.

    Args:
        text: Any text; what can't be printed is escaped, half of a UTF-16 pair becomes U+FFFD.
    """
    out = []
    for char in text:
        if char in _ESCAPES:
            out.append(_ESCAPES[char])
        elif ord(char) < 0x20 or ord(char) == 0x7F:
            out.append(f"\\x{ord(char):02x}")
        else:
            out.append(char if char.isprintable() else _escaped(char))
    return '"' + "".join(out) + '"'


def _escaped(char: str) -> str:
    return f"\\u{{{0xFFFD if 0xD800 <= ord(char) < 0xE000 else ord(char):x}}}"


def one_line(text: str, longest: int = 200) -> str:
    """Writes a text so that a comment of one line can hold it.

    Args:
        text: Any text; what can't be printed, such as a line end, is shown as Rust escapes it.
        longest: Characters that are shown; of more, the end is left out.
    """
    if len(text) > longest:
        text = text[:longest] + "..."
    return "".join(c if c.isprintable() else _escaped(c) for c in text).strip()


def code_span(text: str) -> str:
    """Writes a text as code in a doc comment of one line.

    Args:
        text: Any text; its backticks become apostrophes.
    """
    return f"`{one_line(text).replace('`', chr(39))}`"


def c_comment(text: str) -> str:
    """Writes a text so that a comment of C, `/* ... */`, can hold it.

    Args:
        text: Any text; see `one_line`.
    """
    return one_line(text).replace("*/", "* /").replace("/*", "/ *")


class RustText(str):
    """Lines of Rust that an emitter wrote, which a template may print as they are."""

    __slots__ = ()


def check_one_line(value: object) -> object:
    """Returns what a template prints, unless it is a text that was not written for it.

    Raises:
        ValueError: It holds a line end or another character that can't be printed.
    """
    if isinstance(value, str) and not isinstance(value, RustText) and not value.isprintable():
        raise ValueError(f"{value!r:.300} goes into a file as it is; write it by `one_line`")
    return value


def c_string_literal(text: str) -> str:
    """Writes a text as a Rust C-string literal, `c"..."`.

    Args:
        text: A text without NUL.

    Raises:
        ValueError: The text holds a NUL.
    """
    if "\0" in text:
        raise ValueError(f"{text!r} holds a NUL and has no C-string literal")
    return "c" + string_literal(text)


def escape_markdown(text: str) -> str:
    """Escapes what rustdoc would take for a link, HTML or emphasis; code spans and URLs stay.

    Args:
        text: One line of plain text.
    """
    out = []
    for part in _CODE_SPAN.split(text):
        if _CODE_SPAN.fullmatch(part):
            out.append(part)
            continue
        for piece in _URL.split(part):
            out.append(f"<{piece}>" if _URL.fullmatch(piece) else _DOC_SPECIAL.sub(r"\\\1", piece))
    return "".join(out)


def plain_doc(text: str) -> list[str]:
    """Turns plain text, such as a C comment, into lines of Markdown that read the same.

    Lines indented by two or more columns become a `text` code block, so that neither rustdoc nor
    its tests take them for Rust; everything else is escaped.

    Args:
        text: Plain text.

    Returns:
        Lines without a comment marker, without empty lines at the ends.
    """
    lines = textwrap.dedent(text.expandtabs(4)).strip("\n").split("\n")
    out: list[str] = []
    block: list[str] = []

    def flush() -> None:
        body = list(block)
        block.clear()
        while body and not body[-1].strip():
            body.pop()
        if body:
            out.extend(["", "```text", *textwrap.dedent("\n".join(body)).split("\n"), "```", ""])

    for line in (raw.rstrip() for raw in lines):
        if line.startswith("  ") or (block and not line):
            block.append(line)
            continue
        if block:
            flush()
        out.append(escape_markdown(line))
    if block:
        flush()
    return _squeeze(out)


def _squeeze(lines: Iterable[str]) -> list[str]:
    """Drops empty lines at the ends and all but one in a row (code blocks are left alone)."""
    out: list[str] = []
    fenced = False
    for line in lines:
        if line.startswith("```"):
            fenced = not fenced
        if not fenced and not line and (not out or not out[-1]):
            continue
        out.append(line)
    while out and not out[-1]:
        out.pop()
    return out


def doc_comment(lines: Iterable[str], indent: int = 0, marker: str = "///") -> str:
    """Writes Markdown lines as a Rust doc comment.

    Args:
        lines: Lines of Markdown.
        indent: Columns before the marker.
        marker: `///` or `//!`.

    Returns:
        The comment with a newline after each line; empty for no lines.
    """
    pad = " " * indent
    return "".join(f"{pad}{marker} {line}".rstrip() + "\n" for line in lines)
