"""Calls that go to the ends of what an op takes, and beyond.

Made of the calls in the tables: arguments in the host's memory, such as axes and sizes, become
negative, out of range, of another rank; tensors get NaN, infinities and the limits of their type,
and shapes that do not fit each other; attributes get every value of a kind, and lists other
numbers and lengths. Where the CPU refuses, so has the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from tensorflow.python.framework import op_def_registry

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


def host_arguments(op: str, host: frozenset[str], calls: Iterable[Call]) -> Iterator[Call]:
    """Calls, each with one argument in the host's memory changed."""
    for call in calls:
        for name in sorted(host & call.inputs.keys()):
            value = call.inputs[name]
            if (op, name) in LEFT_OUT or isinstance(value, list):
                continue
            for other in _changed(name, value):
                yield Call({**call.inputs, name: other}, call.attributes)


_IGNORED = "the CPU's kernel computes as if they were 1"

FIXED: Mapping[tuple[str, str], str] = {
    ("DepthwiseConv2dNativeBackpropFilter", "dilations"): _IGNORED,
    ("DepthwiseConv2dNativeBackpropInput", "dilations"): _IGNORED,
    ("MaxPoolGrad", "ksize"): "the CPU's kernel ends the process for numbers below 1",
}
"""Attributes (op, name) that stay as they are, and what TensorFlow's CPU does otherwise."""

LENGTHS = frozenset(
    {
        ("AvgPoolGrad", "ksize"),
        ("Conv2DBackpropFilter", "strides"),
        ("Conv2DBackpropInput", "strides"),
        ("DepthwiseConv2dNativeBackpropFilter", "strides"),
        ("DepthwiseConv2dNativeBackpropInput", "strides"),
        ("MaxPool", "ksize"),
    }
)
"""Attributes (op, name) whose lists keep their length, and have no 0: the CPU's kernels end the
process otherwise. So do paddings of each op: oneDNN's kernels read 8 of them, whatever is there."""

_WINDOWS = frozenset({"ksize", "strides", "dilations", "padding", "explicit_paddings"})
_SLIDING = ("AvgPool", "Conv2D", "DepthwiseConv2d", "MaxPool")


def may_refuse(op: str, attribute: str) -> bool:
    """Returns whether the device may refuse a value of an attribute that the CPU takes.

    Pools and convolutions of the CPU pass over a number for the batch or the channels, one too
    many, and a gradient of another shape. `ResizeNearestNeighborGrad` takes two places of pixels
    at the same time, which `ResizeNearestNeighbor` refuses.
    """
    if op == "ResizeNearestNeighborGrad":
        return attribute in ("align_corners", "half_pixel_centers")
    return attribute in _WINDOWS and op.startswith(_SLIDING)


COUNTS = frozenset({"N", "num", "num_split"})
"""Attributes that say how many tensors there are."""


def free_attributes(op: str) -> list[Any]:
    """Returns what an op's definition says of its attributes that are neither types nor counts."""
    definition = op_def_registry.get(op)
    given = {
        name
        for argument in definition.input_arg
        for name in (argument.type_attr, argument.number_attr, argument.type_list_attr)
    }
    kinds = ("bool", "int", "float", "string", "list(int)")
    return [
        attr
        for attr in definition.attr
        if attr.type in kinds and attr.name not in given and (op, attr.name) not in FIXED
    ]


def _usual(attr: Any) -> Any:
    """Returns the value that an attribute has where a call gives none."""
    value = attr.default_value
    return {
        "bool": value.b,
        "int": value.i,
        "float": value.f,
        "string": value.s.decode(),
        "list(int)": list(value.list.i),
    }[attr.type]


def _other_ints(value: list[int]) -> Iterator[list[int]]:
    """Lists with one other number, shorter and longer ones."""
    for at, number in enumerate(value):
        for other in (number + 1, 0, -1):
            yield [*value[:at], other, *value[at + 1 :]]
    if value:
        yield [2 * number for number in value]
        yield value[::-1]
        yield value[:-1]
    yield [*value, 1]


def _other_values(op: str, attr: Any, value: Any) -> Iterator[Any]:
    """Other values of an attribute."""
    if attr.type == "bool":
        yield not value
    elif attr.type == "int":
        few = {-2, -1, 0, 1, 2, 7, value + 1, value - 1}
        ends = set() if attr.name in COUNTS else {2**31 - 1, -(2**31)}
        yield from sorted((few | ends) - {value})
    elif attr.type == "float":
        yield from (0.0, -1.0, 0.5, 1.0, float("inf"), float("nan"))
    elif attr.type == "string":
        names = {name.decode() for name in attr.allowed_values.list.s}
        yield from sorted((names | {"", "OTHER"}) - {value})
    else:
        keeps = (op, attr.name) in LENGTHS or attr.name == "explicit_paddings"
        for other in _other_ints(list(value)):
            if not keeps or (len(other) == len(value) and 0 not in other):
                yield other


def attributes(op: str, calls: Iterable[Call]) -> Iterator[Call]:
    """Calls, each with one attribute changed."""
    free = free_attributes(op)
    for call in calls:
        for attr in free:
            value = call.attributes.get(attr.name, _usual(attr))
            for other in _other_values(op, attr, value):
                yield Call(call.inputs, {**call.attributes, attr.name: other}, attr.name)
