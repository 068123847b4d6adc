"""Ops that are refused for what they are, in words that say more than their names."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf.lower.graph import Context, Handler, Result, Unsupported

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
        "StatelessRandomUniformFullIntV2",
        "StatelessRandomUniformIntV2",
        "StatelessTruncatedNormalV2",
        "TruncatedNormal",
    ),
    "boxes that overlap are suppressed": ("NonMaxSuppressionWithOverlaps",),
    "text that is cut, formatted or counted; give the model what comes of it": (
        "StringFormat",
        "StringLength",
        "StringToNumber",
        "Substr",
        "UnicodeTranscode",
        "UnsortedSegmentJoin",
    ),
    _OPEN_LENGTH: ("ListDiff",),
}


def _refused(reason: str) -> Handler:
    def handler(ctx: Context) -> Result:
        raise Unsupported(reason)

    return handler


OPS: dict[str, Handler] = {
    **{op: _refused(reason) for reason, names in _REASONS.items() for op in names},
}
