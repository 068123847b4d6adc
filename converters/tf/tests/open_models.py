"""Keras models that leave dimensions open besides the batch."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf
from keras import layers

from converters.tf.tests.checks import model_of

_VOCABULARY = 20


class Places(layers.Layer):  # type: ignore[misc]  # Keras has no types.
    """Adds what a table has for each place."""

    def __init__(self, most: int, width: int) -> None:
        super().__init__()
        self.table = layers.Embedding(most, width)

    def call(self, x: Any) -> Any:
        """Returns the sums."""
        return x + self.table(keras.ops.arange(keras.ops.shape(x)[1]))


class Counted(layers.Layer):  # type: ignore[misc]  # Keras has no types.
    """Computes with the number of steps."""

    def call(self, x: Any) -> Any:
        """Returns odd numbers, in units of the number of steps, times a feature."""
        steps = keras.ops.shape(x)[1]
        count = keras.ops.cast(steps, "float32")
        places = keras.ops.cast(keras.ops.arange(1, 2 * steps + 1, 2), "float32")
        return x[..., :1] * (places[:, None] / count) + count


class Shortened(layers.Layer):  # type: ignore[misc]  # Keras has no types.
    """Cuts what is longer, and counts with what is left."""

    def call(self, x: Any) -> Any:
        """Returns the first 9 steps, and then the first 5 times how many those are."""
        count = tf.minimum(tf.shape(x)[1], 5)
        first = x[:, :count] * tf.cast(count, tf.float32)
        return tf.concat([x[:, :9], first, first[:, ::-1]], 1)


class Squares(layers.Layer):  # type: ignore[misc]  # Keras has no types.
    """Square matrices of the steps, and what is computed in one of two ways."""

    def call(self, x: Any) -> Any:
        """Returns the steps as others and themselves change them."""
        steps = tf.shape(x)[1]
        square = tf.matmul(x, x, transpose_b=True)
        others = square * (1.0 - tf.eye(steps))
        others = tf.cond(steps > 4, lambda: 0.1 * others, lambda: 0.3 * others)
        best = tf.one_hot(tf.argmax(x[..., 0], 1), steps)
        turned = tf.reverse_sequence(x, tf.minimum(tf.argmax(x[..., 1], 1) + 1, 3), 1)
        own = tf.linalg.diag_part(square) + tf.linalg.trace(square)[:, None]
        return tf.matmul(others, turned) + (best + own)[..., None]


class Windows(layers.Layer):  # type: ignore[misc]  # Keras has no types.
    """Attention within windows of 16 steps, the last of which is filled up."""

    def call(self, x: Any) -> Any:
        """Returns the steps."""
        steps, width = tf.shape(x)[1], x.shape[-1]
        more = -steps % 16
        y = tf.pad(x, [[0, 0], [0, more], [0, 0]])
        y = tf.reshape(y, [-1, (steps + more) // 16, 16, width])
        y = tf.matmul(tf.nn.softmax(tf.matmul(y, y, transpose_b=True)), y)
        return tf.reshape(y, [-1, steps + more, width])[:, :steps]


class Ranked(layers.Layer):  # type: ignore[misc]  # Keras has no types.
    """Sorts steps, and takes the three largest."""

    def call(self, x: Any) -> Any:
        """Returns both, and the steps moved by a place."""
        best = tf.math.top_k(tf.reduce_sum(x, -1), 3)[0]
        moved = tf.roll(x, 1, 1) - tf.roll(x, -1, 1)
        return tf.concat([tf.sort(x, axis=1), moved], -1) + tf.reduce_sum(best, -1)[:, None, None]


class Heard(layers.Layer):  # type: ignore[misc]  # Keras has no types.
    """The magnitudes of short spectra of a sound."""

    def call(self, x: Any) -> Any:
        """Returns them for windows of 8 samples."""
        return tf.abs(tf.signal.stft(x, 8, 4))


class Doubled(layers.Layer):  # type: ignore[misc]  # Keras has no types.
    """Makes the sides of images twice as large: Keras' own layer can't be traced for open sides."""

    def call(self, x: Any) -> Any:
        """Returns the images."""
        return tf.image.resize(x, 2 * tf.shape(x)[1:3])


def _features(body: Callable[[Any], Any]) -> keras.Model:
    return model_of([(None, 6)], body)


def _tokens(body: Callable[[Any], Any]) -> keras.Model:
    return model_of([(None,)], body, ["int32"])


def dense() -> keras.Model:
    """Layers that compute each step by itself."""

    def body(x: Any) -> Any:
        x = layers.LayerNormalization()(layers.Dense(8, activation="gelu")(x))
        return layers.Dense(3, activation="softmax")(x)

    return _features(body)


def pooled_words() -> keras.Model:
    """The mean of embedded words."""

    def body(x: Any) -> Any:
        x = layers.GlobalAveragePooling1D()(layers.Embedding(_VOCABULARY, 6)(x))
        return layers.Dense(2, activation="sigmoid")(x)

    return _tokens(body)


def _encoder(causal: bool) -> keras.Model:
    def body(x: Any) -> Any:
        x = Places(64, 12)(layers.Embedding(_VOCABULARY, 12)(x))
        for _ in range(2):
            y = layers.MultiHeadAttention(3, 4)(x, x, use_causal_mask=causal)
            x = layers.LayerNormalization()(x + y)
            y = layers.Dense(12)(layers.Dense(24, activation="relu")(x))
            x = layers.LayerNormalization()(x + y)
        return layers.Dense(_VOCABULARY)(x)

    return _tokens(body)


def encoder() -> keras.Model:
    """A transformer whose steps see all others."""
    return _encoder(causal=False)


def decoder() -> keras.Model:
    """A transformer whose steps see those before them."""
    return _encoder(causal=True)


def padded_words() -> keras.Model:
    """Attention that leaves out what only fills the sequence up."""

    def body(x: Any) -> Any:
        x = layers.Embedding(_VOCABULARY, 8, mask_zero=True)(x)
        return layers.Dense(3)(layers.MultiHeadAttention(2, 4)(x, x))

    return _tokens(body)


def stacked_cells() -> keras.Model:
    """A loop that is not a layer of its own."""

    def body(x: Any) -> Any:
        cells = layers.StackedRNNCells([layers.GRUCell(4), layers.LSTMCell(3)])
        return layers.RNN(cells, return_sequences=True)(x)

    return _features(body)


def first_step() -> keras.Model:
    """All that is computed has a fixed size."""
    return model_of([(None, 6)], lambda x: layers.Dense(3)(x[:, 0]))


def lstm() -> keras.Model:
    """Recurrent layers, one of them in both directions."""

    def body(x: Any) -> Any:
        x = layers.LSTM(5, return_sequences=True)(x)
        return layers.Dense(2)(layers.Bidirectional(layers.LSTM(4))(x))

    return _features(body)


def gru() -> keras.Model:
    """Both kinds of GRU, and the last step of a sequence."""

    def body(x: Any) -> Any:
        x = layers.GRU(5, return_sequences=True)(x)
        x = layers.GRU(4, reset_after=False, return_sequences=True)(x)
        return layers.Dense(2)(x[:, -1])

    return _features(body)


def simple_rnn() -> keras.Model:
    """A fully connected recurrent layer, read backwards."""
    return _features(layers.SimpleRNN(5, return_sequences=True, go_backwards=True))


def masked_words() -> keras.Model:
    """Words of which some only fill the sequence up."""

    def body(x: Any) -> Any:
        return layers.LSTM(5)(layers.Embedding(_VOCABULARY, 4, mask_zero=True)(x))

    return _tokens(body)


def text_cnn() -> keras.Model:
    """Convolutions along words, and their largest results."""

    def body(x: Any) -> Any:
        x = layers.Embedding(_VOCABULARY, 6)(x)
        parts = [
            layers.GlobalMaxPooling1D()(layers.Conv1D(5, n, padding="same", activation="relu")(x))
            for n in (2, 3, 4)
        ]
        return layers.Dense(2)(layers.concatenate(parts))

    return _tokens(body)


def wave() -> keras.Model:
    """Dilated causal convolutions with residuals."""

    def body(x: Any) -> Any:
        for rate in (1, 2, 4):
            y = layers.Conv1D(6, 2, padding="causal", dilation_rate=rate, activation="relu")(x)
            x = layers.Conv1D(6, 1)(y) + x
        return x

    return _features(body)


def strided() -> keras.Model:
    """Convolutions and pools that make a sequence shorter."""

    def body(x: Any) -> Any:
        x = layers.Conv1D(8, 5, strides=2, padding="same")(x)
        x = layers.MaxPooling1D(2, padding="same")(x)
        x = layers.Conv1D(8, 3, strides=3, padding="same", groups=2)(x)
        return layers.AveragePooling1D(3, strides=2, padding="same")(x)

    return _features(body)


def two_inputs() -> keras.Model:
    """Words and how much each counts."""

    def body(words: Any, weights: Any) -> Any:
        return layers.Embedding(_VOCABULARY, 4)(words) * keras.ops.expand_dims(weights, -1)

    return model_of([(None,), (None,)], body, ["int32", "float32"])


def counted() -> keras.Model:
    """The number of steps, and the places of steps, as numbers of the model."""
    return _features(Counted())


def shortened() -> keras.Model:
    """A sequence that may be longer than what is read of it."""
    return _features(lambda x: layers.Dense(4)(Shortened()(x)))


def squares() -> keras.Model:
    """Steps by steps."""
    return _features(Squares())


def windows() -> keras.Model:
    """Blocks of steps, as long sequences are read."""
    return _features(Windows())


def ranked() -> keras.Model:
    """A sequence of at least three steps."""
    return _features(Ranked())


def filled_up() -> keras.Model:
    """An input that has to be as long as the first 5 steps of another."""
    return model_of([(None, 6), (None, 6)], lambda x, y: layers.Dense(2)(x[:, :5] + y))


def heard() -> keras.Model:
    """A sound that has to be as long as a window."""
    return model_of([(None,)], lambda x: layers.Dense(3)(Heard()(x)))


def _image(body: Callable[[Any], Any]) -> keras.Model:
    return model_of([(None, None, 3)], body)


def small_net() -> keras.Model:
    """What mobile networks are made of, down to one number for each class."""

    def body(x: Any) -> Any:
        x = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(x)
        x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
        y = layers.DepthwiseConv2D(3, padding="same", activation="relu")(x)
        x = layers.add([x, layers.Conv2D(8, 1)(y)])
        x = layers.MaxPooling2D(2, padding="same")(x)
        return layers.Dense(4, activation="softmax")(layers.GlobalAveragePooling2D()(x))

    return _image(body)


def residual_net() -> keras.Model:
    """Convolutions of 3 x 3 whose results are added."""

    def body(x: Any) -> Any:
        x = layers.Conv2D(6, 3, padding="same", activation="relu")(x)
        y = layers.Conv2D(6, 3, padding="same")(x)
        x = layers.Activation("relu")(layers.add([x, y]))
        x = layers.AveragePooling2D(3, strides=2, padding="same")(x)
        return layers.Conv2D(2, 3)(x)

    return _image(body)


def squeezed() -> keras.Model:
    """Channels that the whole image scales."""

    def body(x: Any) -> Any:
        x = layers.Conv2D(8, 3, padding="same")(x)
        y = layers.GlobalAveragePooling2D(keepdims=True)(x)
        return x * layers.Conv2D(8, 1, activation="sigmoid")(y)

    return _image(body)


def u_net() -> keras.Model:
    """Scales that meet again: the sides have to be multiples of 4."""

    def body(x: Any) -> Any:
        first = layers.Conv2D(4, 3, padding="same", activation="relu")(x)
        second = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")(first)
        x = layers.Conv2D(8, 3, padding="same")(layers.MaxPooling2D()(second))
        x = layers.Conv2DTranspose(6, 2, strides=2, activation="relu")(x)
        x = layers.Conv2D(4, 3, padding="same")(layers.concatenate([x, second]))
        return layers.Conv2D(2, 1)(layers.add([Doubled()(x), first]))

    return _image(body)


def grown() -> keras.Model:
    """Transposed convolutions of all kinds."""

    def body(x: Any) -> Any:
        x = layers.Conv2DTranspose(5, 3, strides=2, padding="same", activation="relu")(x)
        x = layers.Conv2DTranspose(4, (4, 3), strides=(2, 1))(x)
        return layers.UpSampling2D((2, 3))(x)

    return _image(body)


def spread_line() -> keras.Model:
    """A transposed convolution over a sequence."""

    def body(x: Any) -> Any:
        x = layers.Conv1DTranspose(5, 3, strides=2, padding="same", activation="relu")(x)
        return layers.UpSampling1D(3)(layers.Conv1DTranspose(4, 4)(x))

    return _features(body)


SEQUENCES: tuple[Callable[[], keras.Model], ...] = (
    dense,
    pooled_words,
    encoder,
    decoder,
    padded_words,
    stacked_cells,
    first_step,
    lstm,
    gru,
    simple_rnn,
    masked_words,
    text_cnn,
    wave,
    strided,
    counted,
    spread_line,
    shortened,
    squares,
    windows,
)
IMAGES: tuple[Callable[[], keras.Model], ...] = (small_net, residual_net, squeezed, grown)
