"""Writes models of Keras with random layers, and what they compute, as a checkpoint.

A case has the model's `.keras` file before and after a training step, inputs, truths, what it
predicts, and the loss of the step. Layers that take real numbers come after a dense one, whose
change shows the gradient that passes through them.
"""

from __future__ import annotations

import gc
import math
import pathlib
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags
from keras.src.applications.convnext import LayerScale
from keras.src.applications.inception_resnet_v2 import CustomScaleLayer

from bindings.client.tests.keras_categories import crossed, hashed, listed, piped, reversible
from bindings.client.tests.keras_draws import Case, Random, drawn_shape, flag, pick
from bindings.client.tests.keras_images import (
    image_colored,
    image_moved,
    image_resized,
    learned_image,
)

_OUT = flags.DEFINE_string("out", None, "Prefix of the checkpoint.", required=True)
_COUNT = flags.DEFINE_integer("count", 140, "How many random models.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 1, "Of the configurations.")

k = keras.layers


def _activation(r: Random) -> str:
    return str(pick(r, "linear", "tanh", "sigmoid", "softplus", "silu", "gelu"))


def _conv(name: str, dims: int) -> Callable[[Random], Case]:
    def case(r: Random) -> Case:
        strided = flag(r)
        options: dict[str, Any] = {
            "kernel_size": [int(size) for size in r.integers(1, 4, dims)],
            "padding": pick(r, "valid", "same"),
            "use_bias": flag(r),
            "activation": _activation(r),
        }
        if "Depthwise" in name or "Separable" in name:
            # The op takes equal strides only.
            options["strides"] = int(r.integers(1, 3)) if strided else 1
            options["depth_multiplier"] = int(r.integers(1, 3))
        else:
            options["strides"] = [int(s) for s in r.integers(1, 3, dims)] if strided else 1
        if max(options["kernel_size"]) == 1:
            # oneDNN's gradient of such a kernel is wrong under 8 channels, also in Python.
            options["strides"] = 1
        if not strided and dims < 3 and name in ("Conv1D", "Conv2D"):
            options["dilation_rate"] = int(r.integers(1, 3))
        if name in ("Conv1D", "Conv2D"):
            options["groups"] = int(r.integers(1, 3))
        if name == "Conv1D" and flag(r):
            options["padding"] = "causal"
        if "Depthwise" not in name:
            options["filters"] = 2 * int(r.integers(1, 3))
        return [drawn_shape(r, dims)], getattr(k, name)(**options)

    return case


def _pool(name: str, dims: int) -> Callable[[Random], Case]:
    def case(r: Random) -> Case:
        if name.startswith("Global"):
            return [drawn_shape(r, dims)], getattr(k, name)(keepdims=flag(r))
        options = {
            "pool_size": int(r.integers(1, 4)),
            "strides": pick(r, None, 1, 2),
            "padding": pick(r, "valid", "same"),
        }
        return [drawn_shape(r, dims)], getattr(k, name)(**options)

    return case


def _merge(name: str) -> Callable[[Random], Case]:
    def case(r: Random) -> Case:
        count = 2 if name == "Subtract" else int(r.integers(2, 4))
        shape = drawn_shape(r, 1)
        layer = getattr(k, name)()
        return [shape] * count, lambda *x: layer(list(x))

    return case


def _concatenate(r: Random) -> Case:
    steps, width = drawn_shape(r, 1)
    if flag(r):
        layer = k.Concatenate()
        return [(steps, width), (steps, width + 2)], lambda *x: layer(list(x))
    layer = k.Concatenate(axis=1)
    return [(steps, width), (steps + 3, width)], lambda *x: layer(list(x))


def _dot(r: Random) -> Case:
    n = int(r.integers(2, 6))
    normalize = flag(r)
    shapes, axes = pick(
        r,
        ([(n,), (n,)], 1),
        ([(3, n), (4, n)], 2),
        ([(n, 3), (4, n)], (1, 2)),
        ([(3, n), (n,)], (2, 1)),
    )
    layer = k.Dot(axes=axes, normalize=normalize)
    return shapes, lambda *x: layer(list(x))


def _rnn(name: str) -> Callable[[Random], Case]:
    def case(r: Random) -> Case:
        options: dict[str, Any] = {
            "return_sequences": flag(r),
            "go_backwards": flag(r),
            "use_bias": flag(r),
            "activation": pick(r, "tanh", "softsign"),
        }
        if name != "SimpleRNN":
            options["recurrent_activation"] = pick(r, "sigmoid", "hard_sigmoid")
        if name == "GRU":
            options["reset_after"] = flag(r)
        return [drawn_shape(r, 1)], getattr(k, name)(int(r.integers(1, 6)), **options)

    return case


def _rnn_states(r: Random) -> Case:
    name = str(pick(r, "SimpleRNN", "LSTM", "GRU"))
    units = int(r.integers(1, 5))
    encoder = getattr(k, name)(units, return_state=True)
    decoder = getattr(k, name)(units, return_sequences=True)

    def layers(a: Any, b: Any) -> Any:
        _, *states = encoder(a)
        return decoder(b, initial_state=states)

    return [drawn_shape(r, 1), drawn_shape(r, 1)], layers


def _cells(r: Random) -> Case:
    def cell() -> Any:
        name = str(pick(r, "SimpleRNNCell", "LSTMCell", "GRUCell"))
        return getattr(k, name)(int(r.integers(1, 5)), use_bias=flag(r))

    cells = cell() if flag(r) else k.StackedRNNCells([cell() for _ in range(3)])
    return [drawn_shape(r, 1)], k.RNN(cells, return_sequences=flag(r), go_backwards=flag(r))


def _bidirectional(r: Random) -> Case:
    inner = getattr(k, str(pick(r, "SimpleRNN", "LSTM", "GRU")))
    layer = inner(int(r.integers(1, 5)), return_sequences=flag(r))
    return [drawn_shape(r, 1)], k.Bidirectional(
        layer, merge_mode=pick(r, "concat", "sum", "mul", "ave")
    )


def _conv_lstm(dims: int) -> Callable[[Random], Case]:
    def case(r: Random) -> Case:
        layer = getattr(k, f"ConvLSTM{dims}D")(
            2,
            2,
            strides=int(r.integers(1, 3)),
            padding=pick(r, "valid", "same"),
            return_sequences=flag(r),
            use_bias=flag(r),
        )
        return [(3, *[4] * dims, 2)], layer

    return case


def _multi_head(r: Random) -> Case:
    layer = k.MultiHeadAttention(
        int(r.integers(1, 4)),
        int(r.integers(1, 5)),
        value_dim=pick(r, None, 3),
        use_bias=flag(r),
        output_shape=pick(r, None, 5),
    )
    causal = flag(r)
    steps, width = drawn_shape(r, 1)
    if flag(r):
        return [(steps, width)], lambda x: layer(x, x, use_causal_mask=causal)
    shapes: list[tuple[int, ...]] = [(steps, width), (5, 4), (5, 6)]
    return shapes, lambda q, v, key: layer(q, v, key=key, use_causal_mask=causal)


def _grouped(r: Random) -> Case:
    heads = int(r.integers(1, 3))
    layer = k.GroupQueryAttention(3, 2 * heads, heads, use_bias=flag(r))
    causal = flag(r)
    queries = drawn_shape(r, 1)
    # Keras takes values of the queries' width and, with a causal mask, as many.
    values = queries if causal else (drawn_shape(r, 1)[0], queries[1])
    return [queries, values], lambda q, v: layer(q, v, use_causal_mask=causal)


def _attention(r: Random) -> Case:
    if flag(r):
        layer: Any = k.AdditiveAttention(use_scale=flag(r))
    else:
        layer = k.Attention(use_scale=flag(r), score_mode=pick(r, "dot", "concat"))
    causal = flag(r)
    every: list[tuple[int, ...]] = [(5, 4), (6, 4), (6, 4)]
    return every[: int(r.integers(2, 4))], lambda *x: layer(list(x), use_causal_mask=causal)


def _masked(r: Random) -> Case:
    mask = k.Masking()
    inner = pick(
        r,
        k.LSTM(3, return_sequences=True),
        k.GRU(3),
        k.GlobalAveragePooling1D(),
        k.BatchNormalization(),
        k.Bidirectional(k.GRU(2, return_sequences=True)),
        k.TimeDistributed(k.Dense(3)),
    )
    width = int(r.integers(2, 5))

    def layers(x: Any) -> Any:
        # A dense layer would fill what is masked.
        return inner(mask(k.ReLU(threshold=0.8)(x)))

    return [(6, width)], layers


def _normal(r: Random) -> Case:
    shape = drawn_shape(r, int(r.integers(1, 3)))
    common: dict[str, Any] = {"center": flag(r), "scale": flag(r), "epsilon": 0.01}
    layer = pick(
        r,
        k.BatchNormalization(axis=pick(r, -1, 1), momentum=0.9, **common),
        k.LayerNormalization(axis=pick(r, -1, 1, [1, -1]), **common),
        k.GroupNormalization(groups=pick(r, 2, -1), **common),
        k.RMSNormalization(),
        k.UnitNormalization(axis=pick(r, -1, 1)),
    )
    return [shape], layer


def _shaped(r: Random) -> Case:
    dims = int(r.integers(1, 4))
    shape = drawn_shape(r, dims)
    sides = [[int(side) for side in r.integers(0, 3, 2)] for _ in range(dims)]
    both = sides[0] if dims == 1 else sides
    crop = [[int(side) for side in r.integers(0, 2, 2)] for _ in range(dims)]
    layer = pick(
        r,
        k.Flatten(),
        k.Reshape((-1, shape[0])),
        k.Permute([int(axis) + 1 for axis in r.permutation(dims + 1)]),
        getattr(k, f"ZeroPadding{dims}D")(both),
        getattr(k, f"Cropping{dims}D")(crop[0] if dims == 1 else crop),
        getattr(k, f"UpSampling{dims}D")(int(r.integers(1, 4))),
    )
    return [shape], layer


def _bilinear(r: Random) -> Case:
    return [drawn_shape(r, 2)], k.UpSampling2D((2, int(r.integers(1, 4))), interpolation="bilinear")


def _activated(r: Random) -> Case:
    layer = pick(
        r,
        k.ReLU(max_value=pick(r, None, 1.5), negative_slope=0.1, threshold=pick(r, 0.0, 0.3)),
        k.LeakyReLU(negative_slope=0.3),
        k.PReLU(shared_axes=pick(r, None, [1])),
        k.ELU(alpha=0.7),
        k.Softmax(axis=pick(r, -1, 1)),
        k.Activation(_activation(r)),
    )
    return [drawn_shape(r, 1)], layer


def _plain(r: Random) -> Case:
    layer = pick(
        r,
        k.ActivityRegularization(l1=0.01, l2=0.02),
        k.Rescaling(0.5, offset=-1.0),
        k.Identity(),
        k.SpatialDropout1D(0.0),
        k.GaussianNoise(0.0),
        k.GaussianDropout(0.0),
        k.AlphaDropout(0.0),
        k.Dropout(0.0),
        k.TimeDistributed(k.Dense(3, activation=_activation(r))),
    )
    return [drawn_shape(r, 1)], layer


def _dense(r: Random) -> Case:
    layer = k.Dense(
        int(r.integers(1, 6)),
        activation=_activation(r),
        use_bias=flag(r),
        kernel_regularizer=pick(r, None, "l2", keras.regularizers.L1L2(0.01, 0.02)),
        activity_regularizer=pick(r, None, keras.regularizers.L2(0.01)),
        kernel_constraint=pick(r, None, "max_norm", keras.constraints.UnitNorm(axis=0)),
    )
    return [pick(r, (5,), (4, 3), (2, 3, 4))], layer


def _einsum(r: Random) -> Case:
    shape, equation, output, bias = pick(
        r,
        ((5, 4), "abc,cd->abd", (None, 6), "d"),
        ((5, 4), "abc,cde->abde", (None, 2, 3), "de"),
        ((5, 4, 3), "...x,xy->...y", (7,), "y"),
        ((4, 2, 3), "abcd,cde->abe", (None, 5), None),
    )
    return [shape], k.EinsumDense(equation, output, bias_axes=bias, activation=_activation(r))


def _repeat(r: Random) -> Case:
    return [(4,)], k.RepeatVector(int(r.integers(1, 5)))


def _shared(r: Random) -> Case:
    dense, out = k.Dense(4, activation="tanh"), k.Dense(2)
    inner = keras.Sequential([keras.Input((4,)), k.Dense(5), k.BatchNormalization()])
    frozen = k.Dense(4, trainable=False)

    def layers(a: Any, b: Any) -> Any:
        x, y = dense(a), dense(b)
        first = inner(k.Add()([x, y]))
        second = inner(frozen(k.Subtract()([x, y])))
        return [out(k.Multiply()([first, second])), k.Concatenate()([first, x])]

    return [(3,), (3,)], layers


def _each_step(r: Random) -> Case:
    """A model computes each step of a sequence: of images, or of rows."""
    if flag(r):
        parts = [k.Conv2D(3, 2, activation=_activation(r)), k.Flatten(), k.Dense(4)]
        shape: tuple[int, ...] = (4, 4, 2)
    else:
        parts = [k.Dense(5, activation=_activation(r)), k.LayerNormalization(), k.Dense(4)]
        shape = (4,)
    if flag(r):
        model: Any = keras.Sequential([keras.Input(shape), *parts])
    else:
        x = y = keras.Input(shape)
        for part in parts:
            y = part(y)
        model = keras.Model(x, y)
    layer = k.TimeDistributed(model)
    twice, then = flag(r), k.LSTM(2)

    def layers(x: Any) -> Any:
        y = layer(x)
        return then(k.Add()([y, layer(k.Activation("tanh")(x))]) if twice else y)

    return [(3, *shape)], layers


def _measured(r: Random) -> Case:
    """Normalization by numbers of the layer's own, or by variables that `_write` changes."""
    shape = drawn_shape(r, 2)
    axis = pick(r, -1, (1, -1), (1, 2, 3), None)
    options: dict[str, Any] = {"axis": axis, "invert": flag(r)}
    if flag(r):
        sizes = [shape[at - 1 if at > 0 else at] for at in np.atleast_1d(axis)] if axis else []
        sizes = pick(r, [], sizes[-1:])
        options["mean"] = r.normal(size=sizes).tolist()
        options["variance"] = r.uniform(0.5, 2.0, size=sizes).tolist()
    return [shape], k.Normalization(**options)


def _binned(r: Random) -> Case:
    """Bins of numbers, as vectors beside the numbers themselves."""
    shape = pick(r, (1,), (3,), (6,))
    boundaries = np.sort(r.normal(size=int(r.integers(1, 6)))).tolist()
    mode = pick(r, "one_hot", "multi_hot", "count")
    if flag(r):
        encode: Any = k.Discretization(boundaries, output_mode=mode)
    else:
        bins, vectors = k.Discretization(boundaries), k.CategoryEncoding(7, output_mode=mode)

        def encode(x: Any) -> Any:
            return vectors(bins(x))

    flat, together = k.Flatten(), k.Concatenate()
    return [shape], lambda x: together([x, flat(encode(x))])


def _adaptive(name: str, dims: int) -> Callable[[Random], Case]:
    def case(r: Random) -> Case:
        shape = drawn_shape(r, dims)
        # Keras also pools windows of one element more, which abort TensorFlow if there are none.
        sizes = tuple(int(r.integers(2, size + 1)) for size in shape[:-1])
        return [shape], getattr(k, name)(sizes if dims > 1 or flag(r) else sizes[0])

    return case


def _dropped(r: Random) -> Case:
    shape = drawn_shape(r, int(r.integers(1, 3)))
    draws = [pick(r, None, 1, size) for size in shape]
    return [shape], k.Dropout(0.0, noise_shape=(None, *draws))


def _arithmetic(r: Random) -> Case:
    """Functions between layers: numbers that are added, subtracted, multiplied and divided by."""
    number = float(r.normal()) or 1.0

    def layers(x: Any) -> Any:
        y = (2.0 - (x + number) * 0.7) / number
        return k.ReLU(6.0)(number + y * x - number) * (1 / 6)

    return [drawn_shape(r, 1)], layers


def _applied(r: Random) -> Case:
    """Layers that models of `keras.applications` define."""
    shape = drawn_shape(r, 2)
    factor, total = LayerScale(0.5, shape[-1]), CustomScaleLayer(float(r.normal()))
    return [shape] * 2, lambda x, y: factor(total([x, y]))


def _stft(r: Random) -> Case:
    frame = int(r.integers(5, 10))
    layer = k.STFTSpectrogram(
        str(pick(r, "log", "magnitude", "psd", "real", "imag", "angle", "stft")),
        frame,
        pick(r, None, int(r.integers(1, frame))),
        pick(r, None, 16),
        pick(r, "hann", "hamming", "blackman", "boxcar", None),
        periodic=flag(r),
        scaling=pick(r, "density", "spectrum", None),
        padding=pick(r, "valid", "same"),
        expand_dims=flag(r),
    )
    return [(int(r.integers(12, 24)), int(r.integers(1, 3)))], layer


def _mel(r: Random) -> Case:
    step = int(r.integers(3, 8))
    layer = k.MelSpectrogram(
        32,
        step,
        pick(r, None, 20, 21),
        pick(r, "hann", "hamming", None),
        sampling_rate=1000,
        num_mel_bins=int(r.integers(3, 6)),
        max_freq=pick(r, None, 300.0),
        power_to_db=flag(r),
        top_db=pick(r, 80.0, 10.0),
        mag_exp=pick(r, 1.0, 2.0),
        ref_power=2.0,
    )
    # Of large powers, a step shows the rounding of large sums.
    small = k.Rescaling(0.1)
    # Keras' shape of the output is wrong by one for some other numbers of steps.
    return [(step * int(r.integers(6, 12)),)], lambda x: layer(small(x))


def _spectral(r: Random) -> Case:
    """A kernel that each call divides by its norm, and that is penalized then."""
    common: dict[str, Any] = {
        "use_bias": flag(r),
        "kernel_regularizer": pick(r, None, "l2"),
    }
    shape = drawn_shape(r, 1)
    inner = pick(
        r,
        k.Dense(shape[-1], activation=_activation(r), **common),
        k.Conv1D(shape[-1], 2, padding="same", **common),
    )
    layer = k.SpectralNormalization(inner, power_iterations=int(r.integers(1, 4)))
    twice = flag(r)

    def layers(x: Any) -> Any:
        y = layer(x)
        return k.Add()([y, layer(k.Activation("tanh")(y))]) if twice else y

    return [shape], layers


def _one_of(*cases: Callable[[Random], Case]) -> Callable[[Random], Case]:
    return lambda r: cases[int(r.integers(len(cases)))](r)


def _over_steps(r: Random) -> Case:
    steps, width = drawn_shape(r, 1)
    padding = pick(r, "valid", "same", "causal")
    heads, norm = k.MultiHeadAttention(2, 3), k.LayerNormalization()
    inner: Any = pick(
        r,
        k.Conv1D(3, 2, padding=padding, strides=int(r.integers(1, 3))),
        k.SeparableConv1D(3, 2),
        k.Conv1DTranspose(3, 2),
        k.MaxPooling1D(2),
        k.AveragePooling1D(2, padding="same"),
        k.GlobalMaxPooling1D(),
        k.GlobalAveragePooling1D(keepdims=True),
        k.UpSampling1D(2),
        k.ZeroPadding1D(1),
        k.Cropping1D(1),
        k.TimeDistributed(k.Dense(3)),
        k.BatchNormalization(),
        k.Softmax(axis=1),
        lambda x: norm(k.Add()([x, heads(x, x, use_causal_mask=True)])),
        lambda x: k.Concatenate(axis=1)([x, k.Dense(x.shape[-1])(x)]),
        lambda x: k.Attention()([x, x]),
        lambda x: k.Dot(axes=1)([x, x]),
    )
    return [(steps, width)], inner


CASES: dict[str, Callable[[Random], Case]] = {
    **{
        name: _conv(name, dims)
        for name, dims in {
            "Conv1D": 1,
            "Conv2D": 2,
            "Conv3D": 3,
            "Conv1DTranspose": 1,
            "Conv2DTranspose": 2,
            "Conv3DTranspose": 3,
            "DepthwiseConv1D": 1,
            "DepthwiseConv2D": 2,
            "SeparableConv1D": 1,
            "SeparableConv2D": 2,
        }.items()
    },
    **{
        f"{kind}Pooling{dims}D": _pool(f"{kind}Pooling{dims}D", dims)
        for kind in ("Max", "Average", "GlobalMax", "GlobalAverage")
        for dims in (1, 2, 3)
    },
    **{
        name: _merge(name)
        for name in ("Add", "Multiply", "Average", "Maximum", "Minimum", "Subtract")
    },
    "Concatenate": _concatenate,
    "Dot": _dot,
    **{name: _rnn(name) for name in ("SimpleRNN", "LSTM", "GRU")},
    "states": _rnn_states,
    "cells": _cells,
    "Bidirectional": _bidirectional,
    **{f"ConvLSTM{dims}D": _conv_lstm(dims) for dims in (1, 2, 3)},
    "MultiHeadAttention": _multi_head,
    "GroupedQueryAttention": _grouped,
    "Attention": _attention,
    "masked": _masked,
    "normalization": _normal,
    "shaped": _shaped,
    "bilinear": _bilinear,
    "activated": _activated,
    "plain": _plain,
    "Dense": _dense,
    "EinsumDense": _einsum,
    "RepeatVector": _repeat,
    "shared": _shared,
    "each_step": _each_step,
    "each_step_again": _each_step,
    "measured": _measured,
    "binned": _binned,
    **{
        f"Adaptive{kind}Pooling{dims}D": _adaptive(f"Adaptive{kind}Pooling{dims}D", dims)
        for kind in ("Max", "Average")
        for dims in (1, 2, 3)
    },
    "dropped": _dropped,
    "arithmetic": _arithmetic,
    "applied": _applied,
    "STFTSpectrogram": _stft,
    "STFTSpectrogram_again": _stft,
    "MelSpectrogram": _mel,
    "SpectralNormalization": _spectral,
    "SpectralNormalization_again": _spectral,
    "hashed": hashed,
    "hashed_again": hashed,
    "crossed": crossed,
    "listed": listed,
    "listed_again": listed,
    "reversible": reversible,
    "reversible_again": reversible,
    "piped": piped,
    "learned_image": learned_image,
    "learned_image_again": learned_image,
    # The number of steps of these is open.
    "open_recurrent": _one_of(
        *[_rnn(name) for name in ("SimpleRNN", "LSTM", "GRU")], _cells, _bidirectional, _masked
    ),
    "open_recurrent_again": _one_of(
        *[_rnn(name) for name in ("SimpleRNN", "LSTM", "GRU")], _cells, _bidirectional, _masked
    ),
    "open_steps": _over_steps,
    "open_steps_again": _over_steps,
    # No gradient passes through layers of these names: they come first.
    "image_resized": image_resized,
    "image_moved": image_moved,
    "image_colored": image_colored,
}


def _file(model: keras.Model, folder: pathlib.Path) -> bytes:
    path = folder / "model.keras"
    model.save(path)
    return path.read_bytes()


def _write(tensors: dict[str, Any], case: str, make: Case, r: Random, folder: pathlib.Path) -> None:
    shapes, layers = make
    kind = case.partition("_")[2]
    given = [(None, *shape[1:]) for shape in shapes] if kind.startswith("open_") else shapes
    inputs = [keras.Input(shape, name=f"in{index}") for index, shape in enumerate(given)]
    is_first = kind.startswith("image_")
    before = inputs if is_first else [k.Dense(x.shape[-1])(x) for x in inputs]
    outputs = layers(*before)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    model = keras.Model(inputs, outputs)
    # Values that differ from the initial ones, many of which are zero or one.
    for variable in model.variables:
        if variable.dtype == "float32":
            noise = r.normal(size=variable.shape) * 0.2
            variable.assign(variable.numpy() + np.abs(noise) * np.sign(variable.numpy() + 0.01))
    for layer in model._flatten_layers():
        # It computes by what it took from its variables.
        if isinstance(layer, k.Normalization):
            layer.finalize_state()
    x = [r.normal(size=(4, *shape)).astype(np.float32) for shape in shapes]
    tensors[f"{case}/file"] = np.array(_file(model, folder), object)
    y = model(x if len(x) > 1 else x[0], training=False)
    y = [value.numpy().astype(np.float32) for value in (y if isinstance(y, list) else [y])]
    truth = [r.normal(size=value.shape).astype(np.float32) for value in y]
    model.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse", run_eagerly=True)
    loss = model.train_on_batch(x, truth)
    loss = loss[0] if isinstance(loss, list) else loss
    if not math.isfinite(float(loss)):
        raise ValueError(f"{case}: the loss is {loss}")
    tensors[f"{case}/loss"] = np.float32(loss)
    tensors[f"{case}/after"] = np.array(_file(model, folder), object)
    for name, values in (("x", x), ("y", y), ("truth", truth)):
        for index, value in enumerate(values):
            tensors[f"{case}/{name}{index}"] = value


def main(argv: Sequence[str]) -> None:
    """Writes all cases."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    # `clear_session` collects garbage, which need not be sought in what TensorFlow has imported.
    gc.freeze()
    tensors: dict[str, Any] = {}
    names = list(CASES)
    with tempfile.TemporaryDirectory() as folder:
        for index in range(_COUNT.value):
            r = np.random.default_rng([_SEED.value, index])
            keras.utils.set_random_seed(index)
            name = names[index % len(names)]
            _write(tensors, f"{index:04}_{name}", CASES[name](r), r, pathlib.Path(folder))
            keras.backend.clear_session()
    tf.raw_ops.SaveV2(
        prefix=_OUT.value,
        tensor_names=sorted(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tensors[name] for name in sorted(tensors)],
    )


if __name__ == "__main__":
    app.run(main)
