"""Inputs and attributes for every op that the device has kernels for.

An op that is in no table here gets generic inputs: one array per tensor argument, all of one shape.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of an op.

    Attributes:
        inputs: Arrays by argument name; a list for a list argument.
        attributes: Attributes that are not given by the inputs.
        changed: The attribute that another call has otherwise, or empty.
    """

    inputs: Mapping[str, Array | list[Array]]
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    changed: str = ""


SHAPES: tuple[tuple[int, ...], ...] = (
    (),
    (0,),
    (1,),
    (7,),
    (33, 5),
    (2, 0, 3),
    (2, 3, 4, 5),
    (2, 1, 2, 1, 3, 1, 2, 2),
    (1031,),
)
"""Shapes of rank 0 to 8, with empty ones and ones that fill no vector register evenly."""

BROADCASTS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), (5,)),
    ((4, 1, 3), (5, 1)),
    ((2, 3), (2, 3)),
    ((1, 0), (4, 1)),
    ((2, 1, 2, 1, 2, 1, 2, 1), (1, 2, 1, 2, 1, 2, 1, 2)),
    ((257,), (1,)),
)


def values(
    shape: tuple[int, ...], dtype: np.dtype[Any], seed: int, low: float, high: float
) -> Array:
    """Returns values between `low` and `high`, for integers within the type's range."""
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return np.asarray(rng.integers(0, 2, size=shape), dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        first, last = max(int(np.floor(low)), int(info.min)), min(int(np.ceil(high)), int(info.max))
        return np.asarray(rng.integers(first, last, size=shape, endpoint=True), dtype)
    return np.asarray(rng.uniform(low, high, size=shape)).astype(dtype)


def special(dtype: np.dtype[Any]) -> Array:
    """Returns the ends of a type, and what lies between."""
    if dtype.kind == "b":
        return np.array([False, True], dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, info.min + 1, 0, 1, 2, 7, info.max - 1, info.max], dtype)
    few = [0, -0.0, 1, -1, 0.5, -2, 7, 30, np.inf, -np.inf, np.nan]
    return np.array(few).astype(dtype)


RANGES: Mapping[str, tuple[float, float]] = {
    "Acos": (-1, 1),
    "Acosh": (1, 9),
    "Asin": (-1, 1),
    "Atanh": (-0.9, 0.9),
    "Log": (0.01, 20),
    "Log1p": (-0.9, 20),
    "Rsqrt": (0.01, 20),
    "Sqrt": (0, 20),
    "Xlogy": (0.01, 5),
    "Xlog1py": (0.01, 5),
    "Pow": (0, 4),
}
"""Where the arguments of an op lie that is not defined, or not well conditioned, everywhere."""

NON_ZERO_DIVISORS = frozenset(
    {"Div", "FloorDiv", "FloorMod", "Mod", "RealDiv", "TruncateDiv", "TruncateMod"}
)
"""Ops whose second argument must not be 0 for integers."""

BINARY = frozenset(
    {
        "Add", "AddV2", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "DivNoNan",
        "Equal", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "Less", "LessEqual",
        "LogicalAnd", "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "NotEqual",
        "Pow", "RealDiv", "SquaredDifference", "Sub", "TruncateDiv", "TruncateMod", "Xdivy",
        "Xlog1py", "Xlogy",
    }
)  # fmt: skip
"""Ops whose two arguments broadcast."""

REDUCTIONS = frozenset({"All", "Any", "Max", "Mean", "Min", "Prod", "Sum"})

