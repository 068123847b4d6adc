"""Calls of ops whose arguments are not all of one shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tests.conformance.cases import Array, Call, special, values
from tests.conformance.references import EXPRESSION_OPS, STEP_TYPES

Types = Mapping[str, np.dtype[Any]]
"""Type attributes of a kernel."""


def _some(types: Types, name: str, *shape: int, seed: int = 0, low: float = -5) -> Array:
    return values(shape, types[name], seed, low, 5)


def _index(types: Types, name: str, *items: int) -> Array:
    return np.array(items, types[name])


def _mat_mul(types: Types) -> Iterator[Call]:
    for i, (m, k, n) in enumerate([(1, 1, 1), (3, 5, 7), (64, 100, 33), (0, 3, 2), (2, 0, 3)]):
        for ta in (False, True):
            for tb in (False, True):
                a = values((k, m) if ta else (m, k), types["T"], i, -1, 1)
                b = values((n, k) if tb else (k, n), types["T"], i + 50, -1, 1)
                yield Call({"a": a, "b": b}, {"transpose_a": ta, "transpose_b": tb})


def _bias_add(types: Types) -> Iterator[Call]:
    for i, shape in enumerate([(3, 4), (0, 4), (2, 3, 5), (2, 3, 4, 6), (1, 2, 3, 4, 5)]):
        for data_format in ("NHWC", "NCHW"):
            channels = shape[-1] if data_format == "NHWC" else shape[1]
            value = _some(types, "T", *shape, seed=i)
            bias = _some(types, "T", channels, seed=i + 50)
            yield Call({"value": value, "bias": bias}, {"data_format": data_format})


_CONVOLUTIONS = (
    (1, 1, "SAME"),
    (2, 1, "SAME"),
    (1, 2, "VALID"),
    (3, 1, "VALID"),
    (1, 1, "EXPLICIT"),
)


def _conv_attributes(stride: int, dilation: int, padding: str) -> dict[str, Any]:
    return {
        "strides": [1, stride, stride, 1],
        "dilations": [1, dilation, dilation, 1],
        "padding": padding,
        "explicit_paddings": [0, 0, 1, 2, 0, 3, 0, 0] if padding == "EXPLICIT" else [],
    }


def _conv_2d(types: Types) -> Iterator[Call]:
    for i, setting in enumerate(_CONVOLUTIONS):
        x = values((2, 9, 11, 3), types["T"], i, -1, 1)
        w = values((3, 2, 3, 5), types["T"], i + 50, -1, 1)
        yield Call({"input": x, "filter": w}, _conv_attributes(*setting))
    for x, w, _ in _tiled(types):
        yield Call({"input": x, "filter": w}, _conv_attributes(1, 1, "SAME"))


def _tiled(types: Types) -> Iterator[tuple[Array, Array, Array]]:
    """Inputs, filters and outputs' gradients large enough for minimal filtering."""
    dtype, weight = types["T"], 0.2
    for image, taps, depth, columns in (
        ((2, 40, 41), (3, 3), 24, 32),
        ((3, 1, 150), (1, 3), 40, 48),
        ((3, 1, 150), (1, 5), 40, 48),
    ):
        x = values((*image, depth), dtype, 7, -1, 1)
        w = values((*taps, depth, columns), dtype, 57, -weight, weight)
        yield x, w, values((*image, columns), dtype, 58, -weight / 4, weight / 4)


