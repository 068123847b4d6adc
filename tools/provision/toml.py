"""Reads the part of TOML that ``pins.toml`` is written in: ``tomllib`` is not there before 3.11.

Tables, and keys whose values are strings without escapes, integers or arrays of these.
"""

from __future__ import annotations

import ast
import re
from typing import Any

_TOKEN = re.compile(r'"[^"\\\n]*"|#[^\n]*')


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a file.

    Raises:
        ValueError: a line is none of the above; says which.
    """
    root: dict[str, Any] = {}
    table = root
    # Comments go, and brackets in strings must not count: strings are looked at first.
    lines = _TOKEN.sub(lambda m: "" if m.group().startswith("#") else m.group(), text).splitlines()
    at = 0
    while at < len(lines):
        first, line = at, lines[at].strip()
        at += 1
        header = re.fullmatch(r"\[([\w.-]+)\]", line)
        if header is not None:
            table = root
            for part in header.group(1).split("."):
                table = table.setdefault(part, {})
            continue
        if not line:
            continue
        key, equals, value = line.partition("=")
        while value.lstrip().startswith("[") and not value.rstrip().endswith("]"):
            if at == len(lines):
                break
            value += " " + lines[at].strip()
            at += 1
        if not equals or not re.fullmatch(r"[\w-]+", key.strip()) or "\\" in value:
            raise ValueError(f"line {first + 1}: {line}")
        try:
            table[key.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError) as error:
            raise ValueError(f"line {first + 1}: {line}") from error
    return root
