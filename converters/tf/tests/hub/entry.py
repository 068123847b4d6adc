"""A configuration of a model of KerasHub."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

WORDS: Final = 50
"""Words of a vocabulary."""
IMAGE: Final = (64, 64, 3)
"""An image's height, width and channels."""
_TOKENS: Final = 12
_SHAPES: Final[Mapping[str, tuple[int, ...]]] = {
    "decoder_padding_mask": (7,),
    "decoder_token_ids": (7,),
    "mask_positions": (3,),
}


@dataclasses.dataclass(frozen=True)
class Entry:
    """A small model.

    Attributes:
        make: Builds it.
        shapes: Shapes of the inputs, without the batch, of which it leaves dimensions open; the
            empty name is for an only input, and those of a sentence need not be named.
        refused: Whether tf2rust ought to refuse it.
    """

    make: Callable[[], Any]
    shapes: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    refused: bool = False

    def shape(self, name: str, given: tuple[int | None, ...]) -> tuple[int, ...]:
        """Returns the shape of an input without the batch.

        Args:
            name: The input's name.
            given: The shape that the model gives it, without the batch.
        """
        told = self.shapes.get(name) or self.shapes.get("") or _SHAPES.get(name) or ()
        # Numbers of tokens, where nothing is told.
        told += (_TOKENS,) * (len(given) - len(told))
        return tuple(
            size if known is None else known for known, size in zip(given, told, strict=True)
        )
