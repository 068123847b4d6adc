"""Normalizations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from converters.tf.ir.graph import Op
from converters.tf.ir.operands import Operands
from converters.tf.ir.ops.functions import affine
from converters.tf.ir.values import Array, Shape

__all__ = ["GroupNorm", "Norm", "NormKind", "Softmax"]


@dataclass(frozen=True)
class Softmax(Op):
    """Softmax along the last axis, or its logarithm: (x), f32.

    An element that is NaN or positive infinity is NaN and leaves 0 for all others of its row; then
    the whole row of the logarithm is NaN. A row of nothing but negative infinity is NaN.
    """

    log: bool = False

    single = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of x."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns TensorFlow's on the CPU, in which NaN and infinity leave 0 for their row."""
        data = x.wide()[0]
        least = np.finfo(data.dtype).min
        top = np.fmax.reduce(data, axis=-1, keepdims=True, initial=least)
        shifted = data - top
        weights = np.where(np.isnan(shifted), np.inf, np.exp(shifted))
        total = np.sum(weights, axis=-1, keepdims=True)
        if self.log:
            return [np.where(np.isinf(total), np.nan, shifted - np.log(total))]
        return [weights / total]


class NormKind(StrEnum):
    """Normalizations of rows."""

    LAYER = "layer"  # (x - mean) / sqrt(variance + epsilon)
    RMS = "rms"  # x / sqrt(mean(x^2) + epsilon)


@dataclass(frozen=True)
class Norm(Op):
    """Normalizes along the last axis: (x [..., C], scale [C]?, shift [C]?), f32."""

    kind: NormKind
    epsilon: float

    single = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of x."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the normalized rows."""
        x = x.wide()
        data = x[0]
        if self.kind is NormKind.LAYER:
            data = data - np.mean(data, axis=-1, keepdims=True)
        data = data / np.sqrt(np.mean(data * data, axis=-1, keepdims=True) + self.epsilon)
        return [affine(data, x.get(1), x.get(2))]


@dataclass(frozen=True)
class GroupNorm(Op):
    """Normalizes groups of channels: (x [batch, ..., C], scale [C]?, shift [C]?), f32.

    Mean and variance of each example are taken over all positions and C / groups neighbouring
    channels.
    """

    groups: int
    epsilon: float

    single = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of x."""
        return (x[0],)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the normalized groups."""
        x = x.wide()
        data = x[0]
        grouped = data.reshape(data.shape[0], -1, self.groups, data.shape[-1] // self.groups)
        grouped = grouped - np.mean(grouped, axis=(1, 3), keepdims=True)
        variance = np.mean(grouped * grouped, axis=(1, 3), keepdims=True)
        result = (grouped / np.sqrt(variance + self.epsilon)).reshape(data.shape)
        return [affine(result, x.get(1), x.get(2))]
