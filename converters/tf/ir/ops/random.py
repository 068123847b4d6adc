"""Random numbers that a seed decides, equal to those of TensorFlow's stateless ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands
from converters.tf.ir.types import INTEGERS, SINGLE, unserved
from converters.tf.ir.values import Array

__all__ = ["Distribution", "Random"]

# Philox 4x32-10. Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
# The key by which TensorFlow scrambles a seed.
_SCRAMBLER = (0x3EC8F720, 0x02461E29)
_WORD = (1 << 32) - 1
# Numbers of a block.
_BLOCK = 4


class Distribution(StrEnum):
    """How random bits become floats."""

    NORMAL = "normal"
    UNIFORM = "uniform"


@dataclass(frozen=True)
class Random(Op):
    """Random f32 of a distribution: (seed i32 or i64 [2]).

    Uniform ones are at least 0 and below 1, normal ones have mean 0 and deviation 1. The elements
    of the result follow each other in the order of the stream.
    """

    distribution: Distribution

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the numbers."""
        first, second = (int(seed) & ((1 << 64) - 1) for seed in x[0])
        ((a, b, c, d),) = _blocks(_SCRAMBLER, first | second << 64, 1)
        count = int(np.prod(shape))
        words = _blocks((int(a), int(b)), int(c) << 64 | int(d) << 96, -(-count // _BLOCK))
        floats = (words & 0x7FFFFF).astype(np.float64) / (1 << 23)
        if self.distribution is Distribution.NORMAL:
            size = np.sqrt(-2.0 * np.log(np.maximum(floats[:, ::2], 1e-7)))
            turn = 2.0 * np.pi * floats[:, 1::2]
            floats = np.stack([np.sin(turn) * size, np.cos(turn) * size], 2)
        return [floats.ravel()[:count].reshape(shape)]

    def refused(self, node: Node) -> list[str]:
        """Returns whether the types of the seed and of the numbers are served."""
        found = unserved("seeds", node.input.dtype, INTEGERS)
        return [*found, *unserved("random numbers", node.output.dtype, SINGLE)]


def _blocks(key: Sequence[int], counter: int, count: int) -> Array:
    """Returns blocks of four words, at a position of a stream and those after it."""
    low = counter & _WORD
    words = [np.full(count, counter >> 32 * i & _WORD, np.uint64) for i in range(_BLOCK)]
    words[0] = np.uint64(low) + np.arange(count, dtype=np.uint64)
    keys = list(key)
    mask, half = np.uint64(_WORD), np.uint64(32)
    for _ in range(_ROUNDS):
        one, two = (w * np.uint64(m) for w, m in zip(words[::2], _MULTIPLIERS, strict=True))
        words = [
            two >> half ^ words[1] ^ np.uint64(keys[0]),
            two & mask,
            one >> half ^ words[3] ^ np.uint64(keys[1]),
            one & mask,
        ]
        keys = [(k + w) & _WORD for k, w in zip(keys, _WEYL, strict=True)]
    return np.stack(words, 1)
