"""Detections of single-shot networks, against TFLite's own operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.load.shapes import FixedShapes
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import TOLERANCE, difference
from converters.tf.tests.tflite_files import (
    Operator,
    Subgraph,
    Tensor,
    constant,
    file_of,
    interpreted,
)
from tools.codegen.conversion import UnsupportedError

_BOXES, _CLASSES = 60, 5
_OPTIONS = {
    "max_detections": 8,
    "max_classes_per_detection": 1,
    "num_classes": _CLASSES,
    "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.5,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}


def _file(options: dict[str, Any], background: int = 1, open_batch: bool = False) -> bytes:
    """Returns a file of one operator; the sizes that it states are not the operator's concern."""
    random = np.random.default_rng(3)
    centers = random.uniform(0.2, 0.8, (_BOXES, 2))
    sizes = random.uniform(0.1, 0.4, (_BOXES, 2))
    anchors = np.concatenate([centers, sizes], 1).astype(np.float32)
    most = min(options.get("max_detections", 8) * options.get("max_classes_per_detection", 1), 99)
    tensors = [
        Tensor((1, _BOXES, 4), open=open_batch),
        Tensor((1, _BOXES, _CLASSES + background), open=open_batch),
        constant(anchors),
        *(Tensor(shape, open=False) for shape in ((1, most, 4), (1, most), (1, most), (1,))),
    ]
    custom = bytes(flexbuffers.Dumps(options))
    operator = Operator("TFLite_Detection_PostProcess", [0, 1, 2], [3, 4, 5, 6], custom=custom)
    return file_of([Subgraph(tensors, [operator], [0, 1], [3, 4, 5, 6])])


def _arrays(graph: ir.Graph, seed: int, background: int = 1) -> dict[str, ir.Array]:
    random = np.random.default_rng(seed)
    boxes = random.normal(0, 2, (1, _BOXES, 4)).astype(np.float32)
    scores = random.uniform(0, 1, (1, _BOXES, _CLASSES + background)) ** 3
    first, second = (port.name for port in graph.inputs)
    return {first: boxes, second: scores.astype(np.float32)}


@pytest.mark.parametrize(
    ("more", "background"),
    [
        ({}, 1),
        ({}, 0),
        ({"nms_iou_threshold": 0.2, "max_detections": 40}, 1),
        ({"nms_score_threshold": 0.999}, 1),
        ({"max_classes_per_detection": 3}, 1),
        ({"use_regular_nms": True, "detections_per_class": 100}, 1),
        ({"use_regular_nms": True, "detections_per_class": 2, "max_detections": 20}, 0),
    ],
)
def test_detections_are_those_of_tflite(
    tmp_path: Path, more: dict[str, Any], background: int
) -> None:
    content = _file({**_OPTIONS, **more}, background)
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    loaded = load(path, LoadOptions())
    graph = convert(loaded.trace)
    assert problems(graph) == []
    for seed in range(3):
        arrays = _arrays(graph, seed, background)
        expected = interpreted(content, list(arrays.values()))
        for outputs in (interpret(graph, arrays), loaded.predict(arrays)):
            boxes, kinds, scores, count = outputs.values()
            assert count == expected[3]
            there = int(count[0]) * int(more.get("max_classes_per_detection", 1))
            # TFLite leaves what follows the last detection as its memory was.
            for own, wanted in zip((boxes, kinds, scores), expected, strict=False):
                assert own.shape == wanted.shape
                assert difference(own[:, :there], wanted[:, :there]) <= TOLERANCE
                assert not own[:, there:].any()


def test_quantized_boxes_and_scores(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    anchors = random.integers(40, 120, (_BOXES, 4)).astype(np.uint8)
    tensors = [
        Tensor((1, _BOXES, 4), dtype="uint8", open=False, scale=(0.1,), zero=(128,)),
        Tensor((1, _BOXES, _CLASSES + 1), dtype="uint8", open=False, scale=(1 / 256,), zero=(0,)),
        constant(anchors, scale=(0.005,), zero=(0,)),
        *(Tensor(shape, open=False) for shape in ((1, 8, 4), (1, 8), (1, 8), (1,))),
    ]
    custom = bytes(flexbuffers.Dumps(_OPTIONS))
    operator = Operator("TFLite_Detection_PostProcess", [0, 1, 2], [3, 4, 5, 6], custom=custom)
    content = file_of([Subgraph(tensors, [operator], [0, 1], [3, 4, 5, 6])])
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    loaded = load(path, LoadOptions())
    graph = convert(loaded.trace)
    # No two scores of classes are equal: which of them comes first is not told.
    levels = np.stack([random.permutation(256)[: _CLASSES + 1] for _ in range(_BOXES)])
    levels[:, 1] = random.permutation(256)[:_BOXES]
    levels[:, 2:] //= 16
    places = random.integers(100, 156, (1, _BOXES, 4)).astype(np.uint8)
    stored: list[ir.Array] = [places, levels[None].astype(np.uint8)]
    expected = interpreted(content, stored)
    arrays: dict[str, ir.Array] = {}
    for port, data, scale, zero in zip(graph.inputs, stored, (0.1, 1 / 256), (128, 0), strict=True):
        real: ir.Array = np.float32(scale) * (data - np.float32(zero))
        arrays[port.name] = data if port.value.dtype is ir.DType.U8 else real
    boxes, kinds, scores, count = interpret(graph, arrays).values()
    assert count == expected[3] > 0
    there = int(count[0])
    for own, wanted in zip((boxes, kinds, scores), expected, strict=False):
        assert difference(own[:, :there], wanted[:, :there]) <= TOLERANCE


def test_a_batch_is_fixed(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(_file(_OPTIONS, open_batch=True))
    with pytest.raises(UnsupportedError, match="several images; fix the batch by --batch 1"):
        convert(load(path, LoadOptions()).trace)
    graph = convert(load(path, LoadOptions(FixedShapes(batch=1))).trace)
    assert graph.inputs[0].value.shape == (1, _BOXES, 4)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"num_classes": 5}, "options without max_detections, max_classes_per_detection, y_scale"),
        ({**_OPTIONS, "num_classes": 0}, "options that no detection has"),
        ({**_OPTIONS, "num_classes": 9}, "9 classes of 6 scores"),
        ({**_OPTIONS, "w_scale": 0.0}, "options that no detection has"),
        ({**_OPTIONS, "max_detections": 1 << 40}, "options that no detection has"),
    ],
)
def test_wrong_options(tmp_path: Path, options: dict[str, Any], why: str) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(_file(options))
    with pytest.raises(UnsupportedError, match=why):
        convert(load(path, LoadOptions()).trace)