def _conv_output(stride: int, dilation: int, padding: str) -> tuple[int, int]:
    extra = {"EXPLICIT": (3, 3)}.get(padding, (0, 0))
    sizes = []
    for size, kernel, more in zip((9, 11), (3, 2), extra, strict=True):
        reach = (kernel - 1) * dilation + 1
        same, valid = -(-size // stride), (size + more - reach) // stride + 1
        sizes.append(same if padding == "SAME" else valid)
    return sizes[0], sizes[1]


def _conv_2d_input(types: Types) -> Iterator[Call]:
    for i, setting in enumerate(_CONVOLUTIONS[:2] + _CONVOLUTIONS[3:4]):
        w = values((3, 2, 3, 5), types["T"], i + 50, -1, 1)
        gradient = values((2, *_conv_output(*setting), 5), types["T"], i, -1, 1)
        sizes = np.array([2, 9, 11, 3], np.int32)
        call = {"input_sizes": sizes, "filter": w, "out_backprop": gradient}
        yield Call(call, _conv_attributes(*setting))
    for x, w, gradient in _tiled(types):
        call = {"input_sizes": np.array(x.shape, np.int32), "filter": w, "out_backprop": gradient}
        yield Call(call, _conv_attributes(1, 1, "SAME"))


def _conv_2d_filter(types: Types) -> Iterator[Call]:
    for i, setting in enumerate(_CONVOLUTIONS[:2] + _CONVOLUTIONS[3:4]):
        x = values((2, 9, 11, 3), types["T"], i, -1, 1)
        gradient = values((2, *_conv_output(*setting), 5), types["T"], i + 50, -1, 1)
        sizes = np.array([3, 2, 3, 5], np.int32)
        call = {"input": x, "filter_sizes": sizes, "out_backprop": gradient}
        yield Call(call, _conv_attributes(*setting))
    for x, w, gradient in _tiled(types):
        call = {"input": x, "filter_sizes": np.array(w.shape, np.int32), "out_backprop": gradient}
        yield Call(call, _conv_attributes(1, 1, "SAME"))


def _cast(types: Types) -> Iterator[Call]:
    if types["SrcT"].kind in "iu":
        # Numbers of more digits than 16-bit floats have.
        x = values((41,), types["SrcT"], 1, 0, 30000)
        yield Call({"x": x}, {"DstT": types["DstT"]})
    for shape in ((), (0,), (37,), (3, 4, 5)):
        yield Call({"x": _some(types, "SrcT", *shape, low=0)}, {"DstT": types["DstT"]})


def _gather(types: Types) -> Iterator[Call]:
    for axis, indices in ((0, (2, 0, 2)), (1, (1,)), (-1, ()), (2, (4, 0))):
        yield Call(
            {
                "params": _some(types, "Tparams", 3, 4, 5),
                "indices": _index(types, "Tindices", *indices),
                "axis": np.array(axis, types["Taxis"]),
            }
        )


def _transpose(types: Types) -> Iterator[Call]:
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (0, 2, 3, 1), (1, 0, 3, 2)):
        yield Call({"x": _some(types, "T", 2, 3, 4, 5), "perm": _index(types, "Tperm", *order)})
    yield Call({"x": _some(types, "T", 3, 0), "perm": _index(types, "Tperm", 1, 0)})


def _tile(types: Types) -> Iterator[Call]:
    for times in ((1, 1), (3, 2), (0, 1)):
        call = {"input": _some(types, "T", 2, 3), "multiples": _index(types, "Tmultiples", *times)}
        yield Call(call)


def _paddings(types: Types, most: int) -> Array:
    return np.array([[1, 0], [most, 1]], types["Tpaddings"])


def _pad(types: Types) -> Iterator[Call]:
    yield Call({"input": _some(types, "T", 3, 4), "paddings": _paddings(types, 2)})


def _pad_v2(types: Types) -> Iterator[Call]:
    for call in _pad(types):
        yield Call({**call.inputs, "constant_values": _some(types, "T")})


def _mirror_pad(types: Types) -> Iterator[Call]:
    for mode in ("REFLECT", "SYMMETRIC"):
        for call in _pad(types):
            yield Call(call.inputs, {"mode": mode})


def _broadcast_to(types: Types) -> Iterator[Call]:
    for shape in ((3, 4), (2, 3, 4), (0, 3, 4)):
        call = {"input": _some(types, "T", 3, 1), "shape": _index(types, "Tidx", *shape)}
        yield Call(call)


