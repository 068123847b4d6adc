from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorflow.lite.python import schema_py_generated as schema

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.errors import FileError
from converters.tf.ir import Array
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
from tools.codegen.conversion import UnsupportedError

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
    "REAL, IMAG": "complex numbers: only between operators of TensorFlow",
    "RFFT2D, COMPLEX_ABS": "spectra",
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


@pytest.mark.parametrize(("rows", "sizes"), [(1, (1, 16)), (1, (1, 8)), (4, (4, 8))])
def test_spectra(tmp_path: Path, rows: int, sizes: tuple[int, int]) -> None:
    """TFLite's converter writes spectra of windows as those of images of one row."""
    tensors = [Tensor((1, rows, sizes[1])), constant(np.array(sizes, np.int32))]
    tensors += [Tensor((1, rows, sizes[1] // 2 + 1), dtype) for dtype in ("complex64", "float32")]
    operators = [Operator("RFFT2D", [0, 1], [2]), Operator("COMPLEX_ABS", [2], [3])]
    content = file_of([Subgraph(tensors, operators, [0], [3])])
    _agrees(tmp_path / "m.tflite", content, Case("", []))


@pytest.mark.parametrize("dtype", ["int32", "float32", "bool"])
def test_a_constant_without_elements_has_no_bytes(tmp_path: Path, dtype: str) -> None:
    """As the shape of a number, which a converter may leave without a buffer."""
    empty = Tensor((0,), dtype, open=False)
    tensors = [Tensor((1,), open=False), Tensor((0,), "int32", open=False), Tensor((), open=False)]
    tensors += [empty, constant(np.zeros(1, dtype)), Tensor((1,), dtype, open=False)]
    concatenation = schema.ConcatenationOptionsT()
    operators = [
        Operator("RESHAPE", [0, 1], [2], schema.ReshapeOptionsT()),
        Operator("CONCATENATION", [3, 4], [5], concatenation),
    ]
    content = file_of([Subgraph(tensors, operators, [0], [2])])
    graph = _agrees(tmp_path / "m.tflite", content, Case("", [], batch=False))
    assert graph.outputs[0].value.shape == ()


def test_a_tensor_that_nothing_writes_is_refused(tmp_path: Path) -> None:
    tensors = [Tensor((1, 2)), Tensor((1, 2), open=False), Tensor((1, 2))]
    operators = [Operator("ADD", [0, 1], [2], schema.AddOptionsT())]
    path = tmp_path / "m.tflite"
    path.write_bytes(file_of([Subgraph(tensors, operators, [0], [2])]))
    with pytest.raises(FileError, match="'t0_1' is read before it is written"):
        load(path, LoadOptions())


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_variables_of_whole_numbers(tmp_path: Path, dtype: str) -> None:
    """A streaming model in int8: what it has heard is a variable."""
    options, once = schema.VarHandleOptionsT(), schema.CallOnceOptionsT()
    options.sharedName, once.initSubgraphIndex = "heard", 1
    handle = Tensor((), "resource", open=False)
    shift = 128 if dtype == "uint8" else 0
    random = np.random.default_rng(3)

    def tensor(*shape: int, zero: int = 5) -> Tensor:
        return Tensor(shape, dtype, open=False, scale=(0.1,), zero=(zero + shift,))

    kernel = constant(
        (random.integers(-90, 90, (3, 4)) + shift).astype(dtype),
        scale=(0.02,),
        zero=(shift,),
    )
    bias = constant(np.array([3, -700, 90], np.int32), scale=(0.002,), zero=(0,))
    begin, end, one = constant([0, 1]), constant([1, 5]), constant([1, 1])
    tensors = [tensor(1, 1), handle, tensor(1, 4), tensor(1, 5), tensor(1, 4)]
    tensors += [begin, end, one, kernel, bias, tensor(1, 3, zero=-9)]
    operators = [
        Operator("CALL_ONCE", [], [], once),
        Operator("VAR_HANDLE", [], [1], options),
        Operator("READ_VARIABLE", [1], [2]),
        Operator("CONCATENATION", [2, 0], [3], _with(schema.ConcatenationOptionsT(), axis=1)),
        Operator("STRIDED_SLICE", [3, 5, 6, 7], [4], schema.StridedSliceOptionsT()),
        Operator("ASSIGN_VARIABLE", [1, 4], []),
        Operator("FULLY_CONNECTED", [4, 8, 9], [10], schema.FullyConnectedOptionsT()),
    ]
    start = (np.array([[7, -8, 100, 4]]) + shift).astype(dtype)
    first = Subgraph(
        [handle, Tensor((1, 4), dtype, start, False, (0.1,), (5 + shift,))],
        [Operator("VAR_HANDLE", [], [0], options), Operator("ASSIGN_VARIABLE", [0, 1], [])],
        [],
        [],
    )
    content = file_of([Subgraph(tensors, operators, [0], [10]), first])
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    loaded = load(path, LoadOptions())
    (note,) = loaded.notes
    assert "variables heard: TFLite carries them" in note
    graph = convert(loaded.trace)
    assert problems(graph) == []
    for number in (-128, -3, 90, 127):
        arrays = {graph.inputs[0].name: np.full((1, 1), number + shift, dtype)}
        (expected,) = interpreted(content, list(arrays.values()), reference=True)
        for found in (interpret(graph, arrays), loaded.predict(arrays)):
            assert np.array_equal(next(iter(found.values())), expected)


def _with(options: Any, **values: Any) -> Any:
    for name, value in values.items():
        setattr(options, name, value)
    return options


# Of MediaPipe's operators: TfLitePadding, and sizes of windows, strides and images.
WINDOWS = [(1, (2, 2), (2, 2), (4, 6)), (2, (2, 3), (2, 3), (4, 6))]
OVERLAPPING = [
    (1, (3, 3), (2, 2), (5, 6)),
    (2, (3, 2), (1, 2), (5, 6)),
    (1, (2, 4), (3, 2), (7, 6)),
]


def _image(sides: tuple[int, int]) -> Array:
    return np.random.default_rng(5).normal(size=(3, *sides, 2)).astype(np.float32)


def _custom(path: Path, content: bytes, x: Array) -> list[Array]:
    """Returns the results of a file with operators that TFLite itself lacks."""
    path.write_bytes(content)
    loaded = load(path, LoadOptions())
    graph = convert(loaded.trace)
    assert problems(graph) == []
    arrays = {graph.inputs[0].name: x}
    found = list(interpret(graph, arrays).values())
    for a, b in zip(found, loaded.predict(arrays).values(), strict=True):
        assert difference(a, b) <= TOLERANCE
    return found


@pytest.mark.parametrize(("padding", "window", "strides", "sides"), [*WINDOWS, *OVERLAPPING])
def test_mediapipes_transposed_convolution(
    tmp_path: Path,
    padding: int,
    window: tuple[int, int],
    strides: tuple[int, int],
    sides: tuple[int, int],
) -> None:
    random = np.random.default_rng(1)
    kernel = random.normal(size=(4, *window, 2)).astype(np.float32)
    bias = random.normal(size=4).astype(np.float32)
    tensors = [Tensor((1, *sides, 2)), constant(kernel), constant(bias), Tensor((1, 1, 1, 4))]
    custom = struct.pack("<3i", padding, *strides[::-1])
    operator = Operator("Convolution2DTransposeBias", [0, 1, 2], [3], custom=custom)
    x = _image(sides)
    (found,) = _custom(tmp_path / "m.tflite", file_of([Subgraph(tensors, [operator], [0], [3])]), x)
    whole = [s * (n - 1) + k for s, n, k in zip(strides, sides, window, strict=True)]
    sums = np.zeros((3, *whole, 4))
    for y, x_place in np.ndindex(*sides):
        part = np.einsum("nc,ohwc->nhwo", x[:, y, x_place], kernel)
        top, left = y * strides[0], x_place * strides[1]
        sums[:, top : top + window[0], left : left + window[1]] += part
    cut = [
        max(0, k - (n - 1) % s - 1) if padding == 1 else 0
        for s, n, k in zip(strides, sides, window, strict=True)
    ]
    rows, columns = (slice(c // 2, c // 2 + n - c) for c, n in zip(cut, whole, strict=True))
    assert difference(found, (sums[:, rows, columns] + bias).astype(np.float32)) <= TOLERANCE


def _pooled(padding: int, window: tuple[int, int], strides: tuple[int, int]) -> bytes:
    return struct.pack("<6i", padding, *strides[::-1], *window[::-1], 0) + bytes(16)


@pytest.mark.parametrize(("padding", "window", "strides", "sides"), [*WINDOWS, *OVERLAPPING])
def test_mediapipes_pool_with_places(
    tmp_path: Path,
    padding: int,
    window: tuple[int, int],
    strides: tuple[int, int],
    sides: tuple[int, int],
) -> None:
    tensors = [Tensor((1, *sides, 2)), Tensor((1, 1, 1, 2)), Tensor((1, 1, 1, 2))]
    custom = _pooled(padding, window, strides)
    operator = Operator("MaxPoolingWithArgmax2D", [0], [1, 2], custom=custom)
    content = file_of([Subgraph(tensors, [operator], [0], [1, 2])])
    x = _image(sides)
    most, places = _custom(tmp_path / "m.tflite", content, x)
    before = []
    for s, n, k in zip(strides, sides, window, strict=True):
        count = -(-n // s) if padding == 1 else (n - k) // s + 1
        before.append((max(0, s * (count - 1) + k - n) // 2, count))
    assert most.shape == places.shape == (3, before[0][1], before[1][1], 2)
    for at in np.ndindex(*most.shape):
        start = [at[i + 1] * strides[i] - before[i][0] for i in (0, 1)]
        spans = [slice(max(0, b), b + k) for b, k in zip(start, window, strict=True)]
        seen = x[at[0], spans[0], spans[1], at[3]]
        y, x_place = divmod(int(places[at]), window[1])
        assert most[at] == seen.max() == x[at[0], start[0] + y, start[1] + x_place, at[3]]


@pytest.mark.parametrize(("padding", "window", "strides", "sides"), WINDOWS)
def test_mediapipes_unpool_puts_maxima_back(
    tmp_path: Path,
    padding: int,
    window: tuple[int, int],
    strides: tuple[int, int],
    sides: tuple[int, int],
) -> None:
    tensors = [Tensor((1, *sides, 2)), *(Tensor((1, 1, 1, 2)) for _ in range(3))]
    custom = _pooled(padding, window, strides)
    operators = [
        Operator("MaxPoolingWithArgmax2D", [0], [1, 2], custom=custom),
        Operator("MaxUnpooling2D", [1, 2], [3], custom=custom),
    ]
    content = file_of([Subgraph(tensors, operators, [0], [1, 3])])
    x = _image(sides)
    most, found = _custom(tmp_path / "m.tflite", content, x)
    large = most.repeat(window[0], 1).repeat(window[1], 2)
    assert np.array_equal(found, np.where(x == large, x, 0))


@pytest.mark.parametrize(
    ("kind", "custom", "what"),
    [
        ("Convolution2DTransposeBias", b"\1\0\0\0", "options of 4 bytes; 12 are known"),
        ("Convolution2DTransposeBias", struct.pack("<3i", 0, 2, 2), "options that no window has"),
        ("MaxUnpooling2D", _pooled(1, (3, 3), (2, 2)), "that overlap or leave gaps"),
        ("MaxUnpooling2D", _pooled(1, (1 << 30, 2), (1 << 30, 2)), "at most 256 places are known"),
        ("MaxPoolingWithArgmax2D", _pooled(2, (9, 9), (1, 1)), "it can't be computed|Negative"),
        ("Resampler", b"", "nothing for the custom operator Resampler; --custom_op takes one"),
    ],
)
def test_operators_of_mediapipe_that_are_refused(
    tmp_path: Path, kind: str, custom: bytes, what: str
) -> None:
    tensors = [Tensor((1, 4, 4, 2)), constant(np.ones((2, 4, 4, 2))), constant([1.0, 2.0])]
    operator = Operator(kind, [0, 1, 2], [3], custom=custom)
    path = tmp_path / "m.tflite"
    path.write_bytes(file_of([Subgraph([*tensors, Tensor((1, 8, 8, 2))], [operator], [0], [3])]))
    with pytest.raises(UnsupportedError, match=what):
        convert(load(path, LoadOptions()).trace)


def test_every_operator_is_looked_at() -> None:
    compared = {case.kind for case in CASES}
    others = {kind for kinds in ELSEWHERE for kind in kinds.split(", ")}
    assert compared | others == set(HANDLERS)
    assert not compared & others
