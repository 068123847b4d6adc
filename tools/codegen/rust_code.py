"""Rust without its comments and strings, for tests that look for what got out of them."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""
    (?P<line>//[^\n]*)
  | (?P<block>/\*)
  | (?P<raw>\b(?:br|cr|r)(?P<hashes>\#*)")
  | (?P<text>\b[bc]?"|")
  | (?P<char>b?'(?:\\(?:u\{[0-9a-fA-F_]+\}|x[0-9a-fA-F]{2}|.)|[^'\\\n])')
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK = re.compile(r"/\*|\*/")
_END = re.compile(r'\\.|"', re.DOTALL)


def code_only(text: str) -> str:
    """Returns a text of Rust with every comment, string and character as a space.

    Raises:
        ValueError: A comment or a string does not end.
    """
    out: list[str] = []
    at = 0
    while (found := _TOKEN.search(text, at)) is not None:
        out += [text[at : found.start()], " "]
        if found["line"] or found["char"]:
            at = found.end()
        elif found["block"]:
            at = _end_of_block(text, found.end())
        elif found["raw"]:
            end = f'"{found["hashes"]}'
            at = text.find(end, found.end()) + len(end)
            if at < found.end() + len(end):
                raise ValueError("a raw string does not end")
        else:
            at = _end_of_string(text, found.end())
    return "".join([*out, text[at:]])


def _end_of_block(text: str, at: int) -> int:
    depth = 1
    while depth:
        found = _BLOCK.search(text, at)
        if found is None:
            raise ValueError("a comment does not end")
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
    return at


def _end_of_string(text: str, at: int) -> int:
    while (found := _END.search(text, at)) is not None:
        at = found.end()
        if found[0] == '"':
            return at
    raise ValueError("a string does not end")