def _slice(types: Types) -> Iterator[Call]:
    for begin, size in (((0, 1), (2, 2)), ((1, 0), (-1, -1)), ((0, 0), (0, 3))):
        yield Call(
            {
                "input": _some(types, "T", 3, 4),
                "begin": _index(types, "Index", *begin),
                "size": _index(types, "Index", *size),
            }
        )


def _concat(types: Types) -> Iterator[Call]:
    for axis in (0, 1, -1):
        shapes = ((2, 3), (4, 3)) if axis == 0 else ((2, 3), (2, 0), (2, 2))
        parts = [_some(types, "T", *shape, seed=i) for i, shape in enumerate(shapes)]
        yield Call({"values": parts, "axis": np.array(axis, types["Tidx"])})


def _fill(types: Types) -> Iterator[Call]:
    for shape in ((), (0,), (5, 3)):
        call = {"dims": _index(types, "index_type", *shape), "value": _some(types, "T")}
        yield Call(call)


def _arg(types: Types) -> Iterator[Call]:
    for axis in (0, 1, -1):
        call = {"input": _some(types, "T", 4, 5, 6), "dimension": np.array(axis, types["Tidx"])}
        yield Call(call, {"output_type": types["output_type"]})
    ends = special(types["T"])
    rng = np.random.default_rng(0)
    for shape in ((1,), (2,), (3,), (33,), (200,)):
        for tail in ((), (40,)):
            x = rng.choice(ends, (*shape, *tail))
            call = {"input": x, "dimension": np.array(0, types["Tidx"])}
            yield Call(call, {"output_type": types["output_type"]})


def _split(types: Types) -> Iterator[Call]:
    for axis, parts in ((0, 2), (1, 3)):
        call = {"axis": np.array(axis, np.int32), "value": _some(types, "T", 4, 6)}
        yield Call(call, {"num_split": parts})


def _select(types: Types) -> Iterator[Call]:
    for shape in ((4, 5), (1, 5), ()):
        yield Call(
            {
                "condition": values(shape, np.dtype(np.bool_), 1, 0, 1),
                "t": _some(types, "T", 4, 5),
                "e": _some(types, "T", 4, 1, seed=2),
            }
        )


def _pack(types: Types) -> Iterator[Call]:
    for axis in (0, 1, -1):
        yield Call({"values": [_some(types, "T", 3, 4, seed=i) for i in range(3)]}, {"axis": axis})


def _unpack(types: Types) -> Iterator[Call]:
    for axis, number in ((0, 3), (1, 4)):
        yield Call({"value": _some(types, "T", 3, 4)}, {"axis": axis, "num": number})


def _strided_slice(types: Types) -> Iterator[Call]:
    for begin, end, strides in (((0, 1), (3, 4), (1, 2)), ((2, 3), (0, 0), (-1, -2))):
        yield Call(
            {
                "input": _some(types, "T", 4, 5),
                "begin": _index(types, "Index", *begin),
                "end": _index(types, "Index", *end),
                "strides": _index(types, "Index", *strides),
            }
        )


def _add_n(types: Types) -> Iterator[Call]:
    for count in (1, 2, 3, 9):
        yield Call({"inputs": [_some(types, "T", 17, seed=i) for i in range(count)]})


def _cross_entropy(types: Types) -> Iterator[Call]:
    labels = np.array([0, 6, 3, 3], types.get("Tlabels", np.dtype(np.int64)))
    yield Call({"features": _some(types, "T", 4, 7), "labels": labels})


def _one_hot(types: Types) -> Iterator[Call]:
    for axis in (-1, 0):
        yield Call(
            {
                "indices": _index(types, "TI", 0, 2, 1, 5),
                "depth": np.array(4, np.int32),
                "on_value": _some(types, "T", seed=3),
                "off_value": _some(types, "T", seed=4),
            },
            {"axis": axis},
        )


