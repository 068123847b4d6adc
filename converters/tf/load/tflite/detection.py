"""Detections of single-shot networks: boxes that are decoded, and those of them that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from flatbuffers import flexbuffers

from converters.tf.load.saved_model.replay import Refused, Tensor
from converters.tf.load.tflite.call import Call, Handler

_NEEDED = ("max_detections", "max_classes_per_detection", "num_classes")
# Detections, each with its classes.
_MOST = 1 << 20
_SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")


def _options(call: Call) -> Mapping[str, Any]:
    """Returns the options by their names.

    Raises:
        Refused: They are damaged, one is missing or out of range.
    """
    found: dict[str, Any]
    try:
        found = flexbuffers.GetRoot(bytearray(call.operator.custom_options)).AsMap.Value
    except Exception as err:  # The library raises whatever the damaged part made it raise.
        raise Refused("options that can't be read") from err
    names = (*_NEEDED, *_SCALES)
    missing = [name for name in names if not isinstance(found.get(name), int | float)]
    if missing:
        raise Refused(f"options without {', '.join(missing)}")
    counts = [int(found[name]) for name in _NEEDED]
    scales = all(0 < found[name] < np.inf for name in _SCALES)
    if min(counts) < 1 or counts[0] * counts[1] > _MOST or not scales:
        raise Refused(f"options that no detection has: {found}")
    return found


def _decoded(call: Call, options: Mapping[str, Any]) -> Tensor:
    """Returns the corners `[anchors, 4]` of boxes that are relative to anchors."""
    boxes, anchors = call.tensor(0), call.tensor(2, "anchors")
    if boxes.shape[0] != 1:
        raise Refused("detections of several images; fix the batch by --batch 1")
    boxes = boxes[0, :, :4] / np.array([options[name] for name in _SCALES], np.float32)
    middle = boxes[:, :2] * anchors[:, 2:4] + anchors[:, :2]
    half = 0.5 * tf.exp(boxes[:, 2:4]) * anchors[:, 2:4]
    return tf.concat([middle - half, middle + half], 1)


def _detection(call: Call) -> list[Tensor]:
    """Boxes, classes, scores, and how many boxes: those that are not there are 0.

    A box with several classes comes as often, one after the other.
    """
    options = _options(call)
    boxes, scores = _decoded(call, options), call.tensor(1)[0]
    classes = int(options["num_classes"])
    if classes > int(scores.shape[1]):
        raise Refused(f"{classes} classes of {scores.shape[1]} scores")
    # Columns before those of the classes are of the background.
    scores = scores[:, int(scores.shape[1]) - classes :]
    least, most = float(options.get("nms_score_threshold", 0)), int(options["max_detections"])
    # TFLite keeps a score that is the threshold, and TensorFlow one that is above it.
    below = float(np.nextafter(np.float32(least), np.float32(-np.inf)))
    overlap = float(options.get("nms_iou_threshold", 0.5))
    if options.get("use_regular_nms"):
        each = int(options.get("detections_per_class", 100))
        found = tf.image.combined_non_max_suppression(
            boxes[None, :, None],
            scores[None],
            each,
            most,
            overlap,
            below,
            clip_boxes=False,
        )
        kept, values, kinds, count = found
        return [kept, kinds, values, tf.cast(count, tf.float32)]
    several = min(int(options["max_classes_per_detection"]), classes)
    best, kinds = tf.math.top_k(scores, several)
    places, count = tf.raw_ops.NonMaxSuppressionV4(
        boxes=boxes,
        scores=best[:, 0],
        max_output_size=most,
        iou_threshold=overlap,
        score_threshold=below,
        pad_to_max_output_size=True,
    )
    there = (tf.range(most) < count)[:, None]
    corners = tf.where(there, tf.gather(boxes, places), 0.0)
    rows = [tf.gather(x, places) for x in (tf.cast(kinds, tf.float32), best)]
    kinds, values = (tf.reshape(tf.where(there, x, 0.0), [1, most * several]) for x in rows)
    kept = tf.reshape(tf.repeat(corners, several, axis=0), [1, most * several, 4])
    return [kept, kinds, values, tf.cast(tf.reshape(count, [1]), tf.float32)]


OPS: dict[str, Handler] = {"TFLite_Detection_PostProcess": _detection}
