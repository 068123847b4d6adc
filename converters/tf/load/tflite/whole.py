"""What operators between int8 numbers have in common: scales, zero points, ends and factors.

Numbers of uint8 are int8 here, less 128, and so is what stands for 0 among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from converters.tf import ir
from converters.tf.ir import Array
from converters.tf.ir.ops.quantized import OFFSET, away
from converters.tf.load.saved_model.replay import Replay, Tensor
from converters.tf.load.tflite import file
from converters.tf.load.tflite.call import Call

# The least and the most of int8.
LOW, HIGH = -128, 127
# What makes numbers of each type int8.
_SHIFTS = {"int8": 0, "uint8": -OFFSET}
_I8, _F32 = ir.DType.I8, ir.DType.F32
# Operators whose results say that a file is meant to compute in whole numbers.
_PRODUCTS = frozenset(["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
# Between what real numbers fused activations leave results, by their number in the schema.
_BOUNDS = {0: (-math.inf, math.inf), 1: (0.0, math.inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}


class NotServed(Exception):  # noqa: N818 - it names a finding, not a failure of the program
    """There is no op in integers for an operator as it is."""


def is_whole(tensor: file.Tensor) -> bool:
    """Returns whether a tensor holds numbers of 8 bits that stand for real ones, by one scale."""
    found = tensor.quantization
    return (
        tensor.dtype in _SHIFTS
        and found is not None
        and found.scale.size == 1
        and float(found.scale[0]) > 0.0
        and LOW <= zero_of(tensor) <= HIGH
    )


def is_unsigned(tensor: file.Tensor) -> bool:
    """Returns whether a tensor's numbers are of uint8."""
    return tensor.dtype == "uint8"


def signed(data: Array) -> Array:
    """Returns numbers of 8 bits as int8, less 128 if they are of uint8."""
    return (data.astype(np.int16) + _SHIFTS[data.dtype.name]).astype(np.int8)


def from_unsigned(value: Tensor) -> Tensor:
    """Returns numbers of uint8 in the graph as int8, less 128."""
    return tf.cast(tf.cast(value, tf.int32) - OFFSET, tf.int8)


def to_unsigned(value: Tensor) -> Tensor:
    """Returns what `from_unsigned` has taken."""
    return tf.cast(tf.cast(value, tf.int32) + OFFSET, tf.uint8)


def computes_whole(model: file.Model) -> bool:
    """Returns whether a model of one subgraph multiplies numbers of 8 bits by such weights.

    Subgraphs that give variables their first values do not count.
    """
    first = {
        int(operator.options.get("initSubgraphIndex") or 0)
        for graph in model.subgraphs
        for operator in graph.operators
        if operator.kind == "CALL_ONCE"
    }
    graphs = [graph for number, graph in enumerate(model.subgraphs) if number not in first]
    if len(graphs) != 1:
        return False
    graph = graphs[0]
    return any(
        operator.kind in _PRODUCTS
        and all(is_whole(graph.tensors[i]) for i in (operator.inputs[0], *operator.outputs))
        and graph.tensors[operator.inputs[1]].data is not None
        and graph.tensors[operator.inputs[1]].dtype in _SHIFTS
        for operator in graph.operators
        if len(operator.inputs) > 1 and min(operator.inputs[:2]) >= 0
    )


def quantized(replay: Replay, value: Tensor, tensor: file.Tensor) -> Tensor:
    """Returns the int8 numbers of a tensor that stand for float32 ones."""
    return replay.typed(ir.Quantize(float(scale_of(tensor)), zero_of(tensor)), [value], _I8)


def dequantized(replay: Replay, value: Tensor, tensor: file.Tensor) -> Tensor:
    """Returns the float32 numbers that those of a tensor stand for."""
    return replay.typed(ir.Dequantize(float(scale_of(tensor)), zero_of(tensor)), [value], _F32)


@dataclass(frozen=True)
class Whole:
    """An operator between int8 numbers.

    Attributes:
        call: The operator; its operands that are int8 are so in the graph.
        tensors: What the file says of its operands; `None` for one that is missing.
    """

    call: Call
    tensors: Sequence[file.Tensor | None]

    def tensor(self, index: int) -> file.Tensor:
        """Returns what the file says of an operand.

        Raises:
            NotServed: It is missing.
        """
        found = self.tensors[index] if index < len(self.tensors) else None
        if found is None:
            raise NotServed
        return found

    def value(self, index: int) -> Tensor:
        """Returns an int8 operand in the graph.

        Raises:
            NotServed: It stands for no real numbers, or by several scales.
        """
        tensor = self.tensor(index)
        if not is_whole(tensor):
            raise NotServed
        if tensor.data is not None:
            return self.call.weight("constant", signed(tensor.data))
        return self.call.tensor(index)

    @property
    def result(self) -> file.Tensor:
        """Returns what the file says of the result.

        Raises:
            NotServed: It is not of int8.
        """
        if not is_whole(self.call.results[0]):
            raise NotServed
        return self.call.results[0]

    @property
    def ends(self) -> tuple[int, int]:
        """Returns the least and the most of the result after its fused activation.

        Raises:
            NotServed: The activation has no such ends.
        """
        kind = int(self.call.option("fusedActivationFunction"))
        if kind not in _BOUNDS:
            raise NotServed
        return ends_of(self.result, *_BOUNDS[kind])

    def emit(self, op: ir.Op, *operands: Tensor) -> Tensor:
        """Returns the int8 result of an op."""
        return self.call.replay.typed(op, operands, _I8)


def scale_of(tensor: file.Tensor) -> np.float32:
    """Returns the scale of a tensor of int8 numbers."""
    assert tensor.quantization is not None
    return np.float32(tensor.quantization.scale[0])


def zero_of(tensor: file.Tensor) -> int:
    """Returns what stands for 0 in a tensor of numbers of 8 bits, as int8."""
    assert tensor.quantization is not None
    return int(tensor.quantization.zero_point[0]) + _SHIFTS[tensor.dtype]


def _rounded(x: np.float32) -> int:
    return int(away(np.asarray(x, np.float32)))


def ends_of(tensor: file.Tensor, least: float, most: float) -> tuple[int, int]:
    """Returns the int8 numbers that stand for two ends of real ones, or the ends of int8."""
    scale, zero = scale_of(tensor), zero_of(tensor)
    low = LOW if math.isinf(least) else zero + _rounded(np.float32(least) / scale)
    high = HIGH if math.isinf(most) else zero + _rounded(np.float32(most) / scale)
    return max(LOW, low), min(HIGH, high)


def factor(number: float) -> tuple[int, int]:
    """Returns a number as one of 31 bits and a power of two, for `scaled`.

    Raises:
        NotServed: It is 2^30 or more.
    """
    part, shift = math.frexp(number)
    whole = math.floor(part * (1 << 31) + 0.5)
    if whole == 1 << 31:
        whole, shift = whole // 2, shift + 1
    if shift > 30:
        raise NotServed
    return (0, 0) if shift < -31 else (whole, shift)


Handler: TypeAlias = Callable[[Whole], Any]
