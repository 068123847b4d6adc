from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
import tensorflow as tf
from flatbuffers import flexbuffers
from tensorflow.lite.python import schema_py_generated as schema

from converters.tf.emit.support import problems
from converters.tf.errors import FileError
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import randomize
from converters.tf.tests.models import MODELS
from converters.tf.tests.tflite_files import (
    Operator,
    Subgraph,
    Tensor,
    constant,
    file_of,
    interpreted,
    single,
)
from tools.codegen.conversion import ConversionError, Problem, UnsupportedError


def _dense(activation: int = 0) -> tuple[list[Tensor], Operator]:
    options = schema.FullyConnectedOptionsT()
    options.fusedActivationFunction = activation
    tensors = [Tensor((1, 2)), constant(np.ones((3, 2))), Tensor((1, 3))]
    return tensors, Operator("FULLY_CONNECTED", [0, 1, -1], [2], options)


def test_everything_unsupported_is_reported_at_once(tmp_path: Path) -> None:
    tensors, dense = _dense(activation=4)
    tensors += [Tensor((1, 3), name=f"head/{n}") for n in ("odd", "last")]
    tensors += [constant(np.int32(2)), Tensor((1, 2)), Tensor((1, 2), "int32")]
    operators = [
        dense,
        Operator("Detection", [2], [3], custom=b"\0"),
        Operator("RELU", [3], [4]),
        Operator("TOPK_V2", [4, 5], [6, 7]),
    ]
    # What comes after an operator that can't be replayed is looked at all the same.
    path = tmp_path / "m.tflite"
    path.write_bytes(file_of([Subgraph(tensors, operators, [0], [6, 2])]))
    with pytest.raises(UnsupportedError) as caught:
        convert(load(path, LoadOptions()).trace)
    text = str(caught.value)
    assert "(FULLY_CONNECTED): the fused activation 4" in text
    assert "layer head, node head/odd/refused_2 (Detection): there is nothing for the cus" in text
    shuffled = schema.FullyConnectedOptionsT()
    shuffled.weightsFormat = 1
    tensors, _ = _dense()
    operator = Operator("FULLY_CONNECTED", [0, 1, -1], [2], shuffled)
    path.write_bytes(file_of([Subgraph(tensors, [operator], [0], [2])]))
    with pytest.raises(UnsupportedError, match="the weights are shuffled"):
        convert(load(path, LoadOptions()).trace)


REFUSED: list[tuple[str, list[Tensor], list[str], Any]] = [
    ("WHERE", [Tensor((1, 6), "bool")], ["int64"], "Where"),
    (
        "SEGMENT_SUM",
        [Tensor((3, 2), open=False), Tensor((3,), "int32", open=False)],
        ["float32"],
        "segments that the inputs choose",
    ),
    ("FAKE_QUANT", [Tensor((1, 6))], ["float32"], "rounded as in training"),
    ("LSH_PROJECTION", [Tensor((1, 6))], ["float32"], "nothing for the operator LSH_PROJECTION"),
]


@pytest.mark.parametrize(("kind", "operands", "results", "why"), REFUSED)
def test_an_operator_that_is_refused(
    tmp_path: Path, kind: str, operands: list[Tensor], results: list[str], why: str
) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(single(kind, operands, [Tensor((1, 1), d) for d in results]))
    with pytest.raises(UnsupportedError, match=why) as caught:
        convert(load(path, LoadOptions()).trace)
    assert len(caught.value.problems) == 1


def test_a_result_as_long_as_the_values_say(tmp_path: Path) -> None:
    results = [Tensor((6,), open=False), Tensor((6,), "int32", open=False)]
    content = single("UNIQUE", [Tensor((6,), open=False)], results, schema.UniqueOptionsT())
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    x = np.array([3, 1, 3, 3, 2, 1], np.float32)
    graph = convert(load(path, LoadOptions()).trace)
    found = interpret(graph, {graph.inputs[0].name: x}).values()
    for one, other in zip(found, interpreted(content, [x]), strict=True):
        assert one.tolist() == other.tolist()


def _changed(content: bytes, change: Callable[[Any], None]) -> bytes:
    """Returns a file after a change of its tables."""
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    change(model)
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _axis(size: int, segments: list[int] | None = None, indices: list[int] | None = None) -> Any:
    axis = schema.DimensionMetadataT()
    axis.denseSize = size
    if segments is not None:
        axis.format = schema.DimensionType.SPARSE_CSR
        axis.arraySegmentsType = schema.SparseIndexVector.Int32Vector
        axis.arrayIndicesType = schema.SparseIndexVector.Uint8Vector
        axis.arraySegments, axis.arrayIndices = schema.Int32VectorT(), schema.Uint8VectorT()
        axis.arraySegments.values, axis.arrayIndices.values = segments, indices
    return axis


