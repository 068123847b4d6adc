"""Every class of `keras.layers`, with models that use it or the reason why none converts."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers

from converters.tf.ir import Array
from converters.tf.tests.checks import model_of

FLAT, SEQUENCE, IMAGE, VOLUME = (6,), (5, 6), (8, 6, 3), (4, 5, 6, 2)
_VOCABULARY = ["the", "fox", "é"]


@dataclass(frozen=True)
class Case:
    """A model around one layer.

    Attributes:
        kind: The layer's class.
        body: Makes the layer, or what is computed with it, of the inputs.
        shapes: Shapes of the inputs without the batch.
        dtypes: Element types of the inputs; float32 if not given.
        given: Inputs that show what the layer does; random ones if not given.
    """

    kind: str
    body: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...] = ()
    given: Array | None = field(default=None, repr=False)

    def model(self) -> Any:
        """Returns the model."""
        return model_of(self.shapes, self.body, self.dtypes)

    def __str__(self) -> str:
        """Returns the class."""
        return self.kind


def _case(layer: str, shape: tuple[int, ...], *args: Any, **kwargs: Any) -> Case:
    """Returns a model of one layer, which is made with these arguments."""
    return Case(layer, lambda x: getattr(layers, layer)(*args, **kwargs)(x), (shape,))


def _of_numbers(layer: str, numbers: list[list[int]], *args: Any, **kwargs: Any) -> Case:
    """Returns a model of one layer for integers that are worth a try."""
    given = np.array(numbers, np.int64)
    plain = _case(layer, given.shape[1:], *args, **kwargs)
    return replace(plain, dtypes=("int64",), given=given)


def _merge(layer: str, *args: Any, **kwargs: Any) -> Case:
    def body(a: Any, b: Any) -> Any:
        return getattr(layers, layer)(*args, **kwargs)([a, b])

    return Case(layer, body, (SEQUENCE, SEQUENCE))


def _pixels(layer: str, shape: tuple[int, ...], most: float, **kwargs: Any) -> Case:
    """Returns a model of one layer for images whose values go from 0 to `most`."""
    given = (np.random.default_rng(3).uniform(0, most, (3, *shape))).astype(np.float32)
    return replace(_case(layer, shape, **kwargs), given=given)


def _recurrent(cell: Any) -> Callable[[Any], Any]:
    return lambda x: layers.RNN(cell())(x)


class _Equalized(layers.Layer):  # type: ignore[misc]
    """Keras can't draw a model with the layer itself: it says that its result is its input."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = layers.Equalization()

    def call(self, x: Any, training: bool = False) -> Any:
        return self.inner(x, training=training) * 2


