"""Names of a generated crate: fields, constants and types, unique in their scope."""

from __future__ import annotations

import re

from tools.codegen import names

# Names of the module that the fields and constants live in.
_TAKEN_FIELDS = frozenset(["engine", "weights", "m", "x", "b", "new", "run", "p", "w"])
_LONGEST = 48
_SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_?")


class Scope:
    """Hands out names that no other of the scope has."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        """Starts with names that are not free."""
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def unique(self, *wishes: str) -> str:
        """Returns the first wish that is free, else the last one with a number."""
        for wish in wishes:
            if wish and wish not in self._taken:
                self._taken.add(wish)
                return wish
        base = wishes[-1].removeprefix("r#").rstrip("_")
        number = self._numbers.get(base, 2)
        while f"{base}_{number}" in self._taken:
            number += 1
        self._numbers[base] = number + 1
        self._taken.add(f"{base}_{number}")
        return f"{base}_{number}"


def field_scope() -> Scope:
    """Returns a scope for the fields of a model or block."""
    return Scope(_TAKEN_FIELDS)


def snake(name: str, default: str) -> str:
    """Returns a snake-case name that Rust accepts, of ASCII letters and digits of `name`.

    Args:
        name: Any text.
        default: What to use where `name` has none.
    """
    base = name if _SNAKE.fullmatch(name) else names.snake_case(name)
    base = _last_words(base).strip("_") or default
    if base[0].isdigit():
        base = f"{default}_{base}"
    return names.rust_identifier(base) if base not in names.KEYWORDS else base + "_"


def _last_words(name: str) -> str:
    """Returns the words at the end of a snake-case name that are not too long together."""
    end = name[-_LONGEST:]
    if len(end) == len(name) or name[-_LONGEST - 1] == "_":
        return end
    return end.partition("_")[2].strip("_") or end


def wishes(path: str, default: str) -> list[str]:
    """Returns names for a path of layers, the shortest first: `c`, `b_c`, `a_b_c`."""
    parts = [part for part in path.split("/") if names.words(part)]
    if not parts:
        return [default]
    return [snake("_".join(parts[-n:]), default) for n in range(1, len(parts) + 1)]


def camel(name: str, default: str) -> str:
    """Returns a type's name of the ASCII letters and digits of `name`."""
    base = names.camel_case(name) or default
    if base[0].isdigit() or base in names.PATH_KEYWORDS:
        base = default + base
    return base


def screaming(name: str) -> str:
    """Returns a constant's name from a snake-case one."""
    return name.removeprefix("r#").upper()
