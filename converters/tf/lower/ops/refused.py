"""Ops that are refused for what they are, in words that say more than their names."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from converters.tf import ir
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.ops.control import examples

_OPEN_LENGTH = "how many elements there are depends on their values"

_REASONS: Mapping[str, tuple[str, ...]] = {
    "random numbers": (
        "Multinomial",
        "ParameterizedTruncatedNormal",
        "RandomGamma",
        "RandomPoissonV2",
        "RandomShuffle",
        "RandomStandardNormal",
        "RandomUniform",
        "RandomUniformInt",
        "StatelessMultinomial",
        "StatelessRandomGammaV3",
        "StatelessRandomGetAlg",
        "StatelessRandomGetKeyCounter",
        "StatelessRandomNormalV2",
        "StatelessRandomUniformFullIntV2",
        "StatelessRandomUniformIntV2",
        "StatelessRandomUniformV2",
        "StatelessTruncatedNormalV2",
        "TruncatedNormal",
    ),
    "boxes that overlap are suppressed": ("NonMaxSuppressionWithOverlaps",),
    _OPEN_LENGTH: (
        "ListDiff",
        "Unique",
        "UniqueV2",
        "UniqueWithCounts",
        "UniqueWithCountsV2",
    ),
}


def _refused(reason: str) -> Handler:
    def handler(ctx: Context) -> Result:
        raise Unsupported(reason)

    return handler


def _where(ctx: Context) -> Result:
    """Returns the places of a known mask."""
    mask = ctx.value(0)
    if mask.data is None and mask.rank == 1:
        known = examples.of_each(ctx.build, mask)
        if known is not None and known.any():
            return examples.places(known)
    if mask.data is None:
        raise Unsupported(_OPEN_LENGTH)
    return ir.constant(np.argwhere(mask.data).astype(np.int64))


OPS: dict[str, Handler] = {
    **{op: _refused(reason) for reason, names in _REASONS.items() for op in names},
    "Where": _where,
}