def _saved(x: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m")
        model_of([x.shape[1:]], layers.Dense(3, activation="tanh")).export(path, verbose=False)
        return layers.TFSMLayer(path, call_endpoint="serve")(x)


_CLAHE = "ContrastLimitedAdaptiveHistogramEqualization"
_WORDS = [[4, 0, 2, 9, -1], [3, 3, 2, 4, 10**12]]
_FAR = [-(2**63), 2**63 - 1, 10**12, 7, -3]
_FEW = [[4, 0, 2, 5, 0], [3, 3, 2, 4, 1]]
_BOUNDARIES = [-1.0, 0.0, 0.5]

CASES: tuple[Case, ...] = (
    _case("Activation", SEQUENCE, "tanh"),
    _case("ActivityRegularization", SEQUENCE, 0.1),
    _case("AdaptiveAveragePooling1D", SEQUENCE, 3),
    _case("AdaptiveAveragePooling2D", IMAGE, 3),
    _case("AdaptiveAveragePooling3D", VOLUME, 2),
    _case("AdaptiveMaxPooling1D", SEQUENCE, 3),
    _case("AdaptiveMaxPooling2D", IMAGE, 3),
    _case("AdaptiveMaxPooling3D", VOLUME, 2),
    _merge("Add"),
    Case("AdditiveAttention", lambda q, v: layers.AdditiveAttention()([q, v]), ((5, 6), (4, 6))),
    _case("AlphaDropout", SEQUENCE, 0.3),
    Case("Attention", lambda q, v: layers.Attention()([q, v]), ((5, 6), (4, 6))),
    _case("AugMix", IMAGE),
    _pixels("AutoContrast", IMAGE, 255),
    _pixels("AutoContrast", IMAGE, 1, value_range=(0, 1)),
    _merge("Average"),
    _case("AveragePooling1D", SEQUENCE, 2),
    _case("AveragePooling2D", IMAGE, 2),
    _case("AveragePooling3D", VOLUME, 2),
    _case("BatchNormalization", SEQUENCE),
    Case("Bidirectional", lambda x: layers.Bidirectional(layers.GRU(3))(x), (SEQUENCE,)),
    _of_numbers("CategoryEncoding", [[4], [0]], 6, "one_hot"),
    _of_numbers("CategoryEncoding", _FEW, 6, "multi_hot"),
    _of_numbers("CategoryEncoding", _FEW, 6, "count"),
    Case(
        "CategoryEncoding",
        lambda a, b: layers.CategoryEncoding(6, "count")(a, count_weights=b),
        ((5,), (5,)),
        ("int32",),
    ),
    _case("CenterCrop", IMAGE, 3, 4),
    _merge("Concatenate"),
    _merge("Concatenate", axis=1),
    _pixels(_CLAHE, (16, 12, 3), 255, tile_grid_size=(2, 3)),
    _pixels(_CLAHE, (11, 7, 2), 1, tile_grid_size=(3, 2), value_range=(0, 1)),
    _case("Conv1D", SEQUENCE, 3, 2),
    _case("Conv1DTranspose", SEQUENCE, 3, 2),
    _case("Conv2D", IMAGE, 3, 2, data_format="channels_first"),
    _case("Conv2DTranspose", IMAGE, 3, 2),
    _case("Conv3D", VOLUME, 3, 2),
    _case("Conv3DTranspose", VOLUME, 3, 2),
    _case("ConvLSTM1D", (3, 6, 2), 2, 3),
    _case("ConvLSTM2D", (3, 6, 5, 2), 2, 3, padding="same"),
    _case("ConvLSTM3D", (2, 3, 4, 3, 2), 2, 2),
    _case("Cropping1D", SEQUENCE, (1, 2)),
    _case("Cropping2D", IMAGE, ((1, 0), (2, 1))),
    _case("Cropping3D", VOLUME, 1),
    _case("CutMix", IMAGE),
    _case("Dense", FLAT, 3),
    _case("DepthwiseConv1D", SEQUENCE, 2),
    _case("DepthwiseConv2D", IMAGE, 2),
    _case("Discretization", SEQUENCE, _BOUNDARIES),
    _case("Discretization", (1,), _BOUNDARIES, output_mode="one_hot"),
    _case("Discretization", FLAT, _BOUNDARIES, output_mode="multi_hot"),
    _case("Discretization", FLAT, _BOUNDARIES, output_mode="count"),
    _merge("Dot", -1),
    _merge("Dot", 1, normalize=True),
    _case("Dropout", SEQUENCE, 0.3),
    _case("ELU", SEQUENCE, 0.7),
    _case("EinsumDense", SEQUENCE, "abc,cd->abd", (5, 3), bias_axes="d"),
    _of_numbers("Embedding", _FEW, 9, 4),
    Case("Equalization", lambda x: _Equalized()(x), (IMAGE,)),
    _case("Flatten", SEQUENCE),
    _case("GRU", SEQUENCE, 3),
    Case("GRUCell", _recurrent(lambda: layers.GRUCell(3)), (SEQUENCE,)),
    _case("GaussianDropout", SEQUENCE, 0.3),
    _case("GaussianNoise", SEQUENCE, 0.3),
    _case("GlobalAveragePooling1D", SEQUENCE),
    _case("GlobalAveragePooling2D", IMAGE),
    _case("GlobalAveragePooling3D", VOLUME),
    _case("GlobalMaxPooling1D", SEQUENCE),
    _case("GlobalMaxPooling2D", IMAGE),
    _case("GlobalMaxPooling3D", VOLUME),
    _case("GroupNormalization", SEQUENCE, 3),
    Case("GroupQueryAttention", lambda x: layers.GroupQueryAttention(4, 4, 2)(x, x), (SEQUENCE,)),
    _case("Identity", SEQUENCE),
    Case("InputLayer", lambda x: x * 2, (SEQUENCE,)),
    _of_numbers("IntegerLookup", _WORDS, vocabulary=[4, 2, 3]),
    _of_numbers("IntegerLookup", _WORDS, vocabulary=[4, 9, 3], mask_token=0, num_oov_indices=1),
    _of_numbers("IntegerLookup", [_FAR, _FAR[::-1]], vocabulary=_FAR[:3]),
    _of_numbers("IntegerLookup", _WORDS, vocabulary=[4, 2, 3], output_mode="multi_hot"),
    _of_numbers("IntegerLookup", _WORDS, vocabulary=[4, 2, 3], output_mode="count"),
    _of_numbers("IntegerLookup", [[4], [7]], vocabulary=[4, 2, 3], output_mode="one_hot"),
    _of_numbers("IntegerLookup", _FEW, vocabulary=[4, 2, 3], invert=True),
    _case("LSTM", SEQUENCE, 3),
    Case("LSTMCell", _recurrent(lambda: layers.LSTMCell(3)), (SEQUENCE,)),
    _case("Lambda", SEQUENCE, lambda x: keras.ops.sin(x) * 2 + x[:, ::-1, 1:2]),
    _case("LayerNormalization", SEQUENCE, axis=[1, 2]),
    _case("LeakyReLU", SEQUENCE, 0.13),
    Case("Masking", lambda x: layers.LSTM(3)(layers.Masking()(x)), (SEQUENCE,)),
    _case("MaxNumBoundingBoxes", IMAGE, 3),
    _case("MaxPooling1D", SEQUENCE),
    _case("MaxPooling2D", IMAGE),
    _case("MaxPooling3D", VOLUME),
    _merge("Maximum"),
    _case(
        "MelSpectrogram",
        (640,),
        fft_length=256,
        sequence_stride=64,
        sequence_length=200,
        num_mel_bins=8,
        power_to_db=False,
    ),
    _merge("Minimum"),
    _case("MixUp", IMAGE),
    Case("MultiHeadAttention", lambda x: layers.MultiHeadAttention(2, 3)(x, x), (SEQUENCE,)),
    _merge("Multiply"),
    _case("Normalization", SEQUENCE, mean=1.0, variance=2.0),
    _case("Normalization", SEQUENCE, mean=1.0, variance=2.0, invert=True),
    _case("PReLU", SEQUENCE),
    _case("PReLU", SEQUENCE, shared_axes=[1]),
    _case("Permute", SEQUENCE, (2, 1)),
    Case(
        "Pipeline",
        lambda x: layers.Pipeline(
            [layers.RandomFlip(), layers.Rescaling(0.5), layers.Resizing(4, 4)]
        )(x),
        (IMAGE,),
    ),
    _case("RMSNormalization", SEQUENCE),
    Case(
        "RNN",
        _recurrent(lambda: [layers.LSTMCell(3), layers.GRUCell(2)]),
        (SEQUENCE,),
    ),
    _case("RandAugment", IMAGE),
    _case("RandomBrightness", IMAGE, 0.2),
    _case("RandomColorDegeneration", IMAGE, 0.2),
    _case("RandomColorJitter", IMAGE),
    _case("RandomContrast", IMAGE, 0.2),
    _case("RandomCrop", IMAGE, 4, 4),
    _case("RandomElasticTransform", IMAGE),
    _case("RandomErasing", IMAGE),
    _case("RandomFlip", IMAGE),
    _case("RandomGaussianBlur", IMAGE),
    _case("RandomGrayscale", IMAGE),
    _case("RandomHue", IMAGE, 0.2),
    _case("RandomInvert", IMAGE),
    _case("RandomPerspective", IMAGE),
    _case("RandomPosterization", IMAGE, 4),
    _case("RandomRotation", IMAGE, 0.2),
    _case("RandomSaturation", IMAGE, 0.3),
    _case("RandomSharpness", IMAGE, 0.2),
    _case("RandomShear", IMAGE),
    _case("RandomTranslation", IMAGE, 0.2, 0.2),
    _case("RandomZoom", IMAGE, 0.2),
    _case("ReLU", SEQUENCE, 6.0),
    _case("RepeatVector", FLAT, 3),
    _case("Rescaling", SEQUENCE, 0.1, -3.0),
    _case("Reshape", SEQUENCE, (6, -1)),
    _case("Resizing", IMAGE, 5, 9),
    _case("Resizing", IMAGE, 5, 9, interpolation="nearest"),
    _case("Resizing", IMAGE, 5, 9, interpolation="bicubic"),
    _case("Resizing", IMAGE, 9, 4, interpolation="lanczos5"),
    _case("Resizing", IMAGE, 4, 5, interpolation="bilinear", antialias=True),
    _case("Resizing", IMAGE, 3, 8, interpolation="bicubic", antialias=True),
    Case(
        "ReversibleEmbedding",
        lambda x: (lambda table: table(table(x), reverse=True))(layers.ReversibleEmbedding(5, 4)),
        (FLAT,),
        ("int32",),
    ),
    *(
        _case("STFTSpectrogram", (64, 2), mode=mode, frame_length=16, frame_step=8, fft_length=32)
        for mode in ("log", "magnitude", "psd", "real", "imag", "angle", "stft")
    ),
    _case("SeparableConv1D", SEQUENCE, 3, 2),
    _case("SeparableConv2D", IMAGE, 3, 2),
    _case("SimpleRNN", SEQUENCE, 3),
    Case("SimpleRNNCell", _recurrent(lambda: layers.SimpleRNNCell(3)), (SEQUENCE,)),
    _case("Softmax", SEQUENCE, axis=1),
    _case("Softmax", SEQUENCE, axis=[1, 2]),
    _pixels("Solarization", IMAGE, 255),
    _pixels("Solarization", IMAGE, 1, value_range=(0, 1)),
    _case("SpatialDropout1D", SEQUENCE, 0.3),
    _case("SpatialDropout2D", IMAGE, 0.2),
    _case("SpatialDropout3D", VOLUME, 0.2),
    Case(
        "SpectralNormalization",
        lambda x: layers.SpectralNormalization(layers.Dense(3))(x),
        (SEQUENCE,),
    ),
    Case(
        "StackedRNNCells",
        _recurrent(lambda: layers.StackedRNNCells([layers.LSTMCell(3), layers.GRUCell(2)])),
        (SEQUENCE,),
    ),
    _merge("Subtract"),
    Case("TFSMLayer", _saved, (FLAT,)),
    Case("TimeDistributed", lambda x: layers.TimeDistributed(layers.Dense(3))(x), (SEQUENCE,)),
    Case("TimeDistributed", lambda x: layers.TimeDistributed(layers.Conv1D(2, 3))(x), (IMAGE,)),
    _case("UnitNormalization", SEQUENCE),
    _case("UpSampling1D", SEQUENCE, 3),
    _case("UpSampling2D", IMAGE, (2, 3)),
    _case("UpSampling2D", IMAGE, 2, interpolation="bilinear"),
    _case("UpSampling2D", IMAGE, 2, interpolation="bicubic"),
    _case("UpSampling2D", IMAGE, 2, interpolation="lanczos3"),
    _case("UpSampling3D", VOLUME, 2),
    Case("Hashing", lambda x: layers.Hashing(7)(x), (FLAT,), ("int64",)),
    Case(
        "HashedCrossing",
        lambda a, b: layers.HashedCrossing(7)([a, b]),
        ((1,), (1,)),
        ("string", "int64"),
    ),
    Case(
        "StringLookup",
        lambda x: layers.StringLookup(vocabulary=_VOCABULARY)(x),
        (FLAT,),
        ("string",),
    ),
    Case(
        "TextVectorization",
        lambda x: layers.TextVectorization(vocabulary=_VOCABULARY, output_sequence_length=5)(x),
        ((1,),),
        ("string",),
    ),
    _case("ZeroPadding1D", SEQUENCE, (2, 1)),
    _case("ZeroPadding2D", IMAGE, ((1, 0), (2, 3))),
    _case("ZeroPadding3D", VOLUME, 1),
)
"""At least one model of every class that converts."""

BASES: Mapping[str, str] = {
    "Layer": "what all layers are",
    "Wrapper": "what layers around a layer are",
}
"""Classes that compute nothing."""

REASONS: Mapping[str, str] = {
    "FlaxLayer": "it is code of JAX",
    "JaxLayer": "it is code of JAX",
    "TorchModuleWrapper": "it is code of PyTorch",
}
"""Why a class does not convert."""

PARTS: Mapping[str, tuple[str, Case]] = {
    "MelSpectrogram": (
        "only with `power_to_db=False`: decibels are limited by the loudest of the batch",
        _case("MelSpectrogram", (640,), fft_length=128, sequence_stride=64, sequence_length=128),
    ),
}
"""Classes of which a part does not convert, with a model that is refused."""


def all_kinds() -> frozenset[str]:
    """Returns the names of all classes of layers; of several names of one the first."""
    names: dict[type, str] = {}
    for name in dir(layers):
        thing = getattr(layers, name)
        if inspect.isclass(thing) and issubclass(thing, layers.Layer):
            known = names.setdefault(thing, name)
            if name == thing.__name__ != known:
                names[thing] = name
    return frozenset(names.values())
