"""Operators of `ai.onnx.ml` that make features: categories, missing values, columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir.symbolic import product
from converters.tf.load.onnx.context import Context, Handler, Result, bounded, fixed
from converters.tf.load.onnx.values import Known
from converters.tf.load.onnx.words import looked_up, words_of
from converters.tf.load.saved_model.replay import Refused


def _one_hot(ctx: Context) -> Result:
    """A one at the place of the category, `[..., categories]`.

    Of another category all are zeros; without `zeros` the call fails.
    """
    words, numbers = ctx.attr("cats_strings"), ctx.attr("cats_int64s")
    if bool(words) == bool(numbers):
        raise Refused("no categories, or both numbers and words")
    if ctx.rank(0) > 2:
        raise Refused(f"categories of {ctx.rank(0)} axes; at most 2")
    count = len(words or numbers)
    if words:
        places = looked_up(ctx, words_of(words), np.arange(count + 1, dtype=np.int32)).form()
    else:
        places = _places(ctx.form(0), [int(n) for n in numbers])
    known = np.arange(count, dtype=np.int32)
    if not ctx.attr("zeros", 1):
        # What takes a place that is not in the list fails.
        places = tf.gather(ctx.session.tensor(Known(known, role="place")), places)
    y = tf.cast(tf.equal(places[..., None], tf.constant(known)), tf.float32)
    return ctx.result(y, None, (*ctx.shape(0), count))


def _places(x: Any, numbers: list[int]) -> Any:
    """Returns where elements are in a list, or its length for others."""
    if x.dtype == tf.string:
        raise Refused("words among categories that are numbers")
    if len(set(numbers)) < len(numbers):
        raise Refused("a category that is there twice")
    if x.dtype.is_floating:
        kind = x.dtype.as_numpy_dtype
        # Of a number that the type does not have, none of its elements is the truncated one.
        table = np.array([n if int(kind(n)) == n else np.nan for n in numbers], kind)
        x = tf.where(x < 0.0, tf.math.ceil(x), tf.math.floor(x))
    else:
        x, table = tf.cast(x, tf.int64), np.array(numbers, np.int64)
    hits = tf.equal(x[..., None], tf.constant(table))
    found = tf.argmax(tf.cast(hits, tf.int32), -1, output_type=tf.int32)
    return tf.where(tf.reduce_any(hits, -1), found, len(numbers))


def _imputed(ctx: Context) -> Result:
    """Other values instead of one: one for all, or one for each column."""
    x = ctx.form(0)
    name = "float" if x.dtype.is_floating else "int64"
    if x.dtype not in (tf.float32, tf.float64, tf.int32, tf.int64):
        raise Refused(f"missing values among elements of {x.dtype.name}")
    given = np.asarray(ctx.attr(f"imputed_value_{name}s") or (), x.dtype.as_numpy_dtype)
    if len(given) != 1:
        columns = fixed(ctx.shape(0)[-1], "the number of columns")
        if len(given) != columns or ctx.rank(0) > 2:
            raise Refused(f"{len(given)} values for {columns} columns")
    missing = ctx.attr(f"replaced_value_{name}", 0)
    unknown = name == "float" and np.isnan(missing)
    found = tf.math.is_nan(x) if unknown else tf.equal(x, tf.constant(missing, x.dtype))
    return ctx.result(tf.where(found, tf.constant(given), x))


def _vector(ctx: Context) -> Result:
    """Columns of all operands side by side: float32, each cut or filled up to its size."""
    sizes = [int(n) for n in ctx.attr("inputdimensions") or ()]
    if len(sizes) != len(ctx.args):
        raise Refused(f"{len(ctx.args)} operands and {len(sizes)} inputdimensions")
    for size in (*sizes, sum(sizes)):
        bounded([size])
    parts = []
    for index, size in enumerate(sizes):
        shape = ctx.shape(index)
        columns = fixed(product(shape[1:] if len(shape) > 1 else shape), "the number of columns")
        rows = (shape[0], columns) if len(shape) > 1 else (1, columns)
        part = tf.cast(ctx.reshape(index, rows).form()[:, :size], tf.float32)
        parts.append(tf.pad(part, [[0, 0], [0, size - columns]]) if size > columns else part)
    return ctx.result(tf.concat(parts, -1))


OPS: Mapping[str, Handler] = {
    "ai.onnx.ml.FeatureVectorizer": _vector,
    "ai.onnx.ml.Imputer": _imputed,
    "ai.onnx.ml.OneHotEncoder": _one_hot,
}
