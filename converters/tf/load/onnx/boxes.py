"""Boxes of which only the best of those that overlap are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Dim
from converters.tf.ir.expressions import is_open
from converters.tf.load.onnx.agreed import is_given
from converters.tf.load.onnx.context import Context, Handler, Result, fixed, whole
from converters.tf.load.saved_model.replay import Refused

# Classes of all examples among whose boxes some are kept.
_MOST_GROUPS = 256
_LOWEST = float(np.finfo(np.float32).min)


def _suppress(ctx: Context) -> Result:
    """Keeps the best boxes of each class: the numbers of their example, class and place.

    A call may give how many, which share of a union is too much, and the least score.
    """
    batch, classes, count = ctx.shape(1)
    kinds = fixed(classes, "the number of classes")
    groups = fixed(batch, "the number of examples") * kinds
    most = _most(ctx, count)
    if most < 1 or groups > _MOST_GROUPS:
        raise Refused(f"{most} boxes of each of {groups} classes")
    boxes, scores, least = _corners(ctx), ctx.form(1), _LOWEST
    if is_given(ctx, 4):
        scores = tf.where(scores > tf.reshape(ctx.form(4), []), scores, -np.inf)
    elif ctx.has(4):
        least = float(ctx.array(4).item())
    limit = tf.reshape(tf.cast(ctx.form(2), tf.int64), []) if is_given(ctx, 2) else None
    if is_given(ctx, 3):
        size = fixed(count, "the number of boxes")
        rows = tf.reshape(scores, [groups, size])
        boxes = tf.gather(boxes, np.repeat(np.arange(groups // kinds), kinds))
        limit = tf.constant(most, tf.int64) if limit is None else limit
        place, there = _one_by_one(boxes, rows, tf.reshape(ctx.form(3), []), least, limit)
        ctx.session.state(there, (groups, size))
    else:
        overlap = float(ctx.array(3).item()) if ctx.has(3) else 0.0
        found = []
        for group in range(groups):
            example, number = divmod(group, kinds)
            chosen, valid = tf.raw_ops.NonMaxSuppressionV4(
                boxes=boxes[example],
                scores=scores[example, number],
                max_output_size=most,
                iou_threshold=overlap,
                score_threshold=least,
                pad_to_max_output_size=True,
            )
            found.append((chosen, tf.range(most) < valid))
        place, there = (tf.stack(parts) for parts in zip(*found, strict=True))
        if limit is not None:
            there = tf.logical_and(there, tf.range(most, dtype=tf.int64) < limit)
    each = int(there.shape[1])
    kept = tf.where(tf.reshape(there, [-1]))
    at = tf.gather(tf.reshape(tf.cast(place, tf.int64), [-1, 1]), kept[:, 0])
    group = kept // each
    return ctx.result(tf.concat([group // kinds, group % kinds, at], 1))


def _most(ctx: Context, count: Dim) -> int:
    """Returns how many boxes of a class may be kept."""
    if is_given(ctx, 2):
        return fixed(count, "the number of boxes")
    most = int(ctx.ints(2)[0]) if ctx.has(2) else 0
    return most if is_open(count) else min(most, int(whole(count, "the number of boxes")))


def _corners(ctx: Context) -> Any:
    """Returns two opposite corners of each box."""
    boxes = ctx.form(0)
    if not ctx.attr("center_point_box", 0):
        return boxes
    x, y, width, height = tf.unstack(boxes, axis=-1)
    half = (height / 2, width / 2)
    return tf.stack([y - half[0], x - half[1], y + half[0], x + half[1]], -1)


def _one_by_one(boxes: Any, scores: Any, overlap: Any, least: float, limit: Any) -> tuple[Any, Any]:
    """Keeps a box of each class in every turn of a loop, until none is left.

    Args:
        boxes: Two corners of each box: `[classes, boxes, 4]`.
        scores: Their scores: `[classes, boxes]`.
        overlap: A box goes if more than this part of its union with a kept one is shared.
        least: Boxes have a higher score than this.
        limit: How many of each class are kept, int64.

    Returns:
        The boxes' places by their scores, and which are kept: `[classes, boxes]`.
    """
    count = int(scores.shape[1])
    sorted_scores, order = tf.math.top_k(scores, count)
    boxes = tf.gather(boxes, order, batch_dims=1)
    low = tf.minimum(boxes[..., :2], boxes[..., 2:])
    high = tf.maximum(boxes[..., :2], boxes[..., 2:])
    area = _area(low, high)
    number = np.arange(count, dtype=np.int64)

    def goes_on(turn: Any, alive: Any, kept: Any) -> Any:
        del kept
        return tf.logical_and(turn < limit, tf.reduce_any(alive))

    def keep(turn: Any, alive: Any, kept: Any) -> tuple[Any, Any, Any]:
        first = tf.argmax(tf.cast(alive, tf.int32), 1)
        hit = tf.logical_and(tf.equal(first[:, None], number), alive)
        own_low, own_high, own_area = (
            tf.gather(x, first, batch_dims=1)[:, None] for x in (low, high, area)
        )
        common = _area(tf.maximum(low, own_low), tf.minimum(high, own_high))
        part = common / (area + own_area - common)
        there = tf.logical_and(area > 0.0, own_area > 0.0)
        over = tf.logical_and(there, part > overlap)
        left = tf.logical_and(alive, tf.logical_not(tf.logical_or(over, hit)))
        return turn + 1, left, tf.logical_or(kept, hit)

    alive = sorted_scores > least
    start = (tf.zeros([], tf.int64), alive, tf.zeros_like(alive))
    return order, tf.while_loop(goes_on, keep, start)[2]


def _area(low: Any, high: Any) -> Any:
    """Returns the areas between two corners; 0 if they have none between them."""
    sides = tf.maximum(high - low, 0.0)
    return sides[..., 0] * sides[..., 1]


OPS: Mapping[str, Handler] = {"NonMaxSuppression": _suppress}
