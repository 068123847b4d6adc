"""Weights rounded to numbers of fewer bits, so that a crate's file of them gets smaller.

What reads them still computes in float32: `emit/stored.py` writes what is left of the rounded
numbers, and the crate reads them back bit for bit. `dynamic.py` is for products of int8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

import numpy as np

from converters.tf import ir

# Constants of fewer elements stay as they are: biases, scales, numbers.
_LEAST_ELEMENTS = 256
# Columns of fewer elements than this are not worth a factor each: filters of single channels.
_LEAST_ROWS = 32
# The largest number of a signed byte, whose negative is one as well.
_LARGEST = 127
# Significant bits of a factor, so that its products with signed bytes are exact.
_FACTOR_BITS = 16


class WeightType(StrEnum):
    """What the elements of large weights are rounded to."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"


def rounded(graph: ir.Graph, kind: WeightType) -> ir.Graph:
    """Returns a graph that computes with rounded weights.

    Large float32 constants of two or more axes are rounded to IEEE 754 binary16 unless one of their
    elements is too large for it; with `INT8`, those with 32 rows or more are rounded to signed
    bytes, times a factor for each column (the last axis).
    """
    if kind is WeightType.FLOAT32:
        return graph
    known: dict[ir.Value, ir.Value] = {}

    def of(value: ir.Value) -> ir.Value:
        if value not in known:
            known[value] = _rounded(value, kind)
        return known[value]

    return _with(graph, of)


def _with(graph: ir.Graph, of: Callable[[ir.Value], ir.Value]) -> ir.Graph:
    nodes = []
    for node in graph.nodes:
        op = node.op
        if isinstance(op, ir.Loop):
            op = replace(op, body=_with(op.body, of))
        inputs = tuple(None if v is None else of(v) for v in node.inputs)
        nodes.append(replace(node, op=op, inputs=inputs))
    outputs = tuple(replace(port, value=of(port.value)) for port in graph.outputs)
    return replace(graph, nodes=tuple(nodes), outputs=outputs)


def _rounded(value: ir.Value, kind: WeightType) -> ir.Value:
    data = value.data
    if data is None or value.dtype is not ir.DType.F32:
        return value
    if not is_large(data):
        return value
    if kind is WeightType.INT8:
        parts = as_bytes(data)
        if parts is not None:
            return replace(value, data=of_bytes(*parts).reshape(data.shape))
    with np.errstate(over="ignore"):
        near = data.astype(np.float16).astype(np.float32)
    return replace(value, data=near) if np.isfinite(near).all() else value


def is_large(data: ir.Array) -> bool:
    """Returns whether weights are worth rounding: two or more axes, and many elements."""
    return data.ndim >= 2 and data.size >= _LEAST_ELEMENTS


def as_bytes(data: ir.Array) -> tuple[ir.Array, ir.Array] | None:
    """Returns the nearest signed bytes and a factor for each column, if that is worth it.

    Numbers that are such products already give the same products, and columns of small integers, as
    quantized models have them, stay as they are.

    Args:
        data: float32 with two axes or more; the last one is that of the columns.

    Returns:
        int8 `[rows, columns]` and float32 `[columns]`; `None` for few rows, and for columns of
        which the largest number is not finite or is so small that its factor would be none.
    """
    table = data.reshape(-1, data.shape[-1])
    if len(table) < _LEAST_ROWS or not table.size:
        return None
    largest = np.abs(table).max(axis=0).astype(np.float64)
    if not np.isfinite(largest).all():
        return None
    mantissa, exponent = np.frexp(largest / _LARGEST)
    bits = np.ceil(mantissa * 2**_FACTOR_BITS)
    factors = np.ldexp(bits, exponent - _FACTOR_BITS)
    if (factors[largest > 0] < np.finfo(np.float32).tiny).any():
        return None
    whole_already = (largest <= _LARGEST) & (table == np.rint(table)).all(axis=0)
    factors[whole_already] = 1.0
    whole = np.rint(table / factors).astype(np.int8)
    return whole, factors.astype(np.float32)


def of_bytes(whole: ir.Array, factors: ir.Array) -> ir.Array:
    """Returns the products of signed bytes and the factors of their columns, in float32."""
    return np.asarray(whole.astype(np.float32) * factors)
