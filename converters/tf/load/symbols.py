"""Open dimensions of files that name them: which one is the batch, and which are the same."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from converters.tf.ir.dimensions import Text, names, parsed, replaced
from converters.tf.load.shapes import FixedShapes, open_name
from tools.codegen.conversion import Problem, UsageError
from tools.codegen.names import Scope

_NO_WORD = re.compile(r"\W+", re.ASCII)
# How exporters call the length of a sequence, which may be an input's first axis.
_LENGTH = re.compile(r"seq|len|time|step|frame|token", re.IGNORECASE)
# How exporters call the batch, wherever it is.
_BATCH = re.compile(r"batch|^(n|bs)$", re.IGNORECASE)
# The axis from which on an image has its sides where its channels come first, and its rank.
_SIDES, _IMAGE = 2, 4


@dataclass(frozen=True)
class Named:
    """An input as its file has it.

    Attributes:
        name: Its name.
        shape: Dimensions: a number, what the file calls it, or `None` if it has no name.
    """

    name: str
    shape: tuple[int | str | None, ...]


def opened(
    fixed: FixedShapes, inputs: Sequence[Named], channels_first: bool = False
) -> list[tuple[Text, ...]]:
    """Returns the shapes of a model's inputs, with the same name for what is the same.

    Args:
        fixed: What the caller says about the shapes.
        inputs: All inputs of the model.
        channels_first: Whether the sides of images are behind their channels.

    Raises:
        UsageError: As `FixedShapes.given`; two inputs are given different sizes of one dimension.
    """
    plain = [(i.name, tuple(_number(d) for d in i.shape)) for i in inputs]
    given = fixed.given(plain, sides=False)
    numbers = _numbers(inputs, given)
    batches = _batches(inputs)
    scope = Scope()
    known = {
        symbol: scope.unique(_word(symbol))
        for symbol in dict.fromkeys(d for i in inputs for d in i.shape if isinstance(d, str))
        if symbol not in batches and _expression(symbol, inputs) is None
    }
    several = sum(None in shape[1:] for shape in given) > 1
    shapes: list[tuple[Text, ...]] = []
    for port, shape in zip(inputs, given, strict=True):
        dims: list[Text] = []
        for axis, (symbol, size) in enumerate(zip(port.shape, shape, strict=True)):
            if size is not None:
                dims.append(size)
            elif symbol in batches:
                # The batch is one axis: a second one has to be as large without being the batch.
                dims.append(scope.unique(_word(str(symbol))) if None in dims else None)
            elif isinstance(symbol, str):
                dims.append(_text(symbol, inputs, known))
            elif axis == 0 and batches.isdisjoint(port.shape):
                dims.append(None)
            else:
                images = channels_first and len(shape) >= _IMAGE
                place = axis - 1 if images and axis >= _SIDES else axis
                word = open_name(port.name if several else "", place, len(shape))
                dims.append(scope.unique("channels" if images and axis == 1 else word))
        shapes.append(tuple(dims))
    sizes = {known[s]: n for s, n in numbers.items() if s in known}
    named = [numbers[symbol] for symbol in batches if symbol in numbers]
    first = [
        shape[0]
        for port, shape in zip(inputs, given, strict=True)
        if port.shape and port.shape[0] is None and batches.isdisjoint(port.shape)
    ]
    batch = fixed.batch_of([*named, *first])
    if named:
        own = [[d in batches for d in i.shape] for i in inputs]
        shapes = [
            tuple(batch if same else dim for dim, same in zip(shape, places, strict=True))
            for shape, places in zip(shapes, own, strict=True)
        ]
    shapes = replaced(shapes, sizes)
    return [tuple(batch if dim is None else dim for dim in shape) for shape in shapes]


def _number(dim: int | str | None) -> int | None:
    return dim if isinstance(dim, int) else None


def _numbers(inputs: Sequence[Named], given: Sequence[tuple[int | None, ...]]) -> dict[str, int]:
    """Returns the sizes that the caller gives to dimensions of a name."""
    found: dict[str, tuple[int, str]] = {}
    problems = []
    for port, shape in zip(inputs, given, strict=True):
        for symbol, size in zip(port.shape, shape, strict=True):
            if not isinstance(symbol, str) or size is None:
                continue
            before, where = found.setdefault(symbol, (size, port.name))
            if before != size:
                what = f"{symbol} is {before} in input {where}, and {size} in input {port.name}"
                problems.append(Problem("--input_shape", what, "give both the same size"))
    if problems:
        raise UsageError.of(problems)
    return {symbol: size for symbol, (size, _) in found.items()}


def _batches(inputs: Sequence[Named]) -> frozenset[str]:
    """Returns what the file calls the batch.

    That is what has such a name; without one, all that is the first axis of an input and is not
    called as the length of a sequence is.
    """
    first = [i.shape[0] for i in inputs if i.shape and isinstance(i.shape[0], str)]
    every = [d for i in inputs for d in i.shape if isinstance(d, str)]
    for symbols in (first, every):
        called = {s for s in symbols if _BATCH.search(s) and s.isidentifier()}
        if called and (symbols is first or len(called) == 1):
            return frozenset(called)
    return frozenset(symbol for symbol in first if not _LENGTH.search(symbol))


def _word(symbol: str) -> str:
    """Returns an identifier for a dimension."""
    word = _NO_WORD.sub("_", symbol).strip("_")
    return word if word.isidentifier() and not keyword.iskeyword(word) else f"dim_{word}"


def _expression(symbol: str, inputs: Sequence[Named]) -> tuple[str, ...] | None:
    """Returns the dimensions of which a dimension is computed, if it is computed of others."""
    try:
        used = names(symbol)
    except ValueError:
        return None
    others = {d for i in inputs for d in i.shape if isinstance(d, str)}
    computed = symbol not in used and used and others.issuperset(used)
    return used if computed and not any(map(_BATCH.search, used)) else None


def _text(symbol: str, inputs: Sequence[Named], known: Mapping[str, str]) -> Text:
    used = _expression(symbol, inputs)
    if used is None:
        return known[symbol]
    ((text,),) = replaced([(symbol,)], {name: parsed(known[name]) for name in used})
    return text