def _reverse(types: Types) -> Iterator[Call]:
    for axes in ((), (0,), (1, 2)):
        yield Call({"tensor": _some(types, "T", 2, 3, 4), "axis": _index(types, "Tidx", *axes)})


def _random(types: Types) -> Iterator[Call]:
    for shape in ((), (0,), (3,), (5, 7), (1000,)):
        call = {"shape": np.array(shape, types["T"])}
        yield Call(call, {"dtype": types["dtype"], "seed": 5, "seed2": 6})


def _expression(types: Types) -> Iterator[Call]:
    """Every step once, the step of Adam, values on the way, norms by rows, one between casts."""
    kind = [kind.name for kind in STEP_TYPES].index(types["T"].name) * len(EXPRESSION_OPS)

    def call(
        shapes: list[tuple[int, ...]],
        *steps: tuple[str, int, int],
        results: tuple[int, ...] = (),
    ) -> Call:
        numbers = ((EXPRESSION_OPS.index(op) + kind, a, b) for op, a, b in steps)
        inputs = [values(s, types["T"], i, 0.5, 2) for i, s in enumerate(shapes)]
        attributes = {
            "T": types["T"],
            "program": [number for step in numbers for number in step],
            "results": [*results],
            "M": 1 + len(results),
            "extents": [],
        }
        return Call({"inputs": inputs}, attributes)

    for op in EXPRESSION_OPS:
        yield call([(7, 9), (7, 9)], (op, 0, 1), ("Mul", 2, 1))
    adam = (("Mul", 0, 2), ("Sqrt", 1, 0), ("AddV2", 5, 3), ("RealDiv", 4, 6))
    alike: tuple[tuple[int, ...], ...] = ((), (1,), (0, 3), (33, 5), (1031,), (300, 500))
    for shape in alike:
        yield call([shape, shape, (), ()], *adam)
        yield call([shape, shape, (), ()], *adam, results=(1, 0))
    norm = (("Rsqrt", 2, 0), ("Sub", 0, 1), ("Mul", 4, 3), ("Relu", 5, 0))
    by_row: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
        ((4, 5), (5,)),
        ((2, 3, 4, 64), (1, 1, 1, 64)),
        ((0, 3), (3,)),
    )
    for whole, row in by_row:
        yield call([whole, row, row], *norm)
    wide = [EXPRESSION_OPS.index("Mul"), 0, 1, EXPRESSION_OPS.index("Cast") + kind, 2, 0]
    inputs = [values((40, 3), types["T"], 0, 0.5, 2), values((3,), np.dtype(np.float32), 1, 0.5, 2)]
    around = {"T": types["T"], "program": wide, "results": [], "M": 1, "extents": [2, 1]}
    yield Call({"inputs": inputs}, around)


CALLS: Mapping[str, Callable[[Types], Iterator[Call]]] = {
    "AddN": _add_n,
    "ArgMax": _arg,
    "ArgMin": _arg,
    "BiasAdd": _bias_add,
    "BroadcastTo": _broadcast_to,
    "Cast": _cast,
    "ConcatV2": _concat,
    "Conv2D": _conv_2d,
    "Conv2DBackpropFilter": _conv_2d_filter,
    "Conv2DBackpropInput": _conv_2d_input,
    "Fill": _fill,
    "GatherV2": _gather,
    "MatMul": _mat_mul,
    "MirrorPad": _mirror_pad,
    "OneHot": _one_hot,
    "Pack": _pack,
    "Pad": _pad,
    "PadV2": _pad_v2,
    "RandomStandardNormal": _random,
    "RandomUniform": _random,
    "ReverseV2": _reverse,
    "SelectV2": _select,
    "Slice": _slice,
    "SparseSoftmaxCrossEntropyWithLogits": _cross_entropy,
    "Split": _split,
    "StridedSlice": _strided_slice,
    "TfpExpression": _expression,
    "Tile": _tile,
    "Transpose": _transpose,
    "TruncatedNormal": _random,
    "Unpack": _unpack,
}
"""Calls by op."""
