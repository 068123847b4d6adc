"""Calls of ops that take, move or count elements by index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tests.conformance.cases import SHAPES, Array, Call, values

Types = Mapping[str, np.dtype[Any]]


def _some(types: Types, name: str, *shape: int, seed: int = 0, low: float = -5) -> Array:
    return values(shape, types[name], seed, low, 5)


def _index(types: Types, name: str, *items: Any) -> Array:
    return np.array(items, types[name])


def _bitcast(types: Types) -> Iterator[Call]:
    """Elements become several smaller ones, or several become one."""
    source, target = types["T"], types["type"]
    shapes: tuple[tuple[int, ...], ...] = ((), (5,), (2, 0, 3), (3, 4))
    if source.itemsize < target.itemsize:
        last = target.itemsize // source.itemsize
        shapes = ((last,), (3, last), (0, last))
    for shape in shapes:
        yield Call({"input": _some(types, "T", *shape, low=0)}, {"type": target})


def _split_v(types: Types) -> Iterator[Call]:
    for axis, sizes in ((0, (1, 3)), (1, (2, -1, 1)), (-1, (6,)), (1, (0, 6))):
        yield Call(
            {
                "value": _some(types, "T", 4, 6),
                "size_splits": _index(types, "Tlen", *sizes),
                "axis": np.array(axis, np.int32),
            },
            {"num_split": len(sizes)},
        )


def _strided_slice_grad(types: Types) -> Iterator[Call]:
    for begin, end, strides, shape in (
        ((0, 1), (3, 4), (1, 2), (3, 2)),
        ((2, 3), (0, 0), (-1, -2), (2, 2)),
        ((1, 1), (1, 5), (1, 1), (0, 4)),
    ):
        yield Call(
            {
                "shape": _index(types, "Index", 4, 5),
                "begin": _index(types, "Index", *begin),
                "end": _index(types, "Index", *end),
                "strides": _index(types, "Index", *strides),
                "dy": _some(types, "T", *shape),
            }
        )


def _gather_nd(types: Types) -> Iterator[Call]:
    for indices in (
        np.array([[2, 3, 4], [0, 0, 0]]),
        np.array([[[1, 2]], [[0, 3]]]),
        np.array([[1], [1], [2]]),
        np.zeros((0, 2)),
        np.zeros((2, 0)),
    ):
        params = _some(types, "Tparams", 3, 4, 5)
        yield Call({"params": params, "indices": indices.astype(types["Tindices"])})


def _dynamic_stitch(types: Types) -> Iterator[Call]:
    for rest in ((), (3,)):
        indices = [np.array([4, 1], np.int32), np.array([[0, 2], [1, 3]], np.int32)]
        data = [_some(types, "T", *i.shape, *rest, seed=n) for n, i in enumerate(indices)]
        yield Call({"indices": indices, "data": data})


def _select(types: Types) -> Iterator[Call]:
    for shape, condition in (((4, 5), (4, 5)), ((4, 5), (4,)), ((3,), (3,)), ((4, 5), ())):
        yield Call(
            {
                "condition": values(condition, np.dtype(np.bool_), 1, 0, 1),
                "x": _some(types, "T", *shape),
                "y": _some(types, "T", *shape, seed=2),
            }
        )


def _segments(types: Types) -> Iterator[Call]:
    for ids, rest, count in (
        ([2, 0, 2, 1], (), 4),
        ([[2, -1], [0, 2]], (3,), 3),
        ([], (2,), 2),
    ):
        segment_ids = np.array(ids, types["Tindices"])
        yield Call(
            {
                "data": _some(types, "T", *segment_ids.shape, *rest),
                "segment_ids": segment_ids,
                "num_segments": np.array(count, types["Tnumsegments"]),
            }
        )


def _range(types: Types) -> Iterator[Call]:
    spans: list[tuple[float, float, float]] = [(0, 7, 1), (3, -4, -2), (5, 5, 1), (-2, 9, 4)]
    if types["Tidx"].kind == "f":
        # Steps that are no binary fractions, in which the quotient decides about the last number.
        spans += [(0.1, 1.1, 0.1), (0, 1, 0.1), (1, 0, -0.05), (np.nan, 1, 1), (0, np.inf, 1)]
        drawn = np.random.default_rng(0).integers(-60, 60, (200, 3)) / 10
        spans += [(start, limit, delta) for start, limit, delta in drawn.tolist()]
    else:
        info = np.iinfo(types["Tidx"])
        spans += [(info.max - 2, info.max, 1), (info.min, info.min + 5, 2), (0, 4, 0), (4, 0, 1)]
        spans += [(info.min, info.max, info.max), (info.max, info.min, info.min)]
    for start, limit, delta in spans:
        yield Call(
            {
                name: np.array(value, types["Tidx"])
                for name, value in (("start", start), ("limit", limit), ("delta", delta))
            }
        )


def _clip(types: Types) -> Iterator[Call]:
    for i, shape in enumerate(SHAPES):
        t = _some(types, "T", *shape, seed=i)
        for limits in ((), shape):
            low = np.full(limits, -2, types["T"])
            high = np.full(limits, 3, types["T"])
            yield Call({"t": t, "clip_value_min": low, "clip_value_max": high})


def _cumulative(types: Types) -> Iterator[Call]:
    for axis, exclusive, reverse in ((0, False, False), (1, True, False), (-1, False, True)):
        x = values((3, 4, 5), types["T"], axis + 1, 0.5, 1.5)
        attributes = {"exclusive": exclusive, "reverse": reverse}
        yield Call({"x": x, "axis": np.array(axis, types.get("Tidx", np.int32))}, attributes)


def _scatter(types: Types) -> Iterator[Call]:
    for reduction in ("add", "sub", "mul", "div", "min", "max", "update"):
        for nd, indices, updates in (
            (False, [2, 0, 2], (3, 5)),
            (False, [[1], [3]], (2, 1, 5)),
            (False, [1, 2], ()),
            (True, [[2, 3], [0, 0], [2, 3]], (3,)),
            (True, [[1]], (1, 5)),
        ):
            if nd and reduction in ("mul", "div"):
                # TensorFlow has no op to compare with.
                continue
            yield Call(
                {
                    "tensor": _some(types, "T", 4, 5),
                    "indices": np.array(indices, types["Tindices"]),
                    "updates": values(updates, types["T"], 3, 1, 5),
                },
                {"reduction": reduction, "nd": nd},
            )


def _tensor_scatter(types: Types) -> Iterator[Call]:
    for indices, updates in (
        ([[2, 3], [0, 0], [2, 3]], (3,)),
        ([[1], [1]], (2, 5)),
        ([[[3, 1]], [[0, 4]]], (2, 1)),
        (np.zeros((0, 2)), (0,)),
    ):
        yield Call(
            {
                "tensor": _some(types, "T", 4, 5),
                "indices": np.array(indices, types["Tindices"]),
                "updates": values(updates, types["T"], 3, 1, 5),
            }
        )


def _scatter_nd(types: Types) -> Iterator[Call]:
    for call in _tensor_scatter(types):
        inputs = dict(call.inputs)
        del inputs["tensor"]
        yield Call({**inputs, "shape": _index(types, "Tindices", 4, 5)})


def _where(types: Types) -> Iterator[Call]:
    for i, shape in enumerate(SHAPES):
        low = 0 if types["T"] == np.bool_ else -2
        yield Call({"condition": np.round(_some(types, "T", *shape, seed=i, low=low) / 3)})


def _strided_slice_update(types: Types) -> Iterator[Call]:
    for begin, end, strides, value, masks in (
        ((0, 1), (3, 4), (1, 2), (3, 2), {}),
        ((0, 1), (3, 4), (1, 2), (2,), {}),
        ((2, 3), (0, 0), (-1, -2), (), {}),
        ((1, 2), (2, 3), (1, 1), (), {"shrink_axis_mask": 3}),
        ((1, 0), (0, 0), (1, 1), (3, 5), {"end_mask": 3}),
        ((0, 1), (3, 4), (1, 2), (1, 1, 3, 2), {}),
        ((0, 1), (3, 4), (1, 2), (1, 3, 1), {}),
        ((0, 1), (3, 4), (1, 2), (1, 2, 1), {}),
        ((0, 1), (3, 4), (1, 2), (3, 1, 2), {}),
        ((1, 2), (2, 3), (1, 1), (1, 1), {"shrink_axis_mask": 3}),
    ):
        yield Call(
            {
                "input": _some(types, "T", 4, 5),
                "begin": _index(types, "Index", *begin),
                "end": _index(types, "Index", *end),
                "strides": _index(types, "Index", *strides),
                "value": _some(types, "T", *value, seed=3),
            },
            masks,
        )


CALLS: Mapping[str, Callable[[Types], Iterator[Call]]] = {
    "Bitcast": _bitcast,
    "ClipByValue": _clip,
    "Cumprod": _cumulative,
    "Cumsum": _cumulative,
    "DynamicStitch": _dynamic_stitch,
    "GatherNd": _gather_nd,
    "Range": _range,
    "ScatterNd": _scatter_nd,
    "Select": _select,
    "SplitV": _split_v,
    "StridedSliceGrad": _strided_slice_grad,
    "TensorScatterAdd": _tensor_scatter,
    "TensorScatterMax": _tensor_scatter,
    "TensorScatterMin": _tensor_scatter,
    "TensorScatterSub": _tensor_scatter,
    "TensorScatterUpdate": _tensor_scatter,
    "TensorStridedSliceUpdate": _strided_slice_update,
    "TfpScatter": _scatter,
    "UnsortedSegmentSum": _segments,
    "Where": _where,
}
"""Calls by op."""
