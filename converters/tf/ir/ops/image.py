"""Ops on images and on boxes in them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from converters.tf.ir.graph import Op

__all__ = ["Pool", "PoolKind", "Resize", "ResizeKind", "Suppress"]


class PoolKind(StrEnum):
    """What a pool keeps of its window."""

    MAX = "max"
    AVERAGE = "average"  # of the elements inside the input, not of the padding


@dataclass(frozen=True)
class Pool(Op):
    """Pools over one or two axes: (x [batch, *spatial, C]), f32. Padding as in `Conv`."""

    kind: PoolKind
    size: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]


class ResizeKind(StrEnum):
    """Interpolations."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"


@dataclass(frozen=True)
class Resize(Op):
    """Resizes images [batch, height, width, C] to the shape of the output: (x).

    Bilinear takes f32. With `align_corners` the outermost pixels meet; with `half_pixel` centers
    lie at halves. Never both.
    """

    kind: ResizeKind
    align_corners: bool = False
    half_pixel: bool = False


@dataclass(frozen=True)
class Suppress(Op):
    """Boxes chosen by their scores: (boxes [..., N, 4], scores [..., *classes, N], f32) -> i32.

    The result is [..., *classes, K]: places of boxes, the best score first, and -1 where no more
    are chosen. A chosen box suppresses those that overlap it. Boxes are two opposite corners;
    classes share theirs.

    Attributes:
        overlap: A box is suppressed if more than this part of its union with a chosen one is
            shared.
        score: Boxes have a higher score than this.
        in_order: Of equal scores the first comes first. Otherwise they come as they leave a binary
            heap in which scores alone are compared.
    """

    overlap: float
    score: float
    in_order: bool
