"""Rust names: case, keywords, collisions. No other file escapes an identifier."""

from __future__ import annotations

import re

#: Keywords of all editions, and names that generated items use themselves.
KEYWORDS = frozenset(
    {
        "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum",
        "extern", "false", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "match", "mod",
        "move", "mut", "pub", "ref", "return", "self", "Self", "static", "struct", "super",
        "trait", "true", "type", "unsafe", "use", "where", "while", "abstract", "become", "box",
        "do", "final", "macro", "override", "priv", "try", "typeof", "unsized", "virtual",
        "yield", "union",
    }
)  # fmt: skip


def words(name: str) -> list[str]:
    """Splits a C name into lower-case words at `_`, other symbols and case changes."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", re.sub(r"[^A-Za-z0-9]+", " ", name))
    spaced = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", spaced)
    return [w.lower() for w in spaced.split()]


def rust_snake(name: str) -> str:
    """Returns a snake-case identifier that is no keyword; keywords get a trailing `_`."""
    result = "_".join(words(name)) or "unnamed"
    if result[0].isdigit():
        result = "n" + result
    return result + "_" if result in KEYWORDS else result


def rust_camel(name: str) -> str:
    """Returns a type name; digits that would join stay apart (`a_1_2` -> `A1_2`)."""
    result = ""
    for word in words(name):
        if result[-1:].isdigit() and word[0].isdigit():
            result += "_"
        result += word[0].upper() + word[1:]
    result = result or "Unnamed"
    return "N" + result if result[0].isdigit() else result


def rust_const(name: str) -> str:
    """Returns an upper-case constant name."""
    result = "_".join(words(name)).upper() or "UNNAMED"
    return "N" + result if result[0].isdigit() else result


class Scope:
    """Names of one Rust scope: hands out each once, adding `_2`, `_3` ... to later ones."""

    def __init__(self, *reserved: str) -> None:
        """Starts a scope in which the `reserved` names are taken."""
        self._taken = set(reserved)

    def unique(self, name: str) -> str:
        """Returns `name`, or a variant with the smallest free number."""
        candidate, number = name, 2
        while candidate in self._taken:
            camel_or_const = name[:1].isupper() and "_" not in name
            candidate = f"{name}{number}" if camel_or_const else f"{name}_{number}"
            number += 1
        self._taken.add(candidate)
        return candidate
