"""Operators of TFLite with options: one small model each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from converters.tf.ir import Array
from converters.tf.tests.tflite_files import Tensor, constant


@dataclass(frozen=True)
class Case:
    """An operator.

    Attributes:
        kind: TFLite's name of it.
        operands: What it reads; `None` for what is missing.
        options: Its options.
        results: Element types of what it gives.
        batch: Whether its examples may be any number.
        change: What is done to random inputs.
    """

    kind: str
    operands: Sequence[Tensor | None]
    options: Any = None
    results: Sequence[str] = ("float32",)
    batch: bool = True
    change: Callable[[Array], Array] = lambda x: x


def _options(_kind: str, **values: Any) -> Any:
    """Returns options of a table of the schema."""
    made = getattr(schema, f"{_kind}OptionsT")()
    for name, value in values.items():
        assert hasattr(made, name), (_kind, name)
        setattr(made, name, value)
    return made


def _random(*shape: int) -> Tensor:
    data = np.random.default_rng(len(shape) + sum(shape)).normal(size=shape)
    return constant(data.astype(np.float32))


def _x(*shape: int, dtype: str = "float32") -> Tensor:
    return Tensor(shape, dtype)


def _fixed(*shape: int, dtype: str = "float32") -> Tensor:
    return Tensor(shape, dtype, open=False)


_positive = np.abs
_X = _x(1, 4, 3)
_INTS = _x(1, 6, dtype="int32")


def _unary(kind: str, **more: Any) -> Case:
    return Case(kind, [_X], **more)


def _elementwise() -> list[Case]:
    names = (
        "ABS CEIL COS ELU EXP FLOOR HARD_SWISH LOGISTIC LOG_SOFTMAX NEG RELU RELU6 RELU_0_TO_1 "
        "RELU_N1_TO_1 ROUND SIGN SIN SQUARE TANH ZEROS_LIKE"
    )
    cases = [_unary(name) for name in names.split()]
    cases += [_unary(name, change=_positive) for name in ("LOG", "RSQRT", "SQRT")]
    cases.append(Case("ATAN2", [_X, _X]))
    for name in ["MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD"]:
        cases += [Case(name, [_X, _X]), Case(name, [_X, _random(3)])]
    cases += [
        Case(n, [_INTS, constant([3])], results=["int32"]) for n in ("FLOOR_DIV", "FLOOR_MOD")
    ]
    cases += [
        Case(n, [_INTS, constant([5])], results=["int32"]) for n in ("BITWISE_XOR", "RIGHT_SHIFT")
    ]
    cases.append(Case("POW", [_X, constant(np.float32(2.5))], change=_positive))
    for kind, name in (("ADD", "Add"), ("SUB", "Sub"), ("MUL", "Mul"), ("DIV", "Div")):
        for activation in range(4 if kind == "ADD" else 2):
            options = _options(name, fusedActivationFunction=activation)
            cases.append(Case(kind, [_X, _random(4, 1)], options))
        cases.append(Case(kind, [_X, _X], _options(name)))
        if kind != "DIV":
            cases.append(Case(kind, [_INTS, constant([2])], _options(name), ["int32"]))
    for name in ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"]:
        cases.append(Case(name, [_INTS, constant([2])], results=["bool"]))
        cases.append(Case(name, [_X, _X], results=["bool"]))
    flags = _x(1, 3, dtype="bool")
    cases += [Case(n, [flags, flags], results=["bool"]) for n in ("LOGICAL_AND", "LOGICAL_OR")]
    cases.append(Case("LOGICAL_NOT", [flags], results=["bool"]))
    cases.append(Case("SELECT", [_x(1, 3, dtype="bool"), _x(1, 3), _x(1, 3)]))
    cases.append(Case("SELECT_V2", [_x(1, 1, dtype="bool"), _x(1, 3), _random(3)]))
    cases.append(Case("ADD_N", [_X, _X, _X], _options("AddN")))
    cases.append(Case("PRELU", [_x(1, 4, 4, 3), _random(1, 1, 3)]))
    cases.append(_unary("LEAKY_RELU", options=_options("LeakyRelu", alpha=0.3)))
    cases += [_unary("GELU", options=_options("Gelu", approximate=a)) for a in (False, True)]
    cases += [_unary("SOFTMAX", options=_options("Softmax", beta=b)) for b in (1.0, 0.5)]
    cases.append(
        _unary("CAST", results=["int32"], options=_options("Cast", inDataType=0, outDataType=2))
    )
    cases.append(Case("CAST", [_INTS], _options("Cast", inDataType=2, outDataType=0)))
    return cases


def _windows() -> list[Case]:
    cases = []
    image = _x(1, 9, 8, 4)
    for padding, stride, dilation, groups in (
        (0, 1, 1, 1),
        (1, 2, 1, 1),
        (0, 1, 2, 1),
        (0, 2, 1, 2),
    ):
        options = _options(
            "Conv2D",
            padding=padding,
            strideW=stride,
            strideH=stride,
            dilationWFactor=dilation,
            dilationHFactor=dilation,
            fusedActivationFunction=3,
        )
        weights, bias = _random(6, 3, 2, 4 // groups), _random(6)
        cases.append(Case("CONV_2D", [image, weights, bias], options))
    for padding, stride, dilation, multiplier in (
        (0, 1, 1, 1),
        (1, 2, 1, 2),
        (0, 1, 2, 1),
        (1, 1, 2, 3),
    ):
        options = _options(
            "DepthwiseConv2D",
            padding=padding,
            strideW=stride,
            strideH=stride,
            dilationWFactor=dilation,
            dilationHFactor=dilation,
            depthMultiplier=multiplier,
            fusedActivationFunction=1,
        )
        weights, bias = _random(1, 3, 3, 4 * multiplier), _random(4 * multiplier)
        cases.append(Case("DEPTHWISE_CONV_2D", [image, weights, bias], options))
    options = _options("DepthwiseConv2D", strideW=1, strideH=2, depthMultiplier=1)
    cases.append(Case("DEPTHWISE_CONV_2D", [image, _random(1, 3, 3, 4), _random(4)], options))
    for padding, size in ((0, [1, 10, 8, 3]), (1, [1, 11, 9, 3])):
        options = _options("TransposeConv", padding=padding, strideW=2, strideH=2)
        operands = [constant(size), _random(3, 3, 3, 4), _fixed(1, 5, 4, 4), _random(3)]
        cases.append(Case("TRANSPOSE_CONV", operands, options, batch=False))
        cases.append(Case("TRANSPOSE_CONV", operands[:3], options, batch=False))
    options = _options("Conv3D", strideD=1, strideW=1, strideH=2)
    cases.append(Case("CONV_3D", [_x(1, 4, 5, 6, 2), _random(2, 3, 3, 2, 5), _random(5)], options))
    for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        for padding in (0, 1):
            options = _options(
                "Pool2D",
                padding=padding,
                strideW=2,
                strideH=2,
                filterWidth=2,
                filterHeight=3,
                fusedActivationFunction=1,
            )
            cases.append(Case(kind, [image], options))
    for bilinear in (True, False):
        name = "ResizeBilinear" if bilinear else "ResizeNearestNeighbor"
        kind = "RESIZE_BILINEAR" if bilinear else "RESIZE_NEAREST_NEIGHBOR"
        for align, half in ((False, False), (True, False), (False, True)):
            options = _options(name, alignCorners=align, halfPixelCenters=half)
            cases.append(Case(kind, [image, constant([13, 5])], options))
    options = _options("LocalResponseNormalization", radius=2, bias=1.0, alpha=0.5, beta=0.75)
    cases.append(Case("LOCAL_RESPONSE_NORMALIZATION", [_x(1, 3, 3, 7)], options))
    cases.append(Case("L2_NORMALIZATION", [_x(1, 5)], _options("L2Norm")))
    fc = "FullyConnected"
    for keep, shape in ((False, (1, 8)), (False, (1, 2, 4)), (True, (1, 3, 8))):
        options = _options(fc, keepNumDims=keep, fusedActivationFunction=1)
        cases.append(Case("FULLY_CONNECTED", [_x(*shape), _random(5, 8), _random(5)], options))
    cases.append(Case("FULLY_CONNECTED", [_x(1, 8), _random(5, 8), None], _options(fc)))
    for adj_x, adj_y in ((False, False), (False, True), (True, False)):
        a = (1, 5, 4) if adj_x else (1, 4, 5)
        b = (1, 6, 5) if adj_y else (1, 5, 6)
        options = _options("BatchMatMul", adjX=adj_x, adjY=adj_y)
        cases.append(Case("BATCH_MATMUL", [_x(*a), _x(*b)], options))
    cases.append(Case("BATCH_MATMUL", [_x(1, 2, 4, 5), _random(5, 6)], _options("BatchMatMul")))
    return cases


def _moves() -> list[Case]:
    x = _x(1, 4, 6)
    image = _x(1, 4, 6, 4)
    cases = [
        Case("RESHAPE", [x, constant([-1, 3, 8])], _options("Reshape", newShape=[])),
        Case("RESHAPE", [_fixed(1, 4, 6)], _options("Reshape", newShape=[2, -1]), batch=False),
        Case("SQUEEZE", [_x(1, 1, 6)], _options("Squeeze", squeezeDims=[1])),
        Case("SQUEEZE", [_fixed(1, 1, 6)], _options("Squeeze"), batch=False),
        Case("EXPAND_DIMS", [x, constant(np.int32(-1))], _options("ExpandDims")),
        Case("TRANSPOSE", [x, constant([0, 2, 1])], _options("Transpose")),
        Case("SLICE", [x, constant([0, 1, 2]), constant([-1, 2, -1])], _options("Slice")),
        Case("PAD", [x, constant([[0, 0], [1, 2], [0, 3]])], _options("Pad")),
        Case(
            "PADV2",
            [x, constant([[0, 0], [1, 2], [0, 3]]), constant(np.float32(7))],
            _options("PadV2"),
        ),
        Case("TILE", [x, constant([1, 2, 3])], _options("Tile")),
        Case("REVERSE_V2", [x, constant([1])], _options("ReverseV2")),
        Case(
            "BROADCAST_TO",
            [_fixed(1, 1, 6), constant([2, 4, 6])],
            _options("BroadcastTo"),
            batch=False,
        ),
        Case("SPACE_TO_DEPTH", [image], _options("SpaceToDepth", blockSize=2)),
        Case("DEPTH_TO_SPACE", [image], _options("DepthToSpace", blockSize=2)),
        Case(
            "SPACE_TO_BATCH_ND",
            [_fixed(1, 4, 6, 2), constant([2, 2]), constant([[0, 0], [2, 0]])],
            batch=False,
        ),
        Case(
            "BATCH_TO_SPACE_ND",
            [_fixed(4, 4, 6, 2), constant([2, 2]), constant([[0, 1], [2, 0]])],
            batch=False,
        ),
        Case("GATHER", [_random(7, 3), _INTS], _options("Gather", axis=0)),
        Case("GATHER", [x, constant([3, 0])], _options("Gather", axis=1)),
        Case("GATHER_ND", [_random(7, 3), _x(1, 2, 1, dtype="int32")], _options("GatherNd")),
        Case("SCATTER_ND", [constant([[1], [0]]), _fixed(2, 3), constant([4, 3])], batch=False),
        Case("EMBEDDING_LOOKUP", [_fixed(5, dtype="int32"), _random(7, 3)], batch=False),
        Case(
            "ONE_HOT",
            [_INTS, constant(np.int32(5)), constant(np.float32(2)), constant(np.float32(-1))],
            _options("OneHot", axis=-1),
        ),
        Case("FILL", [constant([2, 3]), _fixed()], _options("Fill"), batch=False),
    ]
    cases += [
        Case("MIRROR_PAD", [x, constant([[0, 0], [1, 2], [2, 0]])], _options("MirrorPad", mode=m))
        for m in (0, 1)
    ]
    cases.append(Case("CONCATENATION", [x, _x(1, 4, 2)], _options("Concatenation", axis=-1)))
    cases += [Case("PACK", [x, x], _options("Pack", valuesCount=2, axis=a)) for a in (1, -1)]
    cases.append(Case("UNPACK", [x], _options("Unpack", num=4, axis=1), ["float32"] * 4))
    cases.append(
        Case("SPLIT", [constant(np.int32(2)), x], _options("Split", numSplits=3), ["float32"] * 3)
    )
    cases.append(
        Case(
            "SPLIT_V",
            [x, constant([1, 3]), constant(np.int32(1))],
            _options("SplitV", numSplits=2),
            ["float32"] * 2,
        )
    )
    masks = {"beginMask": 1, "endMask": 1 + 2, "shrinkAxisMask": 4}
    slices = [constant(v) for v in ([0, 1, 2], [0, 0, 3], [1, 2, 1])]
    cases.append(Case("STRIDED_SLICE", [x, *slices], _options("StridedSlice", **masks)))
    slices = [constant(v) for v in ([0, 3, 0], [0, -5, 0], [1, -1, 1])]
    cases.append(
        Case("STRIDED_SLICE", [x, *slices], _options("StridedSlice", beginMask=5, endMask=5))
    )
    for name in ["MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"]:
        for keep in (False, True):
            cases.append(Case(name, [x, constant([1, -1])], _options("Reducer", keepDims=keep)))
    flags = _x(1, 4, 3, dtype="bool")
    for name in ("REDUCE_ANY", "REDUCE_ALL"):
        cases.append(Case(name, [flags, constant([1])], _options("Reducer"), ["bool"]))
    for kind, name in (("ARG_MAX", "ArgMax"), ("ARG_MIN", "ArgMin")):
        cases.append(
            Case(kind, [x, constant(np.int32(-1))], _options(name, outputType=2), ["int32"])
        )
    largest = _options("TopKV2")
    cases.append(Case("TOPK_V2", [x, constant(np.int32(2))], largest, ["float32", "int32"]))
    for exclusive, reverse in ((False, False), (True, False), (False, True)):
        options = _options("Cumsum", exclusive=exclusive, reverse=reverse)
        cases.append(Case("CUMSUM", [x, constant(np.int32(1))], options))
    cases += _made()
    update = [_fixed(4, 5), _fixed(2, 2), constant([1, 3])]
    cases.append(Case("DYNAMIC_UPDATE_SLICE", update, batch=False))
    update = [_fixed(4, 5), _fixed(1, 5), _fixed(2, dtype="int32")]
    cases.append(Case("DYNAMIC_UPDATE_SLICE", update, batch=False, change=np.sort))
    return cases


def _made() -> list[Case]:
    """Tensors of shapes and numbers, which are constants of the crate or turned into floats."""
    bounds = _options("Bucketize", boundaries=[-1.0, 0.0, 0.5])
    deep = _options("Conv3D", strideD=1, strideW=2, strideH=1)
    image = [constant([1, 3, 4, 6, 2]), _random(2, 2, 2, 2, 3), _fixed(1, 3, 4, 3, 3)]
    return [
        Case("SHAPE", [_fixed(2, 3)], _options("Shape", outType=2), ["int32"], batch=False),
        Case("RANK", [_fixed(2, 3)], _options("Rank"), ["int32"], batch=False),
        Case("BUCKETIZE", [_X], bounds, ["int32"]),
        Case("CONV_3D_TRANSPOSE", image, deep, batch=False),
    ]


def _recurrent() -> list[Case]:
    cases = []
    for major in (False, True):
        x = _fixed(5, 1, 3) if major else _fixed(1, 5, 3)
        state = Tensor((1, 4), open=False, variable=True)
        options = _options("SequenceRNN", timeMajor=major, fusedActivationFunction=4)
        operands: list[Tensor | None] = [x, _random(4, 3), _random(4, 4), _random(4), state]
        cases.append(Case("UNIDIRECTIONAL_SEQUENCE_RNN", operands, options, batch=False))
        options = _options("UnidirectionalSequenceLSTM", timeMajor=major, fusedActivationFunction=4)
        # Of other numbers each, or gates in another order would give the same.
        sizes = (3, 3, 3, 3, 4, 4, 4, 4)
        gates = [_random(4 + i, n) for i, n in enumerate(sizes)]
        gates = [constant(g.data[:4]) for g in gates if g.data is not None]
        biases = [constant(b) for b in np.eye(4, dtype=np.float32)]
        operands = [x, *gates, None, None, None, *biases, None, None, state, state]
        cases.append(Case("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, options, batch=False))
    return cases


def _filters() -> list[Case]:
    """Filters of a rank over what features were, with and without a bias."""
    cases = []
    for rank, biased, activation in ((1, True, 0), (2, False, 1), (3, True, 1)):
        filters, memory = 4 * rank, 5
        state = Tensor((1, filters * memory), open=False, variable=True)
        options = _options("SVDF", rank=rank, fusedActivationFunction=activation)
        bias = _random(4) if biased else None
        operands = [_fixed(1, 3), _random(filters, 3), _random(filters, memory), bias, state]
        cases.append(Case("SVDF", operands, options, batch=False))
    return cases


def lstms() -> list[Case]:
    """Returns LSTMs with peepholes, projections, norms or fewer gates, which Keras has not."""
    cases = []
    for peepholes, projected, normed, coupled in itertools.product((False, True), repeat=4):
        units, outputs = 4, 3 if projected else 4
        options = _options(
            "UnidirectionalSequenceLSTM",
            fusedActivationFunction=4,
            cellClip=0.4 if normed else 0.0,
            projClip=0.3 if projected and peepholes else 0.0,
        )

        def gates(*shape: int, first: bool = not coupled) -> list[Tensor | None]:
            made: list[Tensor | None] = [
                constant(np.random.default_rng(7 * i + len(shape)).normal(size=shape) * 0.5)
                for i in range(4)
            ]
            return made if first else [None, *made[1:]]

        none: list[Tensor | None] = [None] * 4
        sight = gates(units) if peepholes else none
        states = [
            Tensor((1, n), open=False, variable=True, name=f"state_{n}_{i}")
            for i, n in enumerate((outputs, units))
        ]
        operands = [_fixed(1, 5, 3), *gates(units, 3), *gates(units, outputs)]
        operands += [sight[0], sight[1], sight[3], *gates(units)]
        operands += [_random(outputs, units), _random(outputs)] if projected else [None, None]
        operands += [*states, *(gates(units) if normed else none)]
        cases.append(Case("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, options, batch=False))
    return cases


def _both_ways() -> list[Case]:
    """Returns LSTMs in two directions, their outputs side by side or not."""
    cases = []
    for merged, major, more in itertools.product((False, True), repeat=3):
        options = _options(
            "BidirectionalSequenceLSTM",
            fusedActivationFunction=4,
            mergeOutputs=merged,
            timeMajor=major,
        )
        outputs = 3 if more else 4
        operands: list[Tensor | None] = [_fixed(5, 1, 3) if major else _fixed(1, 5, 3)]
        for way in range(2):
            random = np.random.default_rng(3 + way)

            def made(*shape: int, random: Any = random) -> Tensor:
                return constant(random.normal(size=shape) * 0.5)

            operands += [made(4, 3) for _ in range(4)] + [made(4, outputs) for _ in range(4)]
            operands += [made(4) if more else None for _ in range(3)] + [made(4) for _ in range(4)]
            operands += [made(outputs, 4), made(outputs)] if more else [None, None]
        operands += [
            Tensor((1, n), open=False, variable=True, name=f"state_{i}")
            for i, n in enumerate((outputs, 4, outputs, 4))
        ]
        results = ("float32",) if merged else ("float32", "float32")
        operands += [None] * 9
        cases.append(
            Case("BIDIRECTIONAL_SEQUENCE_LSTM", operands, options, results=results, batch=False)
        )
    return cases


CASES = [*_recurrent(), *_filters(), *_both_ways(), *_elementwise(), *_windows(), *_moves()]
"""Every operator with a counterpart, most with several options."""
