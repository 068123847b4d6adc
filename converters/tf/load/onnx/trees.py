"""Forests of decision trees, of `ai.onnx.ml`: all trees go down one level at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.onnx.context import Context, Handler, Result, fixed
from converters.tf.load.onnx.values import Known
from converters.tf.load.saved_model.replay import Refused

# Levels of the deepest tree; each becomes a few operations.
_MOST_LEVELS = 64
_TESTS: Mapping[str, Callable[[Any, Any], Any]] = {
    "BRANCH_EQ": tf.equal,
    "BRANCH_GT": tf.greater,
    "BRANCH_GTE": tf.greater_equal,
    "BRANCH_LEQ": tf.less_equal,
    "BRANCH_LT": tf.less,
    "BRANCH_NEQ": tf.not_equal,
}


@dataclass(frozen=True)
class _Forest:
    """All nodes of all trees, by one number each; a leaf is its own child.

    Attributes:
        number: The number of a node, by the ids of its tree and in it.
        roots: Where every tree begins.
        levels: How many tests the longest way down has.
        test: What branches do.
        features: Which feature a node looks at.
        thresholds: What it compares it with.
        yes: Where it goes if the test holds.
        no: Where it goes else.
        missing: Whether the test holds for what is not a number.
    """

    number: Mapping[tuple[int, int], int]
    roots: Array
    levels: int
    test: str
    features: Array
    thresholds: Array
    yes: Array
    no: Array
    missing: Array


def _forest(ctx: Context) -> _Forest:
    trees, ids = (list(map(int, ctx.attr(f"nodes_{n}ids", ()))) for n in ("tree", "node"))
    modes = [m.decode() if isinstance(m, bytes) else str(m) for m in ctx.attr("nodes_modes", ())]
    features = np.asarray(ctx.attr("nodes_featureids", ()), np.int32)
    thresholds = np.asarray(ctx.attr("nodes_values", ()), np.float32)
    missing = np.asarray(ctx.attr("nodes_missing_value_tracks_true") or [0] * len(ids), bool)
    number = {at: i for i, at in enumerate(zip(trees, ids, strict=True))}
    if not ids or len(number) != len(ids):
        raise Refused("no nodes, or two of the same name")
    tests = sorted({m for m in modes if m != "LEAF"}) or ["BRANCH_LEQ"]
    if len(tests) > 1 or tests[0] not in _TESTS:
        raise Refused(f"branches of the kinds {', '.join(tests)}; one kind is supported")
    places = [np.arange(len(ids), dtype=np.int32) for _ in range(2)]
    for children, name in zip(places, ("true", "false"), strict=True):
        found = ctx.attr(f"nodes_{name}nodeids", ())
        for i, (tree, child, mode) in enumerate(zip(trees, found, modes, strict=True)):
            if mode != "LEAF":
                children[i] = number[tree, int(child)]
    yes, no = places
    inner = np.array([m != "LEAF" for m in modes])
    roots = np.setdiff1d(np.arange(len(ids), dtype=np.int32), np.union1d(yes[inner], no[inner]))
    if sorted(trees[i] for i in roots) != sorted(set(trees)):
        raise Refused("a tree without a root, or with two")
    count = fixed(ctx.shape(0)[-1], "the number of features")
    if features[inner].size and not 0 <= features[inner].min() <= features[inner].max() < count:
        raise Refused(f"a feature out of {count}")
    features[~inner] = 0
    levels = _levels(roots, yes, no, inner)
    return _Forest(number, roots, levels, tests[0], features, thresholds, yes, no, missing)


def _levels(roots: Array, yes: Array, no: Array, inner: Array) -> int:
    level, front = 0, roots[inner[roots]]
    while front.size:
        level += 1
        if level > _MOST_LEVELS:
            raise Refused(f"a tree of more than {_MOST_LEVELS} levels, or one without an end")
        front = np.union1d(yes[front], no[front])
        front = front[inner[front]]
    return level


def _leaves(ctx: Context, forest: _Forest) -> Any:
    """Returns the numbers of the leaves where the examples end, `[batch, trees]`."""

    def table(data: Array, role: str) -> Any:
        return ctx.session.tensor(Known(data, role=role))

    x = ctx.form(0)
    x = x if x.dtype == tf.float32 else tf.cast(x, tf.float32)
    features, thresholds = table(forest.features, "feature"), table(forest.thresholds, "threshold")
    yes, no = table(forest.yes, "yes"), table(forest.no, "no")
    # A row for each example: the first feature says how many there are.
    first = tf.zeros_like(x[:, :1], tf.int32)
    at = first + tf.constant(forest.roots[None, :])
    for _ in range(forest.levels):
        seen = tf.gather(x, tf.gather(features, at), batch_dims=1, axis=1)
        holds = _TESTS[forest.test](seen, tf.gather(thresholds, at))
        if forest.missing.any():
            also = tf.gather(table(forest.missing, "missing"), at)
            holds = tf.logical_or(holds, tf.logical_and(tf.math.is_nan(seen), also))
        at = tf.where(holds, tf.gather(yes, at), tf.gather(no, at))
    return at


def _sums(ctx: Context, kind: str, count: int) -> Any:
    """Returns what the leaves say for each target or class, `[batch, count]`."""
    forest = _forest(ctx)
    weights = np.zeros((len(forest.features), count), np.float32)
    ids = (ctx.attr(f"{kind}_{n}", ()) for n in ("treeids", "nodeids", "ids", "weights"))
    for tree, node, target, weight in zip(*ids, strict=True):
        weights[forest.number[int(tree), int(node)], int(target)] += weight
    values = ctx.session.tensor(Known(weights, role="leaf"))
    total = tf.reduce_sum(tf.gather(values, _leaves(ctx, forest)), 1)
    if ctx.text("aggregate_function", "SUM", ["SUM", "AVERAGE"]) == "AVERAGE":
        total = total / float(len(forest.roots))
    base: Sequence[float] = ctx.attr("base_values") or ()
    return total + tf.constant(np.asarray(base, np.float32)) if base else total


def _regressor(ctx: Context) -> Result:
    ctx.text("post_transform", "NONE", ["NONE"])
    return ctx.result(_sums(ctx, "target", int(ctx.attr("n_targets", 1))))


def _classifier(ctx: Context) -> Result:
    """Gives the label and a score per class; with two classes, one score stands for both."""
    labels = ctx.attr("classlabels_int64s")
    if not labels:
        raise Refused("labels that are strings; give the model numbers to choose from")
    kind = ctx.text("post_transform", "NONE", ["NONE", "LOGISTIC", "SOFTMAX"])
    single = len(labels) == 2 and len(set(ctx.attr("class_ids", ()))) == 1
    if single and len(ctx.attr("base_values") or ()) > 1:
        raise Refused("a base value for each of two classes of which one has scores")
    if not single:
        y = _sums(ctx, "class", len(labels))
        chosen = tf.argmax(y, -1)
        change = {"LOGISTIC": tf.sigmoid, "SOFTMAX": tf.nn.softmax}.get(kind, tf.identity)
        scores = change(y)
    else:
        y = _only(ctx)
        share = min(ctx.attr("class_weights")) >= 0
        chosen = tf.cast(y[:, 0] > (0.5 if share else 0.0), tf.int64)
        # As onnxruntime has it, which knows no softmax of such a pair.
        if kind == "LOGISTIC":
            scores = tf.sigmoid(tf.concat([-y, y], -1))
        else:
            scores = tf.concat([1.0 - y if share else -y, y], -1)
    label = tf.gather(tf.constant(labels, tf.int64), chosen)
    return [ctx.result(label), ctx.result(scores)]


def _only(ctx: Context) -> Any:
    """Returns the scores of the only class that has some, `[batch, 1]`."""
    column = int(ctx.attr("class_ids")[0])
    return _sums(ctx, "class", column + 1)[:, column:]


OPS: dict[str, Handler] = {
    "ai.onnx.ml.TreeEnsembleClassifier": _classifier,
    "ai.onnx.ml.TreeEnsembleRegressor": _regressor,
}
