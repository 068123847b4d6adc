"""Recorded outputs that rounding decides are found, and other inputs are drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from converters.tf import ir
from converters.tf.describe.steady import needed, settled, unsettled
from converters.tf.emit.crate import Features
from converters.tf.errors import FeaturesError
from converters.tf.ir.build import Builder
from converters.tf.ir.interpret import interpret
from tools.codegen.conversion import Problem

_TOLERANCE = 1e-5
Body = Callable[[Builder, ir.Value], ir.Value]


def _graph(body: Body, size: int = 2) -> ir.Graph:
    b = Builder()
    x = ir.Value(ir.DType.F32, (ir.Batch(), size), name="x")
    y = body(b, x)
    return ir.Graph("g", (ir.Port("x", x),), (ir.Port("y", y),), tuple(b.nodes))


def _features(graph: ir.Graph, *rows: list[float]) -> Features:
    inputs = {"x": np.array(rows, np.float32)}
    return Features(inputs, interpret(graph, inputs))


def _best(b: Builder, x: ir.Value) -> ir.Value:
    scores = b.unary(ir.Fn.EXP, x)
    return b.emit(ir.ArgExtreme(1), [scores], (ir.Batch(),), ir.DType.I64)


def _truncated(b: Builder, x: ir.Value) -> ir.Value:
    return b.cast(b.unary(ir.Fn.EXP, x), ir.DType.I32)


def _above(b: Builder, x: ir.Value) -> ir.Value:
    limit = b.scalar(float(np.exp(np.float32(0.7))), ir.DType.F32)
    return b.compare(ir.CompareKind.GT, b.unary(ir.Fn.EXP, x), limit)


def _leveled(b: Builder, x: ir.Value) -> ir.Value:
    levels = b.emit(ir.Quantize(0.1, 0), [b.unary(ir.Fn.EXP, x)], dtype=ir.DType.I8)
    return b.emit(ir.Dequantize(0.1, 0), [levels], dtype=ir.DType.F32)


def _ranged(b: Builder, x: ir.Value) -> ir.Value:
    op = ir.DynamicLevels(1)
    shapes = op.shapes([x.shape])
    results = zip((ir.DType.I8, ir.DType.F32), shapes, strict=True)
    return b.emit_many(op, [b.unary(ir.Fn.EXP, x)], list(results))[0]


@pytest.mark.parametrize(
    ("body", "close", "apart"),
    [
        (_leveled, [0.22314355, 0.1], [0.2, 0.1]),
        (_ranged, [0.0, -0.93110585], [0.0, -0.934]),
        (_best, [0.5, 0.50000006], [0.5, 0.6]),
        (_truncated, [0.69314706, 0.1], [0.5, 0.6]),
        (_above, [0.7, 0.1], [0.8, 0.1]),
    ],
)
def test_what_rounding_decides(body: Body, close: list[float], apart: list[float]) -> None:
    graph = _graph(body)
    assert unsettled(graph, _features(graph, [0.1, 0.9], close), _TOLERANCE) == ("y",)
    assert unsettled(graph, _features(graph, [0.1, 0.9], apart), _TOLERANCE) == ()


def test_equal_scores_that_are_exact_are_no_matter_of_rounding() -> None:
    def body(b: Builder, x: ir.Value) -> ir.Value:
        cut = b.unary(ir.Fn.CLAMP, x, 0.0, 6.0)
        return b.emit(ir.ArgExtreme(1), [cut], (ir.Batch(),), ir.DType.I64)

    graph = _graph(body, 4)
    features = _features(graph, [-1.5, -0.5, -0.25, -0.1], [7.5, 8.5, 1.0, 9.5])
    assert unsettled(graph, features, _TOLERANCE) == ()


def test_a_continuous_model_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = _graph(lambda b, x: b.unary(ir.Fn.EXP, x))
    features = _features(graph, [1.0, 2.0])
    monkeypatch.setattr("converters.tf.describe.steady.interpret", None)
    assert unsettled(graph, features, _TOLERANCE) == ()


def test_other_inputs_are_drawn() -> None:
    graph = _graph(_best)
    rows = [[0.5, 0.50000006], [0.5, 0.6]]
    drawn: list[int] = []

    def draw(attempt: int) -> Features:
        drawn.append(attempt)
        if attempt == 0:
            raise FeaturesError(Problem("made features", "refused"))
        return _features(graph, rows[min(attempt - 1, 1)])

    features, doubtful = settled(graph, draw, _TOLERANCE)
    assert (drawn, doubtful) == ([0, 1, 2], ())
    assert np.array_equal(features.inputs["x"], np.array(rows[1:], np.float32))
    _, doubtful = settled(graph, lambda _: _features(graph, rows[0]), _TOLERANCE)
    assert doubtful == ("y",)

    def fails(attempt: int) -> Features:
        raise FeaturesError(Problem("made features", f"attempt {attempt}"))

    with pytest.raises(FeaturesError, match="attempt 0"):
        settled(graph, fails, _TOLERANCE)


@pytest.mark.parametrize("limit", ["_HUGE", "_MANY_ELEMENTS"])
def test_one_set_of_inputs_is_enough_where_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(f"converters.tf.describe.steady.{limit}", 1)
    graph = _graph(lambda b, x: _best(b, b.mat_mul(x, ir.constant(np.eye(2, dtype=np.float32)))))
    drawn: list[int] = []

    def draw(attempt: int) -> Features:
        drawn.append(attempt)
        if attempt == 0:
            raise FeaturesError(Problem("made features", "refused"))
        return _features(graph, [0.5, 0.50000006])

    assert settled(graph, draw, _TOLERANCE)[1] == ("y",)
    assert drawn == [0, 1]


def test_what_the_crate_refuses_is_refused() -> None:
    """An index outside of its axis, which TensorFlow may read as 0."""

    def body(b: Builder, x: ir.Value) -> ir.Value:
        place = b.cast(b.unary(ir.Fn.NEG, x), ir.DType.I32)
        table = ir.constant(np.arange(4, dtype=np.float32))
        return b.emit(ir.Gather(0), [table, place], x.shape)

    graph = _graph(body)
    good = _features(graph, [-1.0, -3.0])
    assert unsettled(graph, good, _TOLERANCE) == ()
    bad = {"x": np.array([[-1.0, 3.0]], np.float32)}
    assert unsettled(graph, Features(bad, good.outputs), _TOLERANCE) == ("y",)


def test_a_logarithm_near_0_needs_more_tolerance() -> None:
    """As of a quiet band: the model's own outputs are away from the exact ones."""
    graph = _graph(lambda b, x: b.unary(ir.Fn.LOG, b.unary(ir.Fn.ABS, x)))
    features = _features(graph, [1e-6, 2.0])
    assert needed(graph, features, _TOLERANCE) == _TOLERANCE
    scale = float(np.abs(features.outputs["y"]).max())
    for apart, wanted in ((3e-5, 2.4e-4), (1e-6, _TOLERANCE), (0.5, 1e-3)):
        outputs = {"y": features.outputs["y"] + np.array([[apart * scale, 0.0]], np.float32)}
        found = needed(graph, Features(features.inputs, outputs), _TOLERANCE)
        assert found == pytest.approx(wanted, rel=0.02)


def test_a_model_without_a_logarithm_has_its_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = _graph(lambda b, x: b.unary(ir.Fn.EXP, x))
    features = _features(graph, [1.0, 2.0])
    monkeypatch.setattr("converters.tf.describe.steady.interpret", None)
    assert needed(graph, features, _TOLERANCE) == _TOLERANCE
