from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tensorflow.lite.python import schema_py_generated as schema

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.load.tflite.model import HANDLERS
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import TOLERANCE, difference, inputs_for, ops
from converters.tf.tests.tflite_files import (
    Operator,
    Subgraph,
    Tensor,
    constant,
    file_of,
    interpreted,
    kinds_of,
    single,
)
from converters.tf.tests.tflite_ops import CASES, Case, lstms

RECURRENT = {"UNIDIRECTIONAL_SEQUENCE_LSTM": "Lstm", "UNIDIRECTIONAL_SEQUENCE_RNN": "SimpleRnn"}


def _agrees(path: Path, content: bytes, case: Case) -> ir.Graph:
    path.write_bytes(content)
    loaded = load(path, LoadOptions())
    graph = convert(loaded.trace)
    assert problems(graph) == []
    for batch in (1, 3) if case.batch else (1,):
        arrays = {n: np.asarray(case.change(a)) for n, a in inputs_for(graph, batch).items()}
        expected = interpreted(content, list(arrays.values()))
        for found in (interpret(graph, arrays), loaded.predict(arrays)):
            for array, wanted in zip(found.values(), expected, strict=True):
                assert difference(array, wanted) <= TOLERANCE
    return graph


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=f"{c.kind.lower()}_{i}") for i, c in enumerate(CASES)]
)
def test_an_operator(tmp_path: Path, case: Case) -> None:
    results = [Tensor((1, 1), dtype) for dtype in case.results]
    content = single(case.kind, case.operands, results, case.options)
    assert kinds_of(content) == {case.kind}
    graph = _agrees(tmp_path / "m.tflite", content, case)
    recurrent = RECURRENT.get(case.kind)
    assert recurrent is None or recurrent in ops(graph)


@pytest.mark.parametrize("case", lstms())
def test_lstms_with_more(tmp_path: Path, case: Case) -> None:
    content = single(case.kind, case.operands, [Tensor((1, 1))], case.options)
    _agrees(tmp_path / "m.tflite", content, case)


def test_a_slope_per_channel_is_one_op(tmp_path: Path) -> None:
    (case,) = [c for c in CASES if c.kind == "PRELU"]
    content = single(case.kind, case.operands, [Tensor((1, 1))], case.options)
    (node,) = _agrees(tmp_path / "m.tflite", content, case).nodes
    assert node.op == ir.Binary(ir.BinaryKind.PRELU)


# Operators that are not compared, with the test that looks at them.
ELSEWHERE = {
    "CALL_ONCE, VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE": "variables start every call",
    "WHILE, IF": "loops and branches",
    "DENSIFY": "weights without their zeros",
    "DEQUANTIZE, QUANTIZE": "values that integers would stand for are clamped to their range",
    "WHERE, UNIQUE, SEGMENT_SUM, FAKE_QUANT": "is refused",
    "BITCAST, SPARSE_TO_DENSE, REVERSE_SEQUENCE": "as these",
    "MATRIX_DIAG, MATRIX_SET_DIAG, UNSORTED_SEGMENT_SUM": "as these",
    "UNSORTED_SEGMENT_PROD": "attention over an open length, tflite_open_test.py",
    "BROADCAST_ARGS, RANGE": "numbers of the file",
    "REAL, IMAG, COMPLEX_ABS": "complex numbers: only between operators of TensorFlow",
}


def test_numbers_of_the_file_alone(tmp_path: Path) -> None:
    numbers = [constant(np.int32(n)) for n in (0, 3, 1)]
    tensors = [Tensor((1, 3), open=False), *numbers, Tensor((3,), "int32"), Tensor((3,))]
    tensors += [constant([2, 1]), constant([1, 3]), Tensor((2,), "int32"), Tensor((2, 3))]
    tensors += [Tensor((2, 3))]
    operators = [
        Operator("RANGE", [1, 2, 3], [4]),
        Operator("CAST", [4], [5]),
        Operator("BROADCAST_ARGS", [6, 7], [8]),
        Operator("BROADCAST_TO", [0, 8], [9]),
        Operator("ADD", [9, 5], [10], schema.AddOptionsT()),
    ]
    content = file_of([Subgraph(tensors, operators, [0], [10])])
    graph = _agrees(tmp_path / "m.tflite", content, Case("", [], batch=False))
    assert graph.outputs[0].value.shape == (2, 3)


def test_every_operator_is_looked_at() -> None:
    compared = {case.kind for case in CASES}
    others = {kind for kinds in ELSEWHERE for kind in kinds.split(", ")}
    assert compared | others == set(HANDLERS)
    assert not compared & others
