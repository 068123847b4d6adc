"""Calls that go to the ends of what an op takes, and beyond.

Made of the calls in the tables: arguments in the host's memory, such as axes and sizes, become
negative, out of range, of another rank; tensors get NaN, infinities and the limits of their type,
and shapes that do not fit each other. Where the CPU refuses, so has the device.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tests.conformance.cases import Array, Call, special

AXES = frozenset({"axis", "dimension", "reduction_indices", "split_dim", "perm", "shift"})
"""Arguments that can be any number without making an output large."""

LEFT_OUT: Mapping[tuple[str, str], str] = {
    ("AvgPoolGrad", "orig_input_shape"): "the shape is read as a vector, whatever its rank",
    ("Conv2DBackpropFilter", "filter_sizes"): "oneDNN's kernel ends the process",
    ("Conv2DBackpropInput", "input_sizes"): "oneDNN's kernel ends the process",
    ("Conv3DBackpropFilterV2", "filter_sizes"): "the reference takes it apart",
    ("Conv3DBackpropInputV2", "input_sizes"): "the reference takes it apart",
    ("DepthwiseConv2dNativeBackpropFilter", "filter_sizes"): "oneDNN's kernel ends the process",
    ("DepthwiseConv2dNativeBackpropInput", "input_sizes"): "oneDNN's kernel ends the process",
}
"""Arguments (op, name) that stay as they are, and what TensorFlow's CPU does otherwise."""

TRAPS = frozenset({"Div", "FloorDiv", "FloorMod", "Mod", "RealDiv", "TruncateDiv", "TruncateMod"})
"""Ops whose CPU kernel ends the process for the smallest integer and -1."""

NO_NAN: Mapping[str, str] = {
    "Softmax": "TensorFlow's CPU kernel makes NaN of some of a row's elements, by their places",
}
"""Ops that get no NaN, and why."""

CALLS = 4
"""Calls of an op that are changed."""

MISFITS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((2, 3), (3,)),
    ((2, 3), (6,)),
    ((6,), (2, 3)),
    ((4, 1), (4,)),
    ((3,), (1,)),
    ((), (1,)),
    ((2,), (3,)),
)
"""Pairs of shapes that some ops broadcast, some count, and some refuse."""


def elementwise(op: str, arguments: list[str], dtype: np.dtype[Any]) -> Iterator[Call]:
    """Every special value, with every other one, and shapes that do not fit each other."""
    ends = special(dtype)
    if op in NO_NAN:
        ends = ends[~np.isnan(ends.astype(np.float64))]
    grids = list(np.meshgrid(*[ends] * len(arguments)))
    if op in TRAPS and dtype.kind in "iu":
        divisor = grids[1]
        grids[1] = np.where((divisor == 0) | (divisor.astype(np.float64) == -1), 3, divisor)
        grids[1] = grids[1].astype(dtype)
    yield Call(dict(zip(arguments, grids, strict=True)))
    if len(arguments) == 2:
        for shapes in MISFITS:
            ones = [np.ones(shape, dtype) for shape in shapes]
            yield Call(dict(zip(arguments, ones, strict=True)))


def _changed(name: str, value: Array) -> Iterator[Array]:
    """Other values of an argument in the host's memory."""
    dtype = value.dtype
    if dtype.kind == "f":
        for other in (0, -1, 0.1, 1.1, np.nan, np.inf):
            yield np.full_like(value, other)
    elif dtype.kind in "iu":
        if dtype.kind == "i":
            yield np.full_like(value, -1)
            yield np.full_like(value, -2)
            yield -value - np.ones((), dtype)
        yield value + np.ones((), dtype)
        if name in AXES:
            # TensorFlow cuts an axis to 32 bits.
            yield np.full_like(value, 2**31 - 1)
            yield np.full_like(value, -(2**31))
    yield value.reshape(1, *value.shape)
    if value.ndim == 1:
        yield value[:-1]
        if value.size == 1:
            yield value.reshape(())


def host_arguments(op: str, host: frozenset[str], calls: Iterator[Call]) -> Iterator[Call]:
    """The first calls, each with one argument in the host's memory changed."""
    for call in itertools.islice(calls, CALLS):
        for name in sorted(host & call.inputs.keys()):
            value = call.inputs[name]
            if (op, name) in LEFT_OUT or isinstance(value, list):
                continue
            for other in _changed(name, value):
                yield Call({**call.inputs, name: other}, call.attributes)
