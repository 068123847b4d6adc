"""The one place that knows case, keywords and collisions of Rust names.

Names of TensorFlow's headers and ops are identifiers: `rust_identifier` and `*_case` write them.
Names of layers and tensors are any text: `*_name` make identifiers of them, and a `Scope` keeps
those apart.
"""

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
_SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_?")
_WORD = re.compile(
    r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+(?![0-9])[A-Za-z]?(?![a-z])|[0-9]+"
)


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
    """Writes a name in upper camel case; numbers that would join stay apart.

    `bias_add` gives `BiasAdd`, `dense_1_2` gives `Dense1_2`.

    Args:
        name: Any text with at least one ASCII letter or digit.
    """
    out = ""
    for word in words(name):
        if out[-1:].isdigit() and word[0].isdigit():
            out += "_"
        out += word[0].upper() + word[1:].lower()
    return out


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


def field_name(text: str, default: str, longest: int | None = None) -> str:
    """Makes a name of a field, function, module or crate; a snake-case name stays as it is.

    Args:
        text: Any text; all but ASCII letters and digits separate words.
        default: A snake-case name for a text without words, and before a digit.
        longest: Characters to keep: as many words at the end of the name as fit.

    Returns:
        A snake-case identifier; a keyword gets `_` at its end, because fields of one model with and
        without `r#` read badly.
    """
    name = text if _SNAKE.fullmatch(text) else snake_case(text)
    if longest is not None:
        name = _last_words(name, longest).strip("_")
    name = name or default
    if name[0].isdigit():
        name = f"{default}_{name}"
    return f"{name}_" if name in KEYWORDS | PATH_KEYWORDS else name


def _last_words(name: str, longest: int) -> str:
    end = name[-longest:]
    if len(end) == len(name) or name[-longest - 1] == "_":
        return end
    return end.partition("_")[2].strip("_") or end


def type_name(text: str, default: str) -> str:
    """Makes a name of a type, in upper camel case.

    Args:
        text: Any text; all but ASCII letters and digits separate words.
        default: What to use for a text without words, and before a text that alone is not a name
            of a type.
    """
    name = camel_case(text) or default
    return default + name if name[:1].isdigit() or name in PATH_KEYWORDS else name


def constant_name(text: str, default: str) -> str:
    """Makes a name of a constant or static, in upper snake case.

    Args:
        text: Any text; all but ASCII letters and digits separate words.
        default: A snake-case name; see `field_name`.
    """
    return field_name(text, default).rstrip("_").upper()


def _takes_number(name: str) -> bool:
    """Says whether a number may follow a name immediately, as types want it: `Dense2`."""
    is_type = name[:1].isupper() and (len(name) == 1 or not name.isupper())
    return is_type and not name[-1].isdigit()


class Scope:
    """Hands out names that no other of the scope has."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """Starts with names that are not free."""
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def unique(self, *wishes: str) -> str:
        """Returns the first wish that is free, else the last one with the next free number."""
        for wish in wishes:
            if wish and wish not in self._taken:
                self._taken.add(wish)
                return wish
        base = wishes[-1].rstrip("_")
        base += "" if _takes_number(base) else "_"
        number = self._numbers.get(base, 2)
        while f"{base}{number}" in self._taken:
            number += 1
        self._numbers[base] = number + 1
        self._taken.add(f"{base}{number}")
        return f"{base}{number}"
