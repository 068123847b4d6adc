"""Whole models of every kind, small enough to be quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import layers


def mlp() -> Any:
    """Dense layers with batch norm and dropout, as a Sequential."""
    return keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(16, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.2),
            layers.Dense(4, activation="softmax"),
        ],
        name="mlp",
    )


def text_cnn() -> Any:
    """Embedding and convolutions of several widths over words."""
    words = keras.Input((20,), dtype="int32", name="words")
    x = layers.Embedding(30, 8)(words)
    parts = []
    for width in (2, 3, 4):
        y = layers.Conv1D(6, width, activation="relu")(x)
        parts.append(layers.GlobalMaxPooling1D()(y))
    x = layers.Dropout(0.5)(layers.Concatenate()(parts))
    return keras.Model(words, layers.Dense(2, activation="softmax")(x), name="text_cnn")


def mobile_block() -> Any:
    """An inverted residual block with squeeze and excitation."""
    image = keras.Input((16, 16, 3))
    x = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(image)
    x = y = layers.Activation("hard_silu")(layers.BatchNormalization()(x))
    y = layers.BatchNormalization()(layers.Conv2D(16, 1, use_bias=False)(y))
    y = layers.ReLU(6.0)(y)
    y = layers.DepthwiseConv2D(3, padding="same", use_bias=False)(y)
    y = layers.ReLU(6.0)(layers.BatchNormalization()(y))
    s = layers.GlobalAveragePooling2D(keepdims=True)(y)
    s = layers.Conv2D(4, 1, activation="relu")(s)
    s = layers.Conv2D(16, 1, activation="hard_sigmoid")(s)
    y = layers.Multiply()([y, s])
    y = layers.BatchNormalization()(layers.Conv2D(8, 1, use_bias=False)(y))
    x = layers.Add()([x, y])
    return keras.Model(image, layers.Dense(3)(layers.Flatten()(x)), name="mobile_block")


def unet() -> Any:
    """Down and up again with skip connections."""
    image = keras.Input((16, 16, 3), name="image")
    skips, x = [], image
    for filters in (4, 8):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.BatchNormalization()(x)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    x = layers.Conv2DTranspose(8, 2, strides=2, padding="same")(x)
    x = layers.Concatenate()([x, skips[1]])
    x = layers.UpSampling2D(interpolation="bilinear")(x)
    x = layers.Concatenate()([x, skips[0]])
    mask = layers.Conv2D(1, 1, activation="sigmoid", name="mask")(x)
    return keras.Model(image, mask, name="unet")


def siamese() -> Any:
    """One tower used twice."""
    tower = keras.Sequential(
        [keras.Input((10,)), layers.Dense(8, activation="relu"), layers.Dense(4)], name="tower"
    )
    left, right = keras.Input((10,), name="left"), keras.Input((10,), name="right")
    apart = keras.ops.abs(tower(left) - tower(right))
    return keras.Model([left, right], layers.Dense(1, activation="sigmoid")(apart), name="siamese")


def wide_and_deep() -> Any:
    """Inputs of three types, outputs by name."""
    number = keras.Input((3,), name="number")
    kind = keras.Input((2,), dtype="int32", name="kind")
    day = keras.Input((1,), dtype="int64", name="day")
    parts = [layers.Flatten()(layers.Embedding(9, 4)(kind))]
    parts.append(layers.Flatten()(layers.Embedding(7, 2)(day)))
    x = layers.Dense(8, activation="relu")(layers.Concatenate()([number, *parts]))
    wide = layers.Dense(1)(number)
    outputs = {
        "price": layers.Add()([layers.Dense(1)(x), wide]),
        "class": layers.Dense(3, activation="softmax")(x),
    }
    return keras.Model({"number": number, "kind": kind, "day": day}, outputs, name="wide_and_deep")


def causal_stack() -> Any:
    """Gated, dilated, causal convolutions with skip connections."""
    sound = keras.Input((40, 1))
    x = layers.Conv1D(6, 2, padding="causal")(sound)
    skips = []
    for rate in (1, 2, 4, 8):
        tanh = layers.Conv1D(6, 2, dilation_rate=rate, padding="causal", activation="tanh")(x)
        gate = layers.Conv1D(6, 2, dilation_rate=rate, padding="causal", activation="sigmoid")(x)
        y = layers.Conv1D(6, 1)(layers.Multiply()([tanh, gate]))
        skips.append(y)
        x = layers.Add()([x, y])
    x = layers.ReLU()(layers.Add()(skips))
    return keras.Model(sound, layers.Conv1D(4, 1)(x), name="causal_stack")


def transformer() -> Any:
    """Two encoder blocks with padding masked."""
    words = keras.Input((12,), dtype="int32", name="words")
    x = layers.Embedding(30, 16, mask_zero=True)(words)
    x = x + layers.Embedding(12, 16)(keras.ops.arange(12))
    for _ in range(2):
        y = layers.MultiHeadAttention(4, 4)(x, x)
        x = layers.LayerNormalization(epsilon=1e-6)(x + layers.Dropout(0.1)(y))
        y = layers.Dense(16)(layers.Dense(32, activation="gelu")(x))
        x = layers.LayerNormalization(epsilon=1e-6)(x + y)
    return keras.Model(words, layers.Dense(5)(x[:, 0]), name="transformer")


def seq2seq() -> Any:
    """An encoder whose states start a decoder."""
    source = keras.Input((7,), dtype="int32", name="source")
    target = keras.Input((5,), dtype="int32", name="target")
    _, h, c = layers.LSTM(6, return_state=True)(layers.Embedding(9, 4, mask_zero=True)(source))
    y = layers.Embedding(9, 4, mask_zero=True)(target)
    y = layers.LSTM(6, return_sequences=True)(y, initial_state=[h, c])
    y = layers.Dense(9, activation="softmax")(y)
    return keras.Model([source, target], y, name="seq2seq")


def autoencoder() -> Any:
    """Strided convolutions down, transposed ones up."""
    return keras.Sequential(
        [
            keras.Input((12, 12, 1)),
            layers.Rescaling(1 / 255),
            layers.Conv2D(6, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(3, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2DTranspose(6, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2DTranspose(1, 3, strides=2, padding="same", activation="sigmoid"),
        ],
        name="autoencoder",
    )


def nested() -> Any:
    """Models in a model, one of them twice."""
    inner = keras.Sequential([keras.Input((4,)), layers.Dense(4, activation="elu")], name="inner")
    outer = keras.Sequential([keras.Input((4,)), inner, layers.Dense(4)], name="outer")
    x = keras.Input((4,))
    return keras.Model(x, [outer(x), inner(outer(x))], name="nested")


def video() -> Any:
    """Images over time: a small CNN on each, then an LSTM."""
    frames = keras.Input((3, 8, 8, 2), name="frames")
    x = layers.TimeDistributed(layers.Conv2D(3, 3, activation="relu"))(frames)
    x = layers.TimeDistributed(layers.GlobalMaxPooling2D())(x)
    return keras.Model(frames, layers.LSTM(4)(x), name="video")


MODELS: dict[str, Callable[[], Any]] = {
    f.__name__: f
    for f in (
        mlp,
        text_cnn,
        mobile_block,
        unet,
        siamese,
        wide_and_deep,
        causal_stack,
        transformer,
        seq2seq,
        autoencoder,
        nested,
        video,
    )
}
"""Every model by name."""
