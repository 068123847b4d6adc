"""ONNX models that leave dimensions open besides the batch, against onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from converters.tf import ir
from converters.tf.emit.crate import Features
from converters.tf.ir.fixed import open_dims
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.load.shapes import FixedShapes
from converters.tf.load.symbols import Named, opened
from converters.tf.lower.graph import Lowering
from converters.tf.lower.ops.registry import HANDLERS
from converters.tf.lower.trace import Trace, TraceFunction, TraceNode
from converters.tf.plan.arena import plan_memory
from converters.tf.tests.checks import TOLERANCE, difference
from converters.tf.tests.onnx_graphs import saved
from converters.tf.tests.onnx_open_images import IMAGES
from converters.tf.tests.onnx_open_models import MODELS, Case
from converters.tf.tests.open_crates import Model, run
from converters.tf.tf2rust import graph_of
from tools.codegen.conversion import UsageError


def given(graph: ir.Graph, sizes: dict[str, int], batch: int = 3) -> dict[str, ir.Array]:
    """Returns inputs of some sizes."""
    random = np.random.default_rng(sum(sizes.values()))
    arrays: dict[str, ir.Array] = {}
    for port in graph.inputs:
        dims = [d.at(sizes) if hasattr(d, "at") else d for d in port.value.shape]
        shape = [batch if isinstance(d, ir.Batch) else d for d in dims]
        kind = port.value.dtype.numpy
        data = random.normal(size=shape) if kind.kind == "f" else random.integers(0, 2, shape)
        if "mask" in port.name:
            data[:, 0] = 1
        arrays[port.name] = data.astype(kind)
    return arrays


def session_of(model: Any) -> Any:
    """Returns what runs a model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    content = model.SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("make", [*MODELS, *IMAGES], ids=lambda make: make.__name__)
def test_models(make: Callable[[], Case], tmp_path: Path) -> None:
    case = make()
    loaded = load(saved(case.model, tmp_path), LoadOptions())
    graph = graph_of(loaded)
    assert open_dims(graph) == case.open
    assert plan_memory(graph).regions
    session = session_of(case.model)
    names = [o.name for o in session.get_outputs()]
    for call in case.calls:
        arrays = given(graph, dict(zip(case.open, call, strict=True)))
        found, predicted = interpret(graph, arrays), loaded.predict(arrays)
        for name, expected in zip(names, session.run(None, arrays), strict=True):
            assert difference(predicted[name], expected) <= TOLERANCE, (name, call)
            assert difference(found[name], expected) <= TOLERANCE, (name, call)


# Inputs that contradict each other, and why they are refused.
_WRONG = {
    "decoder": [
        (
            "@0: View::new(&[1; 2], [1, 2]), @1: View::new(&[1; 4], [1, 4]), "
            + ", ".join(f"@{i}: View::new(&[0.0; 36], [1, 3, 3, 4])" for i in range(2, 6)),
            "axis 1 of input @1 has 4 elements, expected 5, which is "
            "past_sequence_length + sequence_length (past_sequence_length is axis 2 of "
            "input past_key_values.0.key, sequence_length is axis 1 of input @0)",
        )
    ],
    "bert": [
        (
            "@0: View::new(&[1; 2], [1, 2]), @1: View::new(&[1; 3], [1, 3]), "
            "@2: View::new(&[1; 2], [1, 2])",
            "axis 1 of input @1 has 3 elements, expected 2 as axis 1 of input @0",
        )
    ],
    "pyramid": [
        (
            "@0: View::new(&[0.5; 144], [1, 3, 8, 6])",
            "axis 3 of input @0 has 6 elements, expected a multiple of 4",
        )
    ],
}


def test_constants_of_nodes_that_are_gone_are_told_apart() -> None:
    low = Lowering(Trace("", TraceFunction("", (), {}, ()), {}, (), (), {}), HANDLERS)
    for number in range(32):
        data = np.array([number, number])
        node = TraceNode("constant", "Const", (), {"value": data}, "", (2,), ())
        assert low.literal(node, data).data is not None
        np.testing.assert_array_equal(low.literal(node, data).data, data)


