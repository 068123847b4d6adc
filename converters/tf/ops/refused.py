"""Ops that are refused for what they are, in words that say more than their names."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf.lower import Context, Handler, Result, Unsupported

_REASONS: Mapping[str, tuple[str, ...]] = {
    "random numbers": (
        "Multinomial",
        "ParameterizedTruncatedNormal",
        "RandomGammaV2",
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
    "boxes that overlap are suppressed": (
        "CombinedNonMaxSuppression",
        "NonMaxSuppression",
        "NonMaxSuppressionV2",
        "NonMaxSuppressionV3",
        "NonMaxSuppressionV4",
        "NonMaxSuppressionV5",
        "NonMaxSuppressionWithOverlaps",
    ),
    "how many elements there are depends on their values": (
        "ListDiff",
        "Unique",
        "UniqueV2",
        "UniqueWithCounts",
        "UniqueWithCountsV2",
        "Where",
    ),
}


def _refused(reason: str) -> Handler:
    def handler(ctx: Context) -> Result:
        raise Unsupported(reason)

    return handler


OPS: dict[str, Handler] = {
    op: _refused(reason) for reason, names in _REASONS.items() for op in names
}
