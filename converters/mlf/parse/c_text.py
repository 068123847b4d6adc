"""Lexing of the C that TVM writes: comments, strings, tokens and logical lines, in linear time."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_TEXT = 256 << 20

_SPECIAL = re.compile(r'//|/\*|["\']')
_LINE = re.compile(r"[^\n]+")
_TOKEN = re.compile(r"[A-Za-z_]\w*|\.?[0-9][\w.]*|[^\s\w]|\w", re.ASCII)


@dataclass(frozen=True)
class Token:
    """One C token and the line (from 1) it starts on."""

    text: str
    line: int


def split_comments(text: str) -> tuple[str, str]:
    """Returns (code, comments), each as long as `text`, the other's characters blanked.

    Line ends stay in both. String and character literals in the code are blanked to their quotes,
    so that nothing inside them looks like code. An unterminated string ends with its line, an
    unterminated comment with the text.
    """
    code: list[str] = []
    comments: list[str] = []
    at = 0
    while True:
        found = _SPECIAL.search(text, at)
        if found is None:
            code.append(text[at:])
            comments.append(_blank(text[at:]))
            break
        start = found.start()
        code.append(text[at:start])
        comments.append(_blank(text[at:start]))
        opener = found.group()
        if opener == "//":
            end = text.find("\n", start)
            at = len(text) if end < 0 else end
            code.append(_blank(text[start:at]))
            comments.append(text[start:at])
        elif opener == "/*":
            end = text.find("*/", start + 2)
            at = len(text) if end < 0 else end + 2
            code.append(_blank(text[start:at]))
            comments.append(text[start:at])
        else:
            at = _end_of_literal(text, start)
            closed = at - 1 > start and text[at - 1] == opener
            code.append(opener + _blank(text[start + 1 : at - closed]) + opener * closed)
            comments.append(_blank(text[start:at]))
    return "".join(code), "".join(comments)


def _end_of_literal(text: str, start: int) -> int:
    quote = text[start]
    at = start + 1
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
        elif char == quote:
            return at + 1
        elif char == "\n":
            return at
        else:
            at += 1
    return len(text)


def _blank(text: str) -> str:
    return _LINE.sub(lambda line: " " * len(line[0]), text)


def tokens(code: str, first_line: int = 1) -> list[Token]:
    """Splits code (without comments) into tokens; every punctuation character is one token."""
    result = []
    line, at = first_line, 0
    for found in _TOKEN.finditer(code):
        line += code.count("\n", at, found.start())
        at = found.start()
        result.append(Token(found.group(), line))
    return result


def logical_lines(code: str) -> list[tuple[int, str]]:
    """Returns (first line number, text) with backslash continuations joined by a space."""
    result: list[tuple[int, str]] = []
    pending: list[str] = []
    start = 1
    for number, line in enumerate(code.split("\n"), 1):
        if not pending:
            start = number
        stripped = line.rstrip()
        if stripped.endswith("\\"):
            pending.append(stripped[:-1])
            continue
        pending.append(line)
        result.append((start, " ".join(pending)))
        pending = []
    if pending:
        result.append((start, " ".join(pending)))
    return result