def _sparse(blocks: bool, segments: list[int]) -> bytes:
    """Returns a model of a product with a sparse matrix [4, 4], in blocks of [2, 2] or not."""
    count = 8 if blocks else 4
    stored = Tensor((4, 4), data=np.arange(1, count + 1, dtype=np.float32))
    tensors = [Tensor((1, 4)), stored, Tensor((4, 4)), Tensor((1, 4))]
    options = schema.FullyConnectedOptionsT()
    operators = [
        Operator("DENSIFY", [1], [2], schema.DensifyOptionsT()),
        Operator("FULLY_CONNECTED", [0, 2, -1], [3], options),
    ]

    def change(model: Any) -> None:
        sparsity = schema.SparsityParametersT()
        if blocks:
            sparsity.traversalOrder, sparsity.blockMap = [0, 1, 2, 3], [0, 1]
            sparsity.dimMetadata = [_axis(2), _axis(0, segments, [1, 0]), _axis(2), _axis(2)]
        else:
            sparsity.traversalOrder = [0, 1]
            sparsity.dimMetadata = [_axis(4), _axis(0, segments, [1, 0, 3, 2])]
        model.subgraphs[0].tensors[1].sparsity = sparsity

    return _changed(file_of([Subgraph(tensors, operators, [0], [3])]), change)


@pytest.mark.parametrize(
    ("blocks", "segments", "rows"),
    [
        (False, [0, 1, 1, 3, 4], [[0, 1, 0, 0], [0] * 4, [2, 0, 0, 3], [0, 0, 4, 0]]),
        (True, [0, 1, 2], [[0, 0, 1, 2], [0, 0, 3, 4], [5, 6, 0, 0], [7, 8, 0, 0]]),
    ],
)
def test_weights_without_their_zeros(
    tmp_path: Path, blocks: bool, segments: list[int], rows: list[list[int]]
) -> None:
    path = tmp_path / "m.tflite"
    content = _sparse(blocks, segments)
    path.write_bytes(content)
    loaded = load(path, LoadOptions())
    (weight,) = loaded.trace.variables.values()
    assert weight.data is not None
    assert weight.data.T.tolist() == rows
    x = np.array([[1, 10, 100, 1000]], np.float32)
    (found,) = loaded.predict({loaded.trace.inputs[0].name: x}).values()
    (expected,) = interpreted(content, [x])
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "segments", [[0, 1, 1, 3], [0, 3, 1, 3, 4], [0, 1, 1, 3, 9], [1, 1, 1, 3, 4], []]
)
def test_rows_of_sparse_weights_that_end_anywhere(tmp_path: Path, segments: list[int]) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(_sparse(False, segments))
    with pytest.raises(FileError, match="the sparse tensor 't0_1' has rows that end at"):
        load(path, LoadOptions())


def test_weights_in_another_file(tmp_path: Path) -> None:
    def change(model: Any) -> None:
        model.subgraphs[0].tensors[1].externalBuffer = 1

    tensors, operator = _dense()
    path = tmp_path / "m.tflite"
    path.write_bytes(_changed(file_of([Subgraph(tensors, [operator], [0], [2])]), change))
    with pytest.raises(UnsupportedError, match="in another file") as caught:
        convert(load(path, LoadOptions()).trace)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("beyond", [False, True])
def test_weights_after_the_tables(tmp_path: Path, beyond: bool) -> None:
    weights = np.arange(6, dtype=np.float32).reshape(3, 2)
    tensors, operator = _dense()
    content = file_of([Subgraph(tensors, [operator], [0], [2])])
    place = 1 << 20

    def moved(model: Any) -> None:
        buffer = model.buffers[model.subgraphs[0].tensors[1].buffer]
        buffer.data, buffer.offset, buffer.size = None, place, weights.nbytes

    place = len(_changed(content, moved)) + beyond
    path = tmp_path / "m.tflite"
    path.write_bytes(_changed(content, moved) + weights.tobytes())
    if beyond:
        with pytest.raises(FileError, match="ends at byte"):
            load(path, LoadOptions())
        return
    graph = convert(load(path, LoadOptions()).trace)
    (found,) = interpret(graph, {graph.inputs[0].name: np.ones((1, 2), np.float32)}).values()
    assert found.tolist() == [[1.0, 5.0, 9.0]]


def _flex(op: str) -> bytes:
    node = tf.compat.v1.NodeDef(op=op, name="node")
    builder = flexbuffers.Builder()
    with builder.Vector():
        builder.String(op)
        builder.String(node.SerializeToString().decode())
    return bytes(builder.Finish())


@pytest.mark.parametrize(
    ("op", "content", "why"),
    [
        ("WriteFile", None, "the op WriteFile has a state"),
        ("OwnOp", None, "the op OwnOp is not part of TensorFlow"),
        ("Relu", b"abc", "its options hold no node of TensorFlow"),
        ("Relu", b"", "its options hold no node of TensorFlow"),
    ],
)
def test_nodes_of_tensorflow_only_compute(
    tmp_path: Path, op: str, content: bytes | None, why: str
) -> None:
    custom = _flex(op) if content is None else content
    graph = Subgraph(
        [Tensor((1, 3)), Tensor((1, 3))], [Operator(f"Flex{op}", [0], [1], None, custom)], [0], [1]
    )
    path = tmp_path / "m.tflite"
    path.write_bytes(file_of([graph]))
    with pytest.raises(UnsupportedError, match=why):
        convert(load(path, LoadOptions()).trace)


