"""What detectors end with, against onnxruntime: the best boxes of classes that overlap little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir import Array
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import TOLERANCE, difference
from converters.tf.tests.onnx_graphs import Dims, Network, saved

_COUNT, _CLASSES = 50, 3


def _converted(model: Any, folder: Path) -> ir.Graph:
    graph = convert(load(saved(model, folder), LoadOptions()).trace)
    assert problems(graph) == []
    return graph


def _agree(model: Any, graph: ir.Graph, fed: Mapping[str, Array]) -> list[Array]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected: list[Array] = session.run(None, dict(fed))
    found = interpret(graph, fed)
    for array, wanted in zip(found.values(), expected, strict=True):
        assert difference(array, wanted) <= TOLERANCE
    return expected


def _boxes(count: int, levels: int, seed: int) -> tuple[Array, Array]:
    """Returns boxes `[count, 4]`, and their scores `[count, classes]` of so many levels."""
    random = np.random.default_rng(seed)
    corners = random.uniform(0, 10, (count, 2))
    boxes = np.concatenate([corners, corners + random.uniform(1, 5, (count, 2))], 1)
    scores = random.integers(0, levels, (count, _CLASSES)) / levels
    return boxes.astype(np.float32), scores.astype(np.float32)


def _class_by_class(net: Network) -> list[str]:
    """As torchvision: of each class at most 12 boxes above a score, kept apart by an offset."""
    first, second = net.ints(0), net.ints(1)
    least, most = net.constant(np.float32(0.3)), net.ints(12)
    boxes, scores, labels = [], [], []
    all_boxes, all_scores = (net("Squeeze", x, first) for x in ("boxes", "scores"))
    for number in range(_CLASSES):
        own = net("Gather", all_scores, net.constant(np.array(number)), axis=1)
        above = net("Squeeze", net("NonZero", net("Greater", own, least)), first)
        own, corners = net("Gather", own, above), net("Gather", all_boxes, above)
        size = net("Min", net("Shape", own), most)
        best, order = net.many("TopK", 2, own, size)
        boxes.append(net("Gather", corners, order))
        scores.append(best)
        labels.append(net("Expand", net.constant(np.array([number])), net("Shape", best)))
    together = [net("Concat", *parts, axis=0) for parts in (boxes, scores, labels)]
    offset = net("Mul", net("Cast", together[2], to=1), net.constant(np.float32(100.0)))
    apart = net("Add", together[0], net("Unsqueeze", offset, second))
    found = net(
        "NonMaxSuppression",
        net("Unsqueeze", apart, first),
        net("Unsqueeze", net("Unsqueeze", together[1], first), first),
        net.constant(np.array([1 << 20])),
        net.constant(np.array([0.5], np.float32)),
    )
    kept = net("Squeeze", net("Gather", found, net.ints(2), axis=1), second)
    kept = net("Slice", kept, first, net.ints(20), first)
    return [net("Gather", x, kept) for x in together]


@pytest.mark.parametrize("count", [_COUNT, None])
def test_classes_are_cut_and_suppressed_together(count: int | None, tmp_path: Path) -> None:
    net = Network(17)
    outputs = _class_by_class(net)
    size = count or "anchors"
    model = net.model({"boxes": [1, size, 4], "scores": [1, size, _CLASSES]}, outputs)
    graph = _converted(model, tmp_path)
    sizes = [_COUNT] if count else [_COUNT, 200, 14]
    for seed, number in enumerate(sizes):
        # No scores are equal: onnxruntime's TopK and suppression differ in their order.
        boxes, scores = _boxes(number, 1 << 20, seed)
        found = _agree(model, graph, {"boxes": boxes[None], "scores": scores[None]})
        assert len(found[0]) == len(found[1]) == len(found[2])
    _agree(model, graph, {"boxes": boxes[None], "scores": 0 * scores[None]})


def _one_pass(net: Network, most: int) -> Sequence[str]:
    """As a YOLO whose results are suppressed: scores, boxes and classes."""
    turned = net("Transpose", "found", perm=[0, 2, 1])
    boxes, scores = net.many("Split", 2, turned, net.ints(4, _CLASSES), axis=2)
    scores = net("Transpose", scores, perm=[0, 2, 1])
    limits = [net.constant(np.array([x], np.float32)) for x in (0.5, 0.3)]
    kept = net("NonMaxSuppression", boxes, scores, net.ints(most), *limits)
    places = net("Gather", kept, net.ints(0, 2), axis=1)
    return (
        net("GatherND", scores, kept),
        net("GatherND", boxes, places),
        net("Gather", kept, net.constant(np.array(1)), axis=1),
        net("Gather", kept, net.constant(np.array(0)), axis=1),
    )


def _found(count: int, seed: int) -> Array:
    boxes, scores = _boxes(count, 8, seed)
    return np.ascontiguousarray(np.concatenate([boxes, scores], 1).T[None])


@pytest.mark.parametrize("count", [_COUNT, None])
def test_what_one_pass_finds_is_suppressed(count: int | None, tmp_path: Path) -> None:
    """With equal scores, of which the first box comes first."""
    net = Network(17)
    outputs = _one_pass(net, 30)
    model = net.model({"found": [1, 4 + _CLASSES, count or "anchors"]}, outputs)
    graph = _converted(model, tmp_path)
    for seed, number in enumerate([_COUNT] if count else [_COUNT, 3, 120]):
        _agree(model, graph, {"found": _found(number, seed)})


def test_regions_of_the_kept_boxes(tmp_path: Path) -> None:
    """As the second stage of a detector reads the features of what the first one found."""
    net = Network(17)
    _, boxes, _, images = _one_pass(net, 6)
    size: dict[str, Any] = {"output_height": 3, "output_width": 2, "sampling_ratio": 2}
    regions = net("RoiAlign", "features", boxes, images, spatial_scale=0.5, **size)
    inputs: dict[str, Dims] = {"found": [1, 4 + _CLASSES, _COUNT], "features": [1, 4, 16, 16]}
    model = net.model(inputs, [regions, boxes])
    graph = _converted(model, tmp_path)
    for seed in range(3):
        features = np.random.default_rng(seed).normal(size=(1, 4, 16, 16)).astype(np.float32)
        _agree(model, graph, {"found": _found(_COUNT, seed), "features": features})
