"""Layers of KerasHub between an input and an output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import keras
from keras_hub import layers

from converters.tf.tests.hub.entry import WORDS, Entry


def _around(body: Callable[..., Any], *inputs: Any, refused: bool = False) -> Entry:
    """Returns a model of layers; each input is a shape, of integers if it is in a list."""

    def make() -> Any:
        made = [
            keras.Input(*given, dtype="int32") if isinstance(given, list) else keras.Input(given)
            for given in inputs
        ]
        return keras.Model(made if len(made) > 1 else made[0], body(*made))

    return Entry(make, refused=refused)


def _reversed(tokens: Any) -> Any:
    embedding = layers.ReversibleEmbedding(WORDS, 8)
    return embedding(embedding(tokens), reverse=True)


def _masked_head(sentence: Any, positions: Any) -> Any:
    return layers.MaskedLMHead(vocabulary_size=WORDS)(sentence, mask_positions=positions)


ENTRIES: Final = {
    "AlibiBias": _around(lambda scores: layers.AlibiBias()(scores), (4, 8, 8)),
    "MaskedLMHead": _around(_masked_head, (12, 6), [(3,)]),
    "ReversibleEmbedding": _around(_reversed, [(8,)]),
    "RotaryEmbedding": _around(lambda heads: layers.RotaryEmbedding()(heads), (8, 4, 6)),
    "SinePositionEncoding": _around(
        lambda sentence: layers.SinePositionEncoding()(sentence), (8, 6)
    ),
    "StartEndPacker": _around(
        lambda tokens: layers.StartEndPacker(12, 1, 2)(tokens), [(8,)], refused=True
    ),
    "TransformerDecoder": _around(
        lambda made, read: layers.TransformerDecoder(16, 2)(made, read), (8, 8), (5, 8)
    ),
    "TransformerEncoder": _around(
        lambda sentence: layers.TransformerEncoder(16, 2, normalize_first=True)(sentence), (8, 8)
    ),
}
