"""Forests of decision trees, of `ai.onnx.ml`: all trees go down one level at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.onnx.context import Context, Handler, Result, fixed
from converters.tf.load.onnx.values import Known
from converters.tf.load.onnx.words import labels_of
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
        tests: What the branches of nodes do; any of them for leaves.
        features: Which feature a node looks at.
        thresholds: What it compares it with.
        yes: Where it goes if the test holds.
        no: Where it goes else.
        missing: Whether the test holds for NaN.
    """

    number: Mapping[tuple[int, int], int]
    roots: Array
    levels: int
    tests: Sequence[str]
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
    return _checked(ctx, number, roots, modes, features, thresholds, (yes, no), missing)


def _checked(
    ctx: Context,
    number: Mapping[tuple[int, int], int],
    roots: Array,
    modes: Sequence[str],
    features: Array,
    thresholds: Array,
    children: tuple[Array, Array],
    missing: Array,
) -> _Forest:
    """Returns a forest that fits what it looks at."""
    inner = np.array([m != "LEAF" for m in modes])
    tests = sorted({m for m in modes if m != "LEAF"}) or ["BRANCH_LEQ"]
    if not set(tests) <= _TESTS.keys():
        raise Refused(f"branches of the kinds {', '.join(tests)}; known: {', '.join(_TESTS)}")
    yes, no = children
    count = fixed(ctx.shape(0)[-1], "the number of features")
    if features[inner].size and not 0 <= features[inner].min() <= features[inner].max() < count:
        raise Refused(f"a feature out of {count}")
    features[~inner] = 0
    levels = _levels(roots, yes, no, inner)
    own = [mode if mode in _TESTS else tests[0] for mode in modes]
    return _Forest(number, roots, levels, own, features, thresholds, yes, no, missing)


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
        holds = _holds(forest, seen, tf.gather(thresholds, at), at, table)
        if forest.missing.any():
            also = tf.gather(table(forest.missing, "missing"), at)
            holds = tf.logical_or(holds, tf.logical_and(tf.math.is_nan(seen), also))
        at = tf.where(holds, tf.gather(yes, at), tf.gather(no, at))
    return at


def _holds(forest: _Forest, seen: Any, threshold: Any, at: Any, table: Any) -> Any:
    """Returns whether the tests of nodes hold."""
    result = None
    for test in sorted(set(forest.tests)):
        holds = _TESTS[test](seen, threshold)
        if len(set(forest.tests)) > 1:
            own = table(np.array([t == test for t in forest.tests]), "test")
            holds = tf.logical_and(holds, tf.gather(own, at))
        result = holds if result is None else tf.logical_or(result, holds)
    return result


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
    labels = labels_of(ctx, "classlabels_int64s", "classlabels_strings")
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
    label = tf.gather(tf.constant(labels), chosen)
    return [ctx.result(label), ctx.result(scores)]


def _only(ctx: Context) -> Any:
    """Returns the scores of the only class that has some, `[batch, 1]`."""
    column = int(ctx.attr("class_ids")[0])
    return _sums(ctx, "class", column + 1)[:, column:]


# Kinds of branches by their numbers in `TreeEnsemble`; one more asks for one of several numbers.
_KINDS = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_MEMBER = len(_KINDS)


@dataclass
class _Nodes:
    """Nodes of `TreeEnsemble` while those that ask for one of several numbers become several.

    A child is the number of a node, or of a leaf below -1: leaf 0 is -1.
    """

    modes: list[str]
    features: list[int]
    thresholds: list[float]
    yes: list[int]
    no: list[int]
    missing: list[int]

    def change(self, at: int, members: Sequence[float]) -> None:
        """Asks for one number after the other."""
        no = self.no[at]
        for i, member in enumerate(members):
            self.modes[at], self.thresholds[at] = "BRANCH_EQ", member
            if i + 1 < len(members):
                self.no[at] = len(self.modes)
                self.modes.append(self.modes[at])
                self.features.append(self.features[at])
                self.thresholds.append(member)
                self.yes.append(self.yes[at])
                self.missing.append(self.missing[at])
                self.no.append(no)
                at = len(self.modes) - 1


