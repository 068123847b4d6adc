"""Operators of `ai.onnx.ml`: the linear models and scalers of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir.symbolic import product
from converters.tf.load.onnx.context import Context, Handler, Result
from converters.tf.load.onnx.values import Known
from converters.tf.load.saved_model.replay import Refused


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
    return ctx.result(x / tf.where(norm == 0.0, tf.ones_like(norm), norm))


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
    labels = ctx.attr("classlabels_ints")
    if not labels:
        raise Refused("labels that are strings; give the model numbers to choose from")
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
    label = tf.gather(tf.constant(labels, tf.int64), chosen)
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


OPS: Mapping[str, Handler] = {
    "ai.onnx.ml.ArrayFeatureExtractor": _columns,
    "ai.onnx.ml.LinearClassifier": _classifier,
    "ai.onnx.ml.LinearRegressor": _regressor,
    "ai.onnx.ml.Normalizer": _normalizer,
    "ai.onnx.ml.Scaler": _scaler,
}
