"""Operands that a call gives, and with which the shapes that the file states agree.

A crate has sizes of its own. Where an axis or a size is an input, the file says all the same how
large the result is. What fits that is computed, and a call that says something else fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.ir.expressions import is_open
from converters.tf.load.onnx.context import Context, Handler, Result
from converters.tf.load.onnx.stated import Fixed
from converters.tf.load.onnx.values import Known, Tensor, shape_of
from converters.tf.load.saved_model.replay import Refused

# How an operator is computed whose operands a call gives; the other function is that for constants.
Agreed: TypeAlias = Callable[[Context, Handler], Result]

# As many ways to read an operand as are computed side by side, and their elements together.
_MOST_WAYS, _MOST_ELEMENTS = 64, 1 << 22
# Elements of the largest result whose shape the file states.
_MOST_STATED = 1 << 26


def is_given(ctx: Context, index: int) -> bool:
    """Returns whether an operand is there, and a call gives it."""
    return ctx.has(index) and isinstance(ctx.value(index), Tensor)


def sizes_of(ctx: Context, index: int) -> Fixed:
    """Returns the dimensions of an operand.

    Raises:
        Refused: One is open.
    """
    shape = shape_of(ctx.value(index))
    found = tuple(int(dim) for dim in shape if isinstance(dim, int) and not is_open(dim))
    if len(found) < len(shape):
        raise Refused(f"operand {index} is open, and another one decides sizes")
    return found


def wanted(ctx: Context, index: int, result: int = 0) -> Fixed:
    """Returns the shape that the file states for a result.

    Raises:
        Refused: It states none, or one that is too large.
    """
    shapes = ctx.node.shapes
    shape = shapes[result] if result < len(shapes) else None
    if shape is None:
        raise Refused(f"operand {index} is computed from the model's inputs")
    if math.prod(shape) > _MOST_STATED:
        raise Refused(f"a result of the shape {list(shape)} by an operand that a call gives")
    return shape


def length(ctx: Context, index: int) -> int:
    """Returns the number of elements of an operand."""
    return math.prod(sizes_of(ctx, index))


def numbers(ctx: Context, index: int) -> Any:
    """Returns integers as a list of int64."""
    return tf.reshape(tf.cast(ctx.form(index), tf.int64), [length(ctx, index)])


def equal(found: Any, expected: Sequence[int] | Array) -> Any:
    """Returns whether all numbers of a list are what is expected."""
    return tf.reduce_all(tf.equal(found, np.asarray(expected, np.int64)))


def confirmed(ctx: Context, result: Result, holds: Any) -> Result:
    """Returns results if a truth value holds; if not, the call fails."""
    if isinstance(result, list | tuple):
        return [confirmed(ctx, part, holds) for part in result]
    # There is one element: what takes the second one fails.
    form = _form(ctx, result)
    return ctx.result(tf.gather(form[None], tf.where(holds, 0, 1)))


def _form(ctx: Context, result: Result) -> Any:
    return ctx.formed(result) if isinstance(result, Known | Tensor) else result


def tried(
    ctx: Context, plain: Handler, ways: Sequence[Mapping[int, Array]], matches: Any
) -> Result:
    """Returns what a call asks for, of several results that are all computed.

    Args:
        ctx: The node.
        plain: What computes it with constants.
        ways: What operands are, by their places.
        matches: Whether each of the ways is that of the call. If none is, the call fails.

    Raises:
        Refused: None is possible, or too many are.
    """
    if not 0 < len(ways) <= _MOST_WAYS:
        raise Refused(f"{len(ways)} ways to compute what the file states; at most {_MOST_WAYS}")
    results = []
    for way in ways:
        result = plain(with_known(ctx, way))
        results.append(list(result) if isinstance(result, list | tuple) else [result])
    if len(ways) == 1:
        return [confirmed(ctx, part, matches[0]) for part in results[0]]
    some = tf.reduce_any(matches)
    first = tf.argmax(tf.cast(matches, tf.int32), output_type=tf.int32)
    place = tf.where(some, first, len(ways))
    found = []
    for parts in zip(*results, strict=True):
        forms = [_form(ctx, part) for part in parts]
        if len(forms) * int(np.prod(forms[0].shape.as_list(), dtype=int)) > _MOST_ELEMENTS:
            raise Refused(f"{len(forms)} results of the shape {forms[0].shape} side by side")
        found.append(ctx.result(tf.gather(tf.stack(forms), place)))
    return found


def with_known(ctx: Context, known: Mapping[int, Array]) -> Context:
    """Returns a node some of whose operands are constants."""
    args = list(ctx.args)
    for place, data in known.items():
        args[place] = Known(np.asarray(data))
    return replace(ctx, args=tuple(args))


def places(axes: Any, rank: int) -> tuple[Any, Any]:
    """Returns axes that are not negative, and whether there are all of them."""
    there = tf.reduce_all(tf.logical_and(axes >= -rank, axes < rank))
    return tf.where(axes < 0, axes + rank, axes), there


def hits(axes: Any, rank: int) -> Any:
    """Returns whether each of some axes is each axis of a tensor: bool `[axes, rank]`."""
    return tf.equal(axes[:, None], np.arange(rank, dtype=np.int64))
