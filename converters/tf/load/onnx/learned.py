"""Operators of `ai.onnx.ml`: the linear models and scalers of scikit-learn."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.ir.symbolic import product
from converters.tf.load.onnx.context import Context, Handler, Result, fixed
from converters.tf.load.onnx.values import Known
from converters.tf.load.onnx.words import labels_of, looked_up, utf8_words, words_of
from converters.tf.load.saved_model.replay import Refused

# What a table has for other keys unless it says it, by the kind of its values.
_DEFAULTS: Mapping[str, tuple[str, Any]] = {
    "f": ("float", -0.0),
    "i": ("int64", -1),
    "O": ("string", "_Unused"),
}


def _constant(ctx: Context, values: Any, role: str) -> Any:
    return ctx.session.tensor(Known(np.asarray(values, np.float32), role=role))


def _float(x: Any) -> Any:
    return x if x.dtype == tf.float32 else tf.cast(x, tf.float32)


def _scaler(ctx: Context) -> Result:
    offset = _constant(ctx, ctx.attr("offset", [0.0]), "offset")
    scale = _constant(ctx, ctx.attr("scale", [1.0]), "scale")
    return ctx.result((_float(ctx.form(0)) - offset) * scale)


def _normalizer(ctx: Context) -> Result:
    kind = ctx.text("norm", "MAX", ["MAX", "L1", "L2"])
    x = _float(ctx.form(0))
    if kind == "MAX":
        norm = tf.reduce_max(x, -1, keepdims=True)
    elif kind == "L1":
        norm = tf.reduce_sum(tf.abs(x), -1, keepdims=True)
    else:
        norm = tf.sqrt(tf.reduce_sum(tf.square(x), -1, keepdims=True))
    return ctx.result(x / tf.where(tf.equal(norm, 0.0), tf.ones_like(norm), norm))


def _scores(ctx: Context, rows: int) -> Any:
    """Returns the linear scores `[batch, rows]`."""
    weights = np.asarray(ctx.attr("coefficients"), np.float32)
    if rows < 1 or weights.size % rows:
        raise Refused(f"{weights.size} coefficients for {rows} scores")
    kernel = _constant(ctx, weights.reshape(rows, -1).T, "weight")
    y = tf.matmul(_float(ctx.form(0)), kernel)
    bias = ctx.attr("intercepts")
    return y if not bias else tf.nn.bias_add(y, _constant(ctx, bias, "bias"))


def _transformed(ctx: Context, y: Any) -> Any:
    kind = ctx.text("post_transform", "NONE", ["NONE", "LOGISTIC", "SOFTMAX"])
    if kind == "LOGISTIC":
        return tf.sigmoid(y)
    return tf.nn.softmax(y) if kind == "SOFTMAX" else y


def _regressor(ctx: Context) -> Result:
    return ctx.result(_transformed(ctx, _scores(ctx, int(ctx.attr("targets", 1)))))


def _classifier(ctx: Context) -> Result:
    """Gives the label and a score per class; with two classes, one score stands for both."""
    labels = labels_of(ctx, "classlabels_ints", "classlabels_strings")
    rows = len(ctx.attr("intercepts") or ()) or len(labels)
    y = _scores(ctx, rows)
    kind = ctx.text("post_transform", "NONE", ["NONE", "LOGISTIC", "SOFTMAX"])
    if len(labels) == 2 and rows == 1:
        other = 1.0 - tf.sigmoid(y) if kind == "LOGISTIC" else -y
        both = tf.concat([other, tf.sigmoid(y) if kind == "LOGISTIC" else y], -1)
        chosen = tf.cast(y[:, 0] > 0.0, tf.int64)
        scores = tf.nn.softmax(both) if kind == "SOFTMAX" else both
    else:
        chosen, scores = tf.argmax(y, -1), _transformed(ctx, y)
    label = tf.gather(tf.constant(labels), chosen)
    return [ctx.result(label), ctx.result(scores)]


def _columns(ctx: Context) -> Result:
    """Elements of the last axis; a row of a vector."""
    x = ctx.form(0) if ctx.rank(0) > 1 else ctx.form(0)[None, :]
    value = ctx.value(1)
    if isinstance(value, Known):
        return ctx.result(tf.gather(x, value.data.ravel(), axis=-1))
    rows = [int(d) for d in x.shape[:-1]] if x.shape[:-1].is_fully_defined() else None
    if rows is None:
        raise Refused("columns of each example that are computed")
    y = tf.gather(x, tf.reshape(ctx.form(1), [-1]), axis=-1)
    return ctx.result(y, None, (*rows, product(ctx.shape(1))))


def _binarizer(ctx: Context) -> Result:
    threshold = float(ctx.attr("threshold", 0.0))
    return ctx.elementwise(lambda x: tf.cast(x > tf.cast(threshold, x.dtype), x.dtype), 0)


def _label_encoder(ctx: Context) -> Result:
    """Looks numbers or words up in a list."""
    keys, values = (_listed(ctx, name) for name in ("keys", "values"))
    if keys is None or values is None or len(keys) != len(values) or not len(keys):
        counts = [0 if found is None else len(found) for found in (keys, values)]
        raise Refused(f"{counts[0]} keys and {counts[1]} values")
    name, usual = _DEFAULTS.get(values.dtype.kind, ("int64", -1))
    given = ctx.attr("default_tensor", ctx.attr(f"default_{name}"))
    default = np.ravel(usual if given is None else given).astype(values.dtype)
    table = np.append(values, default[:1])
    if keys.dtype.kind == "O":
        words = words_of(list(keys))
        if values.dtype.kind != "O":
            return looked_up(ctx, words, table)
        places = looked_up(ctx, words, np.arange(len(table), dtype=np.int32))
        return ctx.result(tf.gather(_strings(table), places.form()), None, places.shape)

    def found(x: Any) -> Any:
        wide = x[..., None]
        same = tf.equal(wide, tf.constant(keys, x.dtype))
        if keys.dtype.kind == "f" and np.isnan(keys).any():
            same = tf.logical_or(same, tf.logical_and(tf.math.is_nan(wide), np.isnan(keys)))
        there = tf.reduce_any(same, -1)
        at = tf.where(there, tf.argmax(tf.cast(same, tf.int32), -1), len(keys))
        return tf.gather(_strings(table) if table.dtype.kind == "O" else tf.constant(table), at)

    return ctx.elementwise(found, 0)


def _strings(words: Array) -> Any:
    """Returns a constant of text."""
    return tf.constant(np.array([word.encode() for word in utf8_words(list(words))], object))


def _listed(ctx: Context, name: str) -> Array | None:
    """Returns numbers or words that an attribute has by one of several names."""
    kinds = (("int64s", np.int64), ("floats", np.float32), ("strings", object), ("tensor", None))
    for suffix, dtype in kinds:
        found = ctx.attr(f"{name}_{suffix}")
        if found is not None:
            return np.ravel(np.asarray(found, dtype))
    return None


def _counted_words(ctx: Context) -> Result:
    """Counts sequences of numbers or words in rows of them."""
    pool = ctx.attr("pool_int64s")
    if not pool:
        words = ctx.attr("pool_strings")
        if not words:
            raise Refused("a vocabulary without words")
        known = list(dict.fromkeys(words))
        numbers = np.append(np.arange(len(known)), -1)
        found = looked_up(ctx, words_of(known), numbers)
        places = {word: place for place, word in enumerate(known)}
        pool = [places[word] for word in words]
        ctx = replace(ctx, args=(found,))
    mode = ctx.text("mode", "TF", ["TF", "IDF", "TFIDF"])
    starts = [*map(int, ctx.attr("ngram_counts")), len(pool)]
    least, most = (int(ctx.attr(f"{n}_gram_length")) for n in ("min", "max"))
    columns = [int(i) for i in ctx.attr("ngram_indexes")]
    x = ctx.form(0) if ctx.rank(0) > 1 else ctx.form(0)[None, :]
    steps = fixed(ctx.shape(0)[-1], "the number of words")
    parts, order, seen = [], [], 0
    for length, (start, end) in enumerate(itertools.pairwise(starts), 1):
        grams = np.reshape(pool[start:end], (-1, length))
        own = columns[seen : seen + len(grams)]
        seen += len(grams)
        if not len(grams) or not least <= length <= most:
            continue
        order += own
        skips = range(1 if length == 1 else int(ctx.attr("max_skip_count", 0)) + 1)
        parts.append(_found(x, grams, steps, [skip + 1 for skip in skips]))
    count = max(columns) + 1
    if len(set(order)) != len(order) or not order:
        raise Refused("two sequences in one column, or none")
    at = np.full(count, len(order))
    at[order] = np.arange(len(order))
    wide = tf.concat([*parts, tf.zeros_like(parts[0][:, :1])], -1)
    y = tf.gather(wide, at, axis=1)
    if mode != "TF":
        weights = np.ones(count, np.float32)
        given = ctx.attr("weights")
        if given:
            weights[columns] = given
        y = (tf.cast(y > 0.0, tf.float32) if mode == "IDF" else y) * tf.constant(weights)
    return ctx.result(y if ctx.rank(0) > 1 else y[0])


def _found(x: Any, grams: Array, steps: int, gaps: Sequence[int]) -> Any:
    """Returns how often sequences occur in rows, their numbers some places apart."""
    length = grams.shape[1]
    total = tf.zeros_like(x[:, :1], tf.float32) + np.zeros((1, len(grams)), np.float32)
    for gap in gaps:
        count = steps - (length - 1) * gap
        if count < 1:
            continue
        same = None
        for word in range(length):
            here = x[:, word * gap : word * gap + count, None]
            hit = tf.equal(here, tf.constant(grams[:, word], x.dtype))
            same = hit if same is None else tf.logical_and(same, hit)
        total = total + tf.reduce_sum(tf.cast(same, tf.float32), 1)
    return total


OPS: Mapping[str, Handler] = {
    "TfIdfVectorizer": _counted_words,
    "ai.onnx.ml.Binarizer": _binarizer,
    "ai.onnx.ml.LabelEncoder": _label_encoder,
    "ai.onnx.ml.ArrayFeatureExtractor": _columns,
    "ai.onnx.ml.LinearClassifier": _classifier,
    "ai.onnx.ml.LinearRegressor": _regressor,
    "ai.onnx.ml.Normalizer": _normalizer,
    "ai.onnx.ml.Scaler": _scaler,
}
