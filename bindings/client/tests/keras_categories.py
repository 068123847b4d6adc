"""Random layers over numbers of categories."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from bindings.client.tests.keras_draws import Case, Random, flag, pick

k = keras.layers
# What real numbers become before layers that take integers: from 0 to 5.
_BOUNDARIES = [-1.0, -0.4, 0.0, 0.4, 1.0]


def _joined(shape: tuple[int, ...], encode: Any, is_vector: bool, depth: int) -> Case:
    """The numbers themselves beside what their categories become."""
    flat, together = k.Flatten(), k.Concatenate()
    vectors = k.Embedding(depth, 3)

    def layers(x: Any) -> Any:
        y = encode(x)
        return together([x, flat(y if is_vector else vectors(y))])

    return [shape], layers


def hashed(r: Random) -> Case:
    """Bins of numbers by their hash."""
    mode = str(pick(r, "int", "one_hot", "multi_hot", "count"))
    # Keras' shape of one-hot vectors is wrong for several numbers of a sample.
    shape = (1,) if mode == "one_hot" else pick(r, (1,), (3,), (6,))
    bins = int(r.integers(1, 6))
    layer = k.Hashing(
        bins,
        mask_value=pick(r, None, 2),
        salt=pick(r, None, 7, [3, 11]),
        output_mode=mode,
    )
    before = k.Discretization(_BOUNDARIES) if flag(r) else k.Rescaling(3.0)
    return _joined(shape, lambda x: layer(before(x)), mode != "int", bins)


def crossed(r: Random) -> Case:
    """Bins of combinations of numbers."""
    mode, bins = str(pick(r, "int", "one_hot")), int(r.integers(1, 9))
    layer, binned = k.HashedCrossing(bins, output_mode=mode), k.Discretization(_BOUNDARIES)
    flat, together, vectors = k.Flatten(), k.Concatenate(), k.Embedding(bins, 3)

    def layers(*x: Any) -> Any:
        y = layer([binned(one) for one in x])
        return together([*x, flat(y if mode == "one_hot" else vectors(y))])

    return [(1,)] * 2, layers


def listed(r: Random) -> Case:
    """Places of numbers in a vocabulary, and the other way round."""
    mode = str(pick(r, "int", "int", "one_hot", "multi_hot", "count"))
    shape = pick(r, (1,), (3,), (6,))
    known = [int(one) for one in r.permutation(6)[: int(r.integers(1, 6))]]
    mask = pick(r, None, 5 if 5 not in known else None)
    unknown = int(r.integers(1, 4))
    is_hashed, is_padded = flag(r), flag(r)
    common: dict[str, Any] = {
        "num_oov_indices": unknown,
        "mask_token": mask,
        "oov_method": "farmhash" if is_hashed else "floormod",
        "salt": pick(r, None, 5) if is_hashed else None,
        "max_tokens": 12 if is_padded else None,
        "pad_to_max_tokens": is_padded,
    }
    is_adapted = flag(r)
    layer = k.IntegerLookup(vocabulary=None if is_adapted else known, output_mode=mode, **common)
    if is_adapted:
        layer.adapt(np.array(known * 2))
    binned = k.Discretization(_BOUNDARIES)
    if mode != "int":
        return _joined(shape, lambda x: layer(binned(x)), True, 12)
    back = k.IntegerLookup(vocabulary=known, invert=True, oov_token=7, **common)
    if not flag(r):
        return _joined(shape, lambda x: layer(binned(x)), False, 12)
    # An embedding takes no negative numbers: there are none but masks, of which none is drawn.
    return _joined(shape, lambda x: back(layer(binned(x))), False, 12)


def reversible(r: Random) -> Case:
    """An embedding, and logits by its table."""
    width = int(r.integers(2, 5))
    layer = k.ReversibleEmbedding(
        6,
        width,
        tie_weights=flag(r),
        mask_zero=flag(r),
        logit_soft_cap=pick(r, None, 0.5),
        reverse_dtype=pick(r, None, "float32", "float64"),
        embeddings_regularizer=pick(r, None, "l2"),
        embeddings_constraint=pick(r, None, "max_norm"),
    )
    binned, inner = k.Discretization(_BOUNDARIES), k.LSTM(width, return_sequences=True)
    twice = flag(r)

    def layers(x: Any) -> Any:
        words = inner(layer(binned(x)))
        logits = layer(words, reverse=True)
        return [logits, layer(k.Activation("tanh")(words), reverse=True)] if twice else logits

    return [(5,)], layers


def piped(r: Random) -> Case:
    """Layers without weights, as one layer."""
    parts = [
        k.Rescaling(0.5, offset=float(r.normal())),
        k.CenterCrop(4, int(r.integers(3, 6))),
        k.Resizing(int(r.integers(3, 6)), 5),
    ]
    chosen = [part for part in parts if flag(r)]
    return [(6, 7, 2)], k.Pipeline(chosen or parts[:1])
