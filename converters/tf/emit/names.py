"""Which names a generated crate gives to layers, ports and weights."""

from __future__ import annotations

from tools.codegen.names import Scope, field_name, words

# Names of the module that the fields and constants live in, and of what its functions are given: a
# layer that a call makes is a variable there.
_TAKEN_FIELDS = ("engine", "weights", "m", "x", "b", "s", "new", "run", "p", "times", "w")
_LONGEST = 48


def field_scope() -> Scope:
    """Returns a scope for the fields of a model or block."""
    return Scope(_TAKEN_FIELDS)


def snake(name: str, default: str) -> str:
    """Returns a snake-case name of the last words of `name`, which may be any text.

    Args:
        name: Any text.
        default: What to use where `name` has no words.
    """
    return field_name(name, default, _LONGEST)


def wishes(path: str, default: str) -> list[str]:
    """Returns names for a path of layers, the shortest first: `c`, `b_c`, `a_b_c`."""
    parts = [part for part in path.split("/") if words(part)]
    if not parts:
        return [default]
    return [snake("_".join(parts[-n:]), default) for n in range(1, len(parts) + 1)]