def _call(kind: str, **options: int) -> Any:
    made = getattr(schema, f"{kind}OptionsT")()
    for name, value in options.items():
        setattr(made, name, value)
    return made


def _one(operators: list[Operator], tensors: int = 2, **more: Any) -> Subgraph:
    return Subgraph([Tensor((1, 3), **more) for _ in range(tensors)], operators, [0], [1])


def _turns(body: int) -> Subgraph:
    return _one(
        [
            Operator(
                "WHILE", [0], [1], _call("While", condSubgraphIndex=body, bodySubgraphIndex=body)
            )
        ]
    )


def _doubling(level: int) -> Subgraph:
    options = _call("If", thenSubgraphIndex=level + 1, elseSubgraphIndex=level + 1)
    tensors = [Tensor((1, 3)), Tensor((1, 3)), constant(np.bool_(True))]
    return Subgraph(tensors, [Operator("IF", [2, 0], [1], options)], [0], [1])


RELU = Operator("RELU", [0], [1])
HOSTILE: dict[str, tuple[list[Subgraph], str]] = {
    "no_subgraph": ([], "it has no subgraph"),
    "itself": ([_turns(0)], "calls itself"),
    "each_other": ([_turns(1), _turns(0)], "calls itself"),
    "no_such_subgraph": ([_turns(7)], "a call of subgraph 7 of 1"),
    "negative_subgraph": ([_turns(-1)], "a call of subgraph -1 of 1"),
    "doubling": ([*map(_doubling, range(15)), _one([RELU])], "call each other more than 500"),
    "unwritten": ([_one([Operator("RELU", [2], [1])], 3)], "read before it is written"),
    "no_such_tensor": ([_one([Operator("RELU", [9], [1])])], "the inputs of RELU are the tens"),
    "negative_tensor": ([_one([Operator("RELU", [-2], [1])])], "the inputs of RELU are the ten"),
    "no_such_output": ([_one([Operator("RELU", [0], [-1])])], "the outputs of RELU are the te"),
    "huge": ([Subgraph([Tensor((1, 2**30, 2**30))] * 2, [RELU], [0], [1])], "has the shape"),
    "negative": ([Subgraph([Tensor((1, -3))] * 2, [RELU], [0], [1])], "has the shape"),
    "few_bytes": (
        [
            Subgraph(
                [Tensor((1, 3)), Tensor((2, 3), data=np.zeros(3, np.float32))], [RELU], [0], [0]
            )
        ],
        "12 bytes for 6 elements of float32",
    ),
    "scales": ([_one([RELU], scale=(1.0, 2.0), zero=(0, 0), axis=1)], "2 scales and 2 zero"),
    "no_number": ([_one([RELU], scale=(float("nan"),))], "has the scale nan"),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_files(tmp_path: Path, name: str) -> None:
    graphs, what = HOSTILE[name]
    path = tmp_path / "m.tflite"
    path.write_bytes(file_of(graphs))
    with pytest.raises(FileError, match=what) as caught:
        load(path, LoadOptions())
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("content", [b"", b"TFL3", b"\x1c\0\0\0TFL3", b"x" * 99])
def test_files_that_are_no_models(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"a damaged \.tflite file") as caught:
        load(path, LoadOptions())
    assert len(caught.value.problems) == 1


def _small() -> bytes:
    model = MODELS["mobile_block"]()
    randomize(model)
    return bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())


def _outcome(path: Path, content: bytes) -> tuple[Problem, ...]:
    """Returns the problems of a file; anything but a finding fails the test."""
    path.write_bytes(content)
    try:
        graph = convert(load(path, LoadOptions()).trace)
        problems(graph)
    except ConversionError as err:
        assert err.problems
        return err.problems
    return ()


def test_a_file_that_ends_anywhere(tmp_path: Path) -> None:
    content = _small()
    for size in range(0, len(content) - 1, 97):
        assert len(_outcome(tmp_path / "m.tflite", content[:size])) == 1


def test_bytes_that_are_others(tmp_path: Path) -> None:
    content = _small()
    refused = 0
    for seed in range(150):
        choose = random.Random(seed)
        spoiled = bytearray(content)
        for _ in range(choose.choice((1, 1, 4, 40))):
            place = choose.randrange(len(spoiled))
            spoiled[place] = choose.choice((0, 1, 0x7F, 0x80, 0xFF, spoiled[place] ^ 4))
        refused += bool(_outcome(tmp_path / "m.tflite", bytes(spoiled)))
    assert 10 < refused < 150