def _ensemble(ctx: Context) -> Result:
    """The forest of version 5, whose leaves are not nodes."""
    modes = [int(m) for m in np.ravel(ctx.attr("nodes_modes"))]
    splits = np.asarray(ctx.attr("nodes_splits"))
    if any(not 0 <= m <= _MEMBER for m in modes):
        raise Refused(f"branches of the kinds {sorted(set(modes))}; 0 to {_MEMBER} are known")
    children = []
    for name in ("true", "false"):
        nodes, leafs = (ctx.attr(f"nodes_{name}{kind}") for kind in ("nodeids", "leafs"))
        pairs = zip(nodes, leafs, strict=True)
        children.append([-1 - int(n) if leaf else int(n) for n, leaf in pairs])
    tracks = ctx.attr("nodes_missing_value_tracks_true") or [0] * len(modes)
    nodes = _Nodes(
        [_KINDS[m] if m < _MEMBER else "BRANCH_EQ" for m in modes],
        [int(f) for f in ctx.attr("nodes_featureids")],
        [float(x) for x in splits],
        children[0],
        children[1],
        [int(t) for t in tracks],
    )
    sets = _sets(ctx)
    for at, mode in enumerate(modes):
        if mode == _MEMBER:
            nodes.change(at, next(sets, ()))
    targets = [int(t) for t in ctx.attr("leaf_targetids")]
    count, leaves = len(nodes.modes), len(targets)
    places = [
        np.array([c if c >= 0 else count - 1 - c for c in column], np.int32)
        for column in (nodes.yes, nodes.no)
    ]
    if any(np.any((p < 0) | (p >= count + leaves)) for p in places):
        raise Refused(f"a child that is none of {count} nodes and {leaves} leaves")
    ends = np.arange(count, count + leaves, dtype=np.int32)
    zeros = np.zeros(leaves, np.int32)
    forest = _checked(
        ctx,
        {},
        np.asarray(ctx.attr("tree_roots"), np.int32),
        [*nodes.modes, *("LEAF",) * leaves],
        np.concatenate([np.asarray(nodes.features, np.int32), zeros]),
        np.concatenate([np.asarray(nodes.thresholds, np.float32), zeros.astype(np.float32)]),
        (np.concatenate([places[0], ends]), np.concatenate([places[1], ends])),
        np.concatenate([np.asarray(nodes.missing, bool), zeros.astype(bool)]),
    )
    weights = np.zeros((count + leaves, int(ctx.attr("n_targets", 1))), np.float32)
    weights[ends, targets] = np.ravel(ctx.attr("leaf_weights"))
    values = ctx.session.tensor(Known(weights, role="leaf"))
    found = tf.gather(values, _leaves(ctx, forest))
    number = int(ctx.attr("aggregate_function", 1))
    if number not in _AGGREGATES or ctx.attr("post_transform", 0):
        raise Refused("an aggregate_function that is unknown, or a post_transform")
    return ctx.result(tf.cast(_AGGREGATES[number](found, 1), splits.dtype))


_AGGREGATES: Mapping[int, Callable[..., Any]] = {
    0: tf.reduce_mean,
    1: tf.reduce_sum,
    2: tf.reduce_min,
    3: tf.reduce_max,
}


def _sets(ctx: Context) -> Iterator[Sequence[float]]:
    """Yields the numbers that each node asks for; NaN ends them."""
    members: list[float] = []
    for value in np.ravel(ctx.attr("membership_values", ())):
        if np.isnan(value):
            yield members
            members = []
        else:
            members.append(float(value))


OPS: dict[str, Handler] = {
    "ai.onnx.ml.TreeEnsemble": _ensemble,
    "ai.onnx.ml.TreeEnsembleClassifier": _classifier,
    "ai.onnx.ml.TreeEnsembleRegressor": _regressor,
}
