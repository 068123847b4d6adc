"""Parses the command line, and the values of flags that have a syntax of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from absl import flags

from tools.codegen.conversion import Problem, UsageError


def parse_shapes(values: Sequence[str]) -> dict[str, tuple[int | None, ...]]:
    """Parses `[NAME=]224,?,3`; no name stands for an only input, `?` leaves a dimension open.

    Raises:
        UsageError: A value has another form, or two are for one input.
    """
    shapes: dict[str, tuple[int | None, ...]] = {}
    shape: tuple[int | None, ...]
    for value in values:
        name, _, dims = value.rpartition("=")
        try:
            shape = tuple(None if d == "?" else int(d) for d in dims.split(","))
        except ValueError:
            shape = ()
        if not shape or any(d is not None and d < 1 for d in shape):
            what = "expected [NAME=]224,224,3; the batch may come first"
            raise UsageError(Problem(f"--input_shape {value}", what))
        if name in shapes:
            raise UsageError(Problem(f"--input_shape {value}", "that input has a shape already"))
        shapes[name] = shape
    return shapes


def parse_states(values: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Parses `INPUT=OUTPUT`.

    Raises:
        UsageError: A value has another form.
    """
    return tuple(_pair("--state", value, "INPUT=OUTPUT") for value in values)


def parse_custom_ops(values: Sequence[str]) -> tuple[tuple[str, Path], ...]:
    """Parses `domain::Name=module.py`.

    Raises:
        UsageError: A value has another form.
    """
    pairs = [_pair("--custom_op", value, "domain::Name=module.py") for value in values]
    return tuple((name, Path(path)) for name, path in pairs)


def _pair(flag: str, value: str, form: str) -> tuple[str, str]:
    """Returns what is before and after the first `=`."""
    name, _, rest = value.partition("=")
    if not name or not rest:
        raise UsageError(Problem(f"{flag} {value}", f"expected {form}"))
    return name, rest


def parse_values(values: Sequence[str]) -> dict[str, str]:
    """Parses `INPUT=16000`.

    Raises:
        UsageError: A value has another form, or two are for one input.
    """
    found: dict[str, str] = {}
    for value in values:
        name, _, text = value.rpartition("=")
        if not name or not text:
            raise UsageError(Problem(f"--input_value {value}", "expected INPUT=16000"))
        if name in found:
            raise UsageError(Problem(f"--input_value {value}", "that input has a value already"))
        found[name] = text
    return found


def parse_most(values: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Parses `DIMENSION=512`.

    Raises:
        UsageError: A value has another form, or two are for one dimension.
    """
    found: dict[str, int] = {}
    for value in values:
        name, _, most = value.rpartition("=")
        if not name or not most.isdecimal() or int(most) < 1:
            what = "expected the name of an open dimension and the most that it may be: steps=512"
            raise UsageError(Problem(f"--max {value}", what))
        if name in found:
            raise UsageError(Problem(f"--max {value}", "that dimension has a bound already"))
        found[name] = int(most)
    return tuple(found.items())


def joined(argv: list[str]) -> list[str]:
    """Returns the arguments with `--enable_inplace True` as one: `--enable_inplace=True`."""
    found: list[str] = []
    for argument in argv:
        flag = found[-1].lstrip("-") if found and found[-1].startswith("-") else ""
        known = flag in flags.FLAGS and flags.FLAGS[flag].boolean
        if known and argument.lower() in ("true", "false"):
            found[-1] += f"={argument}"
        else:
            found.append(argument)
    return found
