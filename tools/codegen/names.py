"""The one place that knows case, keywords and collisions of Rust names."""

from __future__ import annotations

import re
from collections.abc import Iterable

STRICT_KEYWORDS = frozenset(
    [
        "as",
        "async",
        "await",
        "break",
        "const",
        "continue",
        "dyn",
        "else",
        "enum",
        "extern",
        "false",
        "fn",
        "for",
        "if",
        "impl",
        "in",
        "let",
        "loop",
        "match",
        "mod",
        "move",
        "mut",
        "pub",
        "ref",
        "return",
        "static",
        "struct",
        "trait",
        "true",
        "type",
        "unsafe",
        "use",
        "where",
        "while",
    ]
)
RESERVED_KEYWORDS = frozenset(
    [
        "abstract",
        "become",
        "box",
        "do",
        "final",
        "gen",
        "macro",
        "override",
        "priv",
        "try",
        "typeof",
        "unsized",
        "virtual",
        "yield",
    ]
)
# These cannot be written as raw identifiers.
PATH_KEYWORDS = frozenset(["crate", "self", "super", "Self", "_"])
KEYWORDS = STRICT_KEYWORDS | RESERVED_KEYWORDS

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+[A-Za-z]?(?![a-z])|[0-9]+")


def is_identifier(name: str) -> bool:
    """Says whether a text has the form of an ASCII identifier.

    Args:
        name: Any text.

    Returns:
        True for letters, digits and underscores that do not start with a digit. Keywords count.
    """
    return _IDENTIFIER.match(name) is not None


def rust_identifier(name: str) -> str:
    """Writes a name so that Rust 2024 accepts it.

    Args:
        name: An ASCII identifier.

    Returns:
        The name itself; `r#name` for a keyword; `name_` for `self`, `Self`, `super`, `crate`
        and `_`, which have no raw form.

    Raises:
        ValueError: `name` is not an identifier.
    """
    if not is_identifier(name):
        raise ValueError(f"{name!r} is not an identifier")
    if name in PATH_KEYWORDS:
        return name + "_"
    if name in KEYWORDS:
        return "r#" + name
    return name


def words(name: str) -> list[str]:
    """Splits a name at underscores, hyphens and changes of case.

    A digit group with one upper-case letter after it stays together: `Conv2DBackprop` gives
    `["Conv", "2D", "Backprop"]`.

    Args:
        name: Any text; characters other than ASCII letters and digits separate words.
    """
    return _WORD.findall(name)


def snake_case(name: str) -> str:
    """Writes a name in snake case, with a digit group kept on the word before it.

    `Conv2DBackpropInput` gives `conv2d_backprop_input`, `MatMul` gives `mat_mul`.

    Args:
        name: Any text with at least one ASCII letter or digit.
    """
    out: list[str] = []
    for word in words(name):
        if out and word[0].isdigit() and not out[-1][-1].isdigit():
            out[-1] += word.lower()
        else:
            out.append(word.lower())
    return "_".join(out)


def camel_case(name: str) -> str:
    """Writes a name in upper camel case: `bias_add` gives `BiasAdd`.

    Args:
        name: Any text with at least one ASCII letter or digit.
    """
    return "".join(word[0].upper() + word[1:].lower() for word in words(name))


def screaming_case(name: str) -> str:
    """Writes a name in upper snake case: `BiasAdd` gives `BIAS_ADD`.

    Args:
        name: Any text with at least one ASCII letter or digit.
    """
    return snake_case(name).upper()


def collisions(names: Iterable[str]) -> list[str]:
    """Returns the names that occur more than once, sorted.

    Args:
        names: Names of one scope.
    """
    seen: set[str] = set()
    twice: set[str] = set()
    for name in names:
        (twice if name in seen else seen).add(name)
    return sorted(twice)
