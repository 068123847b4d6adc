"""Support vector machines of `ai.onnx.ml`, as libsvm and onnxruntime compute them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.onnx.context import Context, Handler, Result, fixed
from converters.tf.load.onnx.distances import squared
from converters.tf.load.onnx.values import Known
from converters.tf.load.onnx.words import labels_of
from converters.tf.load.saved_model.replay import Refused

# As in libsvm: rounds of the coupling of pairs, and what probabilities are kept away from.
_MOST_ROUNDS = 100
_LEAST = 1e-7
# Classes whose pairs are coupled; a round has a few operations for each.
_MOST_COUPLED = 64


def _table(ctx: Context, values: Any, role: str) -> Any:
    return ctx.session.tensor(Known(np.asarray(values, np.float32), role=role))


def _floats(ctx: Context, name: str) -> Array:
    return np.asarray(ctx.attr(name) or (), np.float32)


def _rows(ctx: Context) -> Any:
    """Returns the examples as float32 `[batch, features]`."""
    x = ctx.form(0) if ctx.rank(0) > 1 else ctx.form(0)[None, :]
    if x.shape.rank != 2:
        raise Refused(f"examples of {x.shape.rank} axes; 1 or 2 are supported")
    return x if x.dtype == tf.float32 else tf.cast(x, tf.float32)


def _matrix(ctx: Context, values: Array, rows: int, what: str) -> Array:
    """Returns numbers as `[rows, features]`.

    Raises:
        Refused: They are not that many.
    """
    features = fixed(ctx.shape(0)[-1], "the number of features")
    if values.size != rows * features:
        raise Refused(f"{values.size} {what} for {rows} rows of {features} features")
    return values.reshape(rows, features)


def _sums(ctx: Context, x: Any, weights: Array, rho: Array) -> Any:
    return tf.nn.bias_add(tf.matmul(x, _table(ctx, weights, "weight")), _table(ctx, rho, "bias"))


def _scores(ctx: Context, x: Any, vectors: Array, weights: Array, rho: Array) -> Any:
    """Returns sums of the kernel's values, `[batch, scores]`.

    Args:
        ctx: The node.
        x: The examples, `[batch, features]`.
        vectors: The support vectors, `[vectors, features]`.
        weights: What each adds to each score, `[vectors, scores]`.
        rho: What is added to each score.

    Raises:
        Refused: It is another kernel, or has other parameters.
    """
    kind = ctx.text("kernel_type", "LINEAR", ["LINEAR", "POLY", "RBF", "SIGMOID"])
    params = [float(p) for p in ctx.attr("kernel_params") or ()]
    if kind != "LINEAR" and len(params) != 3:
        raise Refused(f"{len(params)} kernel_params of the kernel {kind}, expected 3")
    if kind == "LINEAR":
        # One vector for each score says the same, with fewer digits lost.
        return _sums(ctx, x, vectors.T.astype(np.float64) @ weights.astype(np.float64), rho)
    if kind == "RBF":
        y = tf.exp(-params[0] * squared(x, _table(ctx, vectors, "vectors")))
        return _sums(ctx, y, weights, rho)
    gamma, first, degree = params
    y = gamma * tf.matmul(x, _table(ctx, vectors.T, "vectors")) + first
    return _sums(ctx, tf.tanh(y) if kind == "SIGMOID" else _power(y, degree), weights, rho)


def _power(y: Any, degree: float) -> Any:
    if degree == 2.0:
        return tf.square(y)
    return y * y * y if degree == 3.0 else tf.pow(y, degree)


def _regressor(ctx: Context) -> Result:
    """Gives a number for each example, `[batch, 1]`; 1 or -1 if it has one class."""
    ctx.text("post_transform", "NONE", ["NONE"])
    x, weights, rho = _rows(ctx), _floats(ctx, "coefficients"), _floats(ctx, "rho")
    count = int(ctx.attr("n_supports", 0))
    if len(rho) != 1 or (count and len(weights) != count):
        raise Refused(f"{len(rho)} rho and {len(weights)} coefficients of {count} vectors")
    if count:
        vectors = _matrix(ctx, _floats(ctx, "support_vectors"), count, "support_vectors")
        y = _scores(ctx, x, vectors, weights[:, None], rho)
    else:
        row = _matrix(ctx, weights, 1, "coefficients")
        y = _sums(ctx, x, row.T, rho)
    if ctx.attr("one_class", 0):
        y = tf.where(y > 0.0, tf.ones_like(y), -tf.ones_like(y))
    return ctx.result(y)


def _classifier(ctx: Context) -> Result:
    """Gives the label and the scores: of pairs of classes, or probabilities of the classes."""
    labels = labels_of(ctx, "classlabels_ints", "classlabels_strings")
    if len(labels) < 2:
        raise Refused("a single class")
    counts = [int(n) for n in ctx.attr("vectors_per_class") or ()]
    chosen, scores = _of_pairs(ctx, counts, len(labels)) if sum(counts) else _linear(ctx, labels)
    label = tf.gather(tf.constant(labels), chosen)
    return [ctx.result(label), ctx.result(scores)]


def _changed(ctx: Context, y: Any) -> Any:
    """Returns scores as the node wants them."""
    kind = ctx.text("post_transform", "NONE", ["NONE", "LOGISTIC", "SOFTMAX"])
    if kind == "LOGISTIC":
        return tf.sigmoid(y)
    return tf.nn.softmax(y) if kind == "SOFTMAX" else y


def _linear(ctx: Context, labels: Array) -> tuple[Any, Any]:
    """Without support vectors: a row of coefficients for each class, and one rho for all."""
    weights, rho = _floats(ctx, "coefficients"), _floats(ctx, "rho")
    if not len(rho):
        raise Refused("no rho")
    table = _table(ctx, _matrix(ctx, weights, len(labels), "coefficients").T, "weight")
    y = tf.matmul(_rows(ctx), table) + float(rho[0])
    chosen = tf.argmax(y, -1)
    if len(labels) == 2 and not len(_floats(ctx, "prob_a")):
        # As onnxruntime has it.
        most = tf.reduce_max(y, -1)
        second = most >= 0.5 if (weights >= 0).all() else most > 0.0
        chosen = tf.where(second, tf.ones_like(chosen), chosen)
    return chosen, _changed(ctx, y)


def _of_pairs(ctx: Context, counts: list[int], classes: int) -> tuple[Any, Any]:
    """Returns the places of the classes with the most votes, and the scores."""
    pairs = list(itertools.combinations(range(classes), 2))
    total = sum(counts)
    weights, rho = _floats(ctx, "coefficients"), _floats(ctx, "rho")
    slopes, ends = _floats(ctx, "prob_a"), _floats(ctx, "prob_b")
    if len(counts) != classes or min(counts) < 0 or weights.size != (classes - 1) * total:
        found = f"{len(counts)} vectors_per_class and {weights.size} coefficients"
        raise Refused(f"{found} for {classes} classes of {total} vectors")
    if len(rho) != len(pairs) or not len(slopes) == len(ends) in (0, len(pairs)):
        found = f"{len(rho)} rho, {len(slopes)} prob_a and {len(ends)} prob_b"
        raise Refused(f"{found} for {len(pairs)} pairs of classes")
    vectors = _matrix(ctx, _floats(ctx, "support_vectors"), total, "support_vectors")
    table = _weights(weights.reshape(classes - 1, total), counts, pairs)
    scores = _scores(ctx, _rows(ctx), vectors, table, rho)
    chosen = tf.argmax(_votes(scores, classes, pairs), -1)
    if len(slopes):
        # One minus a sigmoid, since what is lost near 0 is part of the reference.
        r = 1.0 - tf.sigmoid(
            tf.nn.bias_add(scores * _table(ctx, slopes, "slope"), _table(ctx, ends, "shift"))
        )
        return chosen, _changed(ctx, _coupled(tf.clip_by_value(r, _LEAST, 1.0 - _LEAST), classes))
    if classes > 2:
        return chosen, _changed(ctx, scores)
    kind = ctx.text("post_transform", "NONE", ["NONE", "LOGISTIC", "SOFTMAX"])
    # As onnxruntime has it, which knows no softmax of such a pair.
    both = tf.concat([1.0 - scores if kind == "SOFTMAX" else -scores, scores], -1)
    return chosen, tf.sigmoid(both) if kind == "LOGISTIC" else both


def _weights(weights: Array, counts: list[int], pairs: list[tuple[int, int]]) -> Array:
    """Returns what each support vector adds to the score of each pair: `[vectors, pairs]`."""
    starts = [0, *itertools.accumulate(counts)]
    table = np.zeros((weights.shape[1], len(pairs)), np.float32)
    for at, (i, j) in enumerate(pairs):
        first, second = (slice(starts[c], starts[c + 1]) for c in (i, j))
        table[first, at] = weights[j - 1, first]
        table[second, at] = weights[i, second]
    return table


def _votes(scores: Any, classes: int, pairs: list[tuple[int, int]]) -> Any:
    """Returns how many pairs each class wins: the first of a pair by a score above 0."""
    change, against = np.zeros((len(pairs), classes), np.float32), np.zeros(classes, np.float32)
    for at, (i, j) in enumerate(pairs):
        change[at, i], change[at, j] = 1.0, -1.0
        against[j] += 1.0
    return tf.matmul(tf.cast(scores > 0.0, tf.float32), tf.constant(change)) + against


def _coupled(first: Any, classes: int) -> Any:
    """Returns the probabilities of classes by those of pairs.

    Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise
    coupling", section 4.3, with the rounds of libsvm: each example ends when its largest error is
    below 0.005 for all classes together.

    Args:
        first: The probability of the first class of each pair, `[batch, pairs]`.
        classes: How many classes there are.

    Raises:
        Refused: There are too many.
    """
    if classes > _MOST_COUPLED:
        raise Refused(f"probabilities of {classes} classes; at most {_MOST_COUPLED}")
    return tf.map_fn(lambda pairs: _of_example(pairs, classes), first)


def _of_example(pairs: Any, classes: int) -> Any:
    """Returns the probabilities of the classes of an example."""
    q, least = _products(pairs, classes), 0.005 / classes

    def state(p: Any) -> tuple[Any, Any, Any]:
        shares = tf.linalg.matvec(q, p)
        whole = tf.reduce_sum(p * shares)
        return shares, whole, tf.reduce_max(tf.abs(shares - whole)) >= least

    def goes_on(number: Any, p: Any, busy: Any) -> Any:
        del p
        return tf.logical_and(number < _MOST_ROUNDS, busy)

    def turn(number: Any, p: Any, busy: Any) -> list[Any]:
        del busy
        shares, whole, _ = state(p)
        for i, unit in enumerate(np.eye(classes, dtype=np.float32)):
            change = (whole - shares[i]) / q[i, i]
            scale = 1.0 + change
            whole = (whole + change * (change * q[i, i] + 2.0 * shares[i])) / scale / scale
            shares = (shares + change * q[i]) / scale
            p = (p + change * unit) / scale
        return [number + 1, p, state(p)[2]]

    even = tf.zeros_like(pairs[:1]) + np.full(classes, 1.0 / classes, np.float32)
    return tf.while_loop(goes_on, turn, [tf.zeros([], tf.int32), even, state(even)[2]])[1]


def _products(pairs: Any, classes: int) -> Any:
    """Returns the matrix whose quadratic form the probabilities of an example make least."""
    places = np.zeros((classes, classes), np.int32)
    for at, (i, j) in enumerate(itertools.combinations(range(classes), 2)):
        places[i, j], places[j, i] = at, at + classes * (classes - 1) // 2
    wide = tf.concat([pairs, 1.0 - pairs], 0)
    own, other = tf.gather(wide, places), tf.gather(wide, places.T)
    diagonal = np.eye(classes, dtype=np.float32)
    sums = tf.reduce_sum(tf.square(other) * (1.0 - diagonal), -1, keepdims=True)
    return sums * diagonal - own * other * (1.0 - diagonal)


OPS: Mapping[str, Handler] = {
    "ai.onnx.ml.SVMClassifier": _classifier,
    "ai.onnx.ml.SVMRegressor": _regressor,
}
