"""Numbers that the class of a token decides: found once, whatever is computed of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from converters.tf import ir
from converters.tf.lower.graph import Context, Tensor, Unsupported, element_type
from converters.tf.lower.tensors import Classes, Tokens
from converters.tf.lower.trace import Variable

# As many buckets as a hash may have, or two together: each has a value in the weights.
_MOST_BUCKETS = 1 << 20

# What is computed of a class for all its tokens.
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "Add": np.add,
    "AddV2": np.add,
    "Equal": np.equal,
    "FloorMod": np.mod,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "LogicalAnd": np.logical_and,
    "LogicalNot": np.logical_not,
    "LogicalOr": np.logical_or,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mul": np.multiply,
    "NotEqual": np.not_equal,
    "OnesLike": np.ones_like,
    "Select": np.where,
    "SelectV2": np.where,
    "Sub": np.subtract,
    "ZerosLike": np.zeros_like,
}
FOLDED = ("Cast", *_FUNCTIONS)


def utf8(words: Iterable[object]) -> list[bytes]:
    """Returns the bytes of words.

    Raises:
        Unsupported: One is not UTF-8, so that no text of Rust can be it.
    """
    found = [ir.as_bytes(word) for word in words]
    for word in found:
        try:
            word.decode()
        except UnicodeDecodeError as err:
            raise Unsupported(f"the word {word!r}, which is not UTF-8") from err
    return found


def object_array(text: bytes) -> ir.Array:
    """Returns a text as an array without axes."""
    found = np.empty((), object)
    found[()] = text
    return found


def looked_up(tokens: Tokens, keys: ir.Array, values: ir.Array, default: ir.Array) -> Classes:
    """Returns the values of a table with words as keys."""
    words = utf8(keys)
    order = sorted(range(len(words)), key=lambda place: words[place])
    numbers = np.append(values[order], default.ravel()[:1].astype(values.dtype))
    return Classes(tokens, tuple(words[place] for place in order), ir.Rest(), numbers)


def equal_to(tokens: Tokens, text: object, differs: bool) -> Classes:
    """Returns whether tokens are one text, or differ from it."""
    (word,) = utf8([text])
    return Classes(tokens, (word,), ir.Rest(), np.asarray([not differs, differs]))


def hashed(tokens: Tokens, buckets: int, key: Sequence[int] | None) -> Classes:
    """Returns the bucket of each token."""
    if not 0 < buckets <= _MOST_BUCKETS:
        raise Unsupported(f"{buckets} buckets of a hash; at most {_MOST_BUCKETS}")
    of = None if key is None else (int(key[0]), int(key[1]))
    rest = ir.Rest(buckets, of)
    return Classes(tokens, (), rest, np.arange(buckets, dtype=np.int64))


def computed(ctx: Context) -> Classes | None:
    """Returns what a node computes of classes, or nothing if it reads other tensors, too."""
    classes = [arg for arg in ctx.args if isinstance(arg, Classes)]
    first, *others = classes
    if any(not first.tokens.same(other.tokens) for other in others):
        return None
    words = tuple(sorted({word for each in classes for word in each.words}))
    rest = _joined([each.rest for each in classes])
    if rest is None:
        return None
    values = [
        _values(arg, words, rest) if isinstance(arg, Classes) else _number(arg) for arg in ctx.args
    ]
    if any(value is None for value in values):
        return None
    if ctx.node.op == "Cast":
        found = values[0].astype(element_type(ctx.attr("DstT")).numpy)
    else:
        found = np.asarray(_FUNCTIONS[ctx.node.op](*values))
    return Classes(first.tokens, words, rest, found)


def _number(arg: Tensor) -> Any:
    """Returns a constant of one number, or nothing."""
    if not isinstance(arg, ir.Value | Variable) or arg.data is None or arg.data.size != 1:
        return None
    return arg.data.reshape(())


def _joined(rests: Sequence[ir.Rest]) -> ir.Rest | None:
    """Returns buckets that tell apart what each of some hashes tells apart."""
    several = {rest for rest in rests if rest.buckets > 1}
    keys = {rest.key for rest in several}
    if len(keys) > 1:
        return None
    buckets = math.lcm(*(rest.buckets for rest in several))
    if buckets > _MOST_BUCKETS:
        return None
    return ir.Rest(buckets, *keys)


def _values(classes: Classes, words: Sequence[bytes], rest: ir.Rest) -> ir.Array:
    """Returns the numbers of more classes than there were."""
    if tuple(words) == classes.words and rest == classes.rest:
        return classes.values
    places = {word: place for place, word in enumerate(classes.words)}
    own = ir.classes_of(words, places, classes.rest)
    buckets = len(places) + np.arange(rest.buckets) % classes.rest.buckets
    return np.asarray(classes.values[np.concatenate([np.asarray(own, np.int64), buckets])])


def _operands(ctx: Context, classes: Classes, values: ir.Array) -> list[ir.Value | None]:
    name = f"{ctx.build.layer}/vocabulary" if ctx.build.layer else "vocabulary"
    operands: list[ir.Value | None] = [classes.tokens.texts, ir.constant(values)]
    if classes.words:
        joined, ends = ir.packed_words(classes.words)
        operands += [ir.constant(joined, name), ir.constant(ends)]
    return operands


def tensor(ctx: Context, classes: Classes) -> ir.Value:
    """Returns the number of each text as a tensor of the model.

    Raises:
        Unsupported: It has a number for each of many tokens.
    """
    if classes.tokens.flat:
        raise Unsupported("what is computed of the tokens of all texts together")
    build = ctx.build
    found = classes.made.get(id(build))
    if found is None:
        values = np.append(classes.values, classes.values[:1])
        op = ir.TokenValues(classes.tokens.reading, classes.rest)
        dtype = ir.DType.of(values.dtype)
        found = build.emit(op, _operands(ctx, classes, values), dtype=dtype)
        classes.made[id(build)] = found
    return found


def rows(ctx: Context, classes: Classes, row: int, default: ir.Array) -> ir.Value:
    """Returns the numbers of so many tokens of each text."""
    values = np.append(classes.values, default.ravel()[:1].astype(classes.values.dtype))
    op = ir.TokenValues(classes.tokens.reading, classes.rest, row)
    operands = _operands(ctx, classes, values)
    return ctx.build.emit(op, operands, dtype=ir.DType.of(values.dtype))


def counted(ctx: Context, classes: Classes, size: int, binary: bool, dtype: ir.DType) -> ir.Value:
    """Returns how many tokens of each text have each number below a size."""
    bins = np.where((classes.values >= 0) & (classes.values < size), classes.values, -1)
    if classes.tokens.flat and (classes.values < 0).any():
        raise Unsupported("a count of numbers below 0")
    op = ir.TokenCounts(classes.tokens.reading, classes.rest, size, binary)
    return ctx.build.emit(op, _operands(ctx, classes, bins.astype(np.int32)), dtype=dtype)


def lengths(ctx: Context, tokens: Tokens) -> ir.Value:
    """Returns how many tokens each text has, int64."""
    split = tokens.reading.split
    reading = replace(tokens.reading, split=replace(split, most=0))
    b, kind = ctx.build, ir.DType.I64
    op = ir.TokenCounts(reading, ir.Rest(), 1, binary=False)
    bins = ir.constant(np.zeros(1, np.int32))
    found = b.reshape(b.emit(op, [tokens.texts, bins], dtype=kind), tokens.texts.shape)
    if not split.most:
        return found
    return b.binary(ir.BinaryKind.MIN, found, b.scalar(split.most, kind))