def test_crates_at_several_sizes(tmp_path: Path) -> None:
    models = []
    for make in (*MODELS, *IMAGES):
        case = make()
        path = tmp_path / make.__name__
        path.mkdir()
        graph = graph_of(load(saved(case.model, path), LoadOptions()))
        session = session_of(case.model)
        names = [o.name for o in session.get_outputs()]
        cases = []
        for call in case.calls:
            arrays = given(graph, dict(zip(case.open, call, strict=True)))
            outputs = dict(zip(names, session.run(None, arrays), strict=True))
            cases.append(Features(arrays, outputs))
        name = f"{make.__name__}_model"
        models.append(Model(name, graph, cases, _WRONG.get(make.__name__, [])))
    assert f"{len(models)} passed" in run(models, tmp_path, TOLERANCE)


def _shapes(
    inputs: Mapping[str, tuple[int | str | None, ...]], given: Mapping[str, tuple[int | None, ...]]
) -> list[tuple[int | str | None, ...]]:
    named = [Named(name, shape) for name, shape in inputs.items()]
    return opened(FixedShapes(given), named, channels_first=True)


def test_the_batch_is_what_is_called_so() -> None:
    assert _shapes({"x": ("s", "batch", 4), "h": (1, "batch", 5)}, {}) == [
        ("s", None, 4),
        (1, None, 5),
    ]
    assert _shapes({"x": ("a", 4), "y": ("b", 4)}, {}) == [(None, 4), (None, 4)]
    assert _shapes({"x": ("batch", 4), "y": ("b", "batch")}, {}) == [(None, 4), ("b", None)]
    assert _shapes({"x": (None, "batch")}, {}) == [("steps", None)]
    assert _shapes({"x": ("N", "N", 2)}, {}) == [(None, "N", 2)]
    # What is called as the steps of a sequence is no batch.
    assert _shapes({"x": ("sequence_length", 4)}, {}) == [("sequence_length", 4)]


def test_names_of_dimensions() -> None:
    assert _shapes({"x": ("batch", "past + seq"), "y": ("batch", "past", "seq")}, {}) == [
        (None, "past + seq"),
        (None, "past", "seq"),
    ]
    # Nothing says what `past` is, and text is not code.
    assert _shapes({"x": ("batch", "past + 1"), "y": ("batch", "__import__('os')")}, {}) == [
        (None, "past_1"),
        (None, "import___os"),
    ]
    assert _shapes({"x": (None, None, None, 3)}, {}) == [(None, "channels", "height", 3)]
    assert _shapes({"x": ("n", "1", "for")}, {}) == [(None, "dim_1", "dim_for")]


def test_a_size_that_is_given_counts_for_all_inputs() -> None:
    inputs = {"x": ("batch", "seq"), "y": ("batch", "seq"), "z": ("batch", "seq + seq")}
    assert _shapes(inputs, {"x": (7,)}) == [(None, 7), (None, 7), (None, 14)]
    with pytest.raises(UsageError, match="seq is 7 in input x, and 8 in input y"):
        _shapes(inputs, {"x": (7,), "y": (8,)})
    states = {"x": ("batch", 3), "h": (1, "batch", 5)}
    assert _shapes(states, {"h": (4, 5)}) == [(4, 3), (1, 4, 5)]


def test_whole_shapes_fix_the_batch() -> None:
    inputs = {"x": ("batch", "seq"), "h": (2, "batch", 5)}
    assert _shapes(inputs, {"x": (1, 7)}) == [(1, 7), (2, 1, 5)]
    assert _shapes(inputs, {"x": (None, 7)}) == [(None, 7), (2, None, 5)]
    assert _shapes({"x": (None, 4), "y": (None, 3)}, {"x": (2, 4)}) == [(2, 4), (2, 3)]
    assert _shapes({"x": (3, "seq")}, {"x": (3, 7)}) == [(3, 7)]
    with pytest.raises(UsageError, match=r"\[3, \?\] \(give all dimensions, or all but the batch"):
        _shapes({"x": (3, None)}, {"x": (4, 7)})
    named = [Named("x", ("batch", "seq"))]
    with pytest.raises(UsageError, match="batches of 1 and 2"):
        opened(FixedShapes({"x": (1, 7)}, batch=2), named)
    with pytest.raises(UsageError, match="batches of 2 and 5"):
        _shapes({"x": (None, 4), "y": (None, 3)}, {"x": (2, 4), "y": (5, 3)})


def test_a_batch_that_is_given_counts_for_all_inputs() -> None:
    states = [Named("x", ("s", "batch", 3)), Named("h", (1, "batch", 5))]
    assert opened(FixedShapes(batch=2), states) == [("s", 2, 3), (1, 2, 5)]