TOLERANCES: Mapping[str, float] = {
    "BiasAddGrad": 1e-5,
    "Conv2D": 1e-5,
    "Conv2DBackpropFilter": 1e-5,
    "Conv2DBackpropInput": 1e-5,
    "Conv3D": 1e-5,
    "Conv3DBackpropFilterV2": 1e-5,
    "Conv3DBackpropInputV2": 1e-5,
    "MatMul": 1e-5,
    "Cumprod": 1e-5,
    "Cumsum": 1e-5,
    "DepthwiseConv2dNative": 1e-5,
    "DepthwiseConv2dNativeBackpropFilter": 1e-5,
    "DepthwiseConv2dNativeBackpropInput": 1e-5,
    "FusedBatchNorm": 1e-5,
    "FusedBatchNormGrad": 1e-5,
    "FusedBatchNormGradV2": 1e-5,
    "FusedBatchNormGradV3": 1e-5,
    "FusedBatchNormV2": 1e-5,
    "FusedBatchNormV3": 1e-5,
    "Mean": 1e-5,
    "Prod": 1e-5,
    "Sum": 1e-5,
    "TfpFusedConv2D": 1e-5,
    "TfpFusedMatMul": 1e-5,
}
"""Largest error relative to `max(1, |expected|)` for ops that add up many terms in float32."""

OUTPUTS: Mapping[str, int] = {
    "CudnnRNN": 3,
    "CudnnRNNV2": 3,
    "CudnnRNNV3": 3,
    "FusedBatchNormGrad": 3,
    "FusedBatchNormGradV2": 3,
    "FusedBatchNormGradV3": 3,
    "FusedBatchNormV3": 5,
}
"""How many of an op's outputs mean something; the rest is for TensorFlow's own GPU."""


def told(op: str, attributes: Mapping[str, Any]) -> int | None:
    """Returns how many outputs of a call mean something; None if all of them do."""
    if (
        op.startswith("FusedBatchNorm")
        and "Grad" not in op
        and not attributes.get("is_training", True)
    ):
        # Some of the CPU's kernels leave what is for the gradient as the memory was.
        return 3
    return OUTPUTS.get(op)


EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("Round", "int64"): "TensorFlow's CPU kernel gives 0 for every integer",
}
"""Kernels (op, type) that may differ from the CPU's, and why."""

DEFAULT_TOLERANCE = 2e-6
"""The same for all other ops."""


def elementwise(op: str, arguments: list[str], dtype: np.dtype[Any]) -> Iterator[Call]:
    """Calls with arguments of one shape."""
    low, high = RANGES.get(op, (-5, 5))
    for i, shape in enumerate(SHAPES):
        yield Call(
            {name: values(shape, dtype, 10 * i + j, low, high) for j, name in enumerate(arguments)}
        )


def binary(op: str, dtype: np.dtype[Any]) -> Iterator[Call]:
    """Calls with arguments that broadcast."""
    low, high = RANGES.get(op, (-5, 5))
    for i, pair in enumerate([*((s, s) for s in SHAPES), *BROADCASTS]):
        x, y = (values(shape, dtype, 10 * i + j, low, high) for j, shape in enumerate(pair))
        if op in NON_ZERO_DIVISORS:
            y = np.where(y == 0, np.ones((), dtype), y)
        yield Call({"x": x, "y": y})


def reduction(dtype: np.dtype[Any], index: np.dtype[Any]) -> Iterator[Call]:
    """Calls over every kind of axes."""
    for i, shape in enumerate(SHAPES):
        rank = len(shape)
        some = ((), tuple(range(rank)), (0,)[:rank], (rank - 1,)[:rank], (0, 2)[: max(rank - 2, 0)])
        for axes in dict.fromkeys(some):
            for keep_dims in (False, True):
                yield Call(
                    {"input": values(shape, dtype, i, -2, 2), "axis": np.array(axes, index)},
                    {"keep_dims": keep_dims},
                )
    for axes in ((0, 0), (-1, 1), (2,), (-3,)):
        yield Call({"input": values((3, 4), dtype, 0, -2, 2), "axis": np.array(axes, index)})
    for axes in ((0,), (1,), (0, 1)):
        x = np.random.default_rng(0).choice(special(dtype), (6, 7))
        if dtype.kind == "f":
            yield Call({"input": x, "axis": np.array(axes, index)})
