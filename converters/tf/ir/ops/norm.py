"""Normalizations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from converters.tf.ir.graph import Op

__all__ = ["GroupNorm", "Norm", "NormKind", "Softmax"]


@dataclass(frozen=True)
class Softmax(Op):
    """Softmax along the last axis, or its logarithm: (x), f32.

    An element that is NaN or positive infinity is NaN and leaves 0 for all others of its row; then
    the whole row of the logarithm is NaN. A row of nothing but negative infinity is NaN.
    """

    log: bool = False


class NormKind(StrEnum):
    """Normalizations of rows."""

    LAYER = "layer"  # (x - mean) / sqrt(variance + epsilon)
    RMS = "rms"  # x / sqrt(mean(x^2) + epsilon)


@dataclass(frozen=True)
class Norm(Op):
    """Normalizes along the last axis: (x [..., C], scale [C]?, shift [C]?), f32."""

    kind: NormKind
    epsilon: float


@dataclass(frozen=True)
class GroupNorm(Op):
    """Normalizes groups of channels: (x [batch, ..., C], scale [C]?, shift [C]?), f32.

    Mean and variance of each example are taken over all positions and C / groups neighbouring
    channels.
    """

    groups: int
    epsilon: float
