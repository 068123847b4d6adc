"""Ops of the graph on boxes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suppress:
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
