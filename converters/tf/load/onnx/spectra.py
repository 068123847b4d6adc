"""Fourier transforms; complex numbers are pairs along the last axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir.symbolic import of_shape
from converters.tf.load.onnx.context import Context, Handler, Result, axis_of, fixed, whole
from converters.tf.load.onnx.values import Known
from converters.tf.load.saved_model.replay import Refused


def _parts(x: Any) -> tuple[Any, Any]:
    """Returns real and imaginary parts; no imaginary ones of real numbers."""
    if x.shape[-1] not in (1, 2):
        raise Refused(f"numbers of {x.shape[-1]} parts")
    return x[..., 0], x[..., 1] if x.shape[-1] == 2 else None


def _sized(x: Any, length: int) -> Any:
    """Returns rows of a length, cut or with zeros at the end."""
    size = int(x.shape[-1])
    if size >= length:
        return x[..., :length]
    return tf.pad(x, [[0, 0]] * (x.shape.rank - 1) + [[0, length - size]])


def _pairs(y: Any) -> Any:
    return tf.stack([tf.math.real(y), tf.math.imag(y)], -1)


def _spectrum(real: Any, imaginary: Any, one_sided: bool) -> Any:
    """Returns the transform of rows, as pairs."""
    length = int(real.shape[-1])
    if imaginary is None and one_sided:
        return _pairs(tf.signal.rfft(real, [length]))
    zeros = tf.zeros_like(real) if imaginary is None else imaginary
    y = _pairs(tf.signal.fft(tf.complex(real, zeros)))
    return y[..., : length // 2 + 1, :] if one_sided else y


def _dft(ctx: Context) -> Result:
    rank = ctx.rank(0)
    if ctx.node.version < 20:
        axis = axis_of(int(ctx.attr("axis", 1)), rank)
    else:
        axis = axis_of(ctx.ints(2)[0] if ctx.has(2) else -2, rank)
    if axis == rank - 1:
        raise Refused("a transform along the parts of complex numbers")
    inverse, one_sided = bool(ctx.attr("inverse", 0)), bool(ctx.attr("onesided", 0))
    size = fixed(ctx.shape(0)[axis], "the length of what is transformed")
    halved = inverse and one_sided
    length = ctx.ints(1)[0] if ctx.has(1) else 2 * (size - 1) if halved else size
    if not 0 < length <= 1 << 20:
        raise Refused(f"a transform of {length} points")
    others = [i for i in range(rank - 1) if i != axis]
    order = (*others, axis)
    real, imaginary = (
        None if part is None else tf.transpose(part, order) for part in _parts(ctx.form(0))
    )
    bins = length // 2 + 1 if halved else length
    real = _sized(real, bins)
    imaginary = None if imaginary is None else _sized(imaginary, bins)
    if not inverse:
        y = _spectrum(real, imaginary, one_sided)
    else:
        imaginary = tf.zeros_like(real) if imaginary is None else imaginary
        given = tf.complex(real, imaginary)
        y = tf.signal.irfft(given, [length])[..., None] if one_sided else None
        y = _pairs(tf.signal.ifft(given)) if y is None else y
    back = [*(order.index(i) for i in range(rank - 1)), rank - 1]
    return ctx.result(tf.transpose(y, back))


def _short_time(ctx: Context) -> Result:
    signal = ctx.form(0)
    if ctx.rank(0) == 2:  # As onnxruntime takes real numbers, too.
        signal = tf.expand_dims(signal, -1)
    steps = whole(ctx.shape(0)[1], "the length of a signal")
    step = ctx.ints(1)[0]
    if ctx.has(3):
        length = ctx.ints(3)[0]
    elif ctx.has(2):
        length = fixed(ctx.shape(2)[0], "the length of a window")
    else:
        raise Refused("neither a window nor its length")
    known = isinstance(steps, int)
    if step < 1 or length < 1 or (known and length > steps):
        raise Refused(f"frames of {length} every {step} steps of {steps}")
    count = (steps - length) // step + 1
    turns = np.arange(count) if known else tf.range(ctx.session.symbol(of_shape((count,)))[0])
    places = turns[:, None] * step + np.arange(length, dtype=np.int64)
    frames = [None if part is None else tf.gather(part, places, axis=1) for part in _parts(signal)]
    if ctx.has(2):
        frames = [None if part is None else part * ctx.form(2) for part in frames]
    y = _spectrum(frames[0], frames[1], bool(ctx.attr("onesided", 1)))
    return ctx.result(y, None, (ctx.shape(0)[0], count, *y.shape[2:]))


def _mel_weights(ctx: Context) -> Result:
    """Triangles over the bins of a spectrum, as high as the suite has them: on whole bins."""
    bins, length, rate = (ctx.ints(i)[0] for i in range(3))
    low, high = (float(ctx.array(i).ravel()[0]) for i in (3, 4))
    if bins < 1 or length < 1 or rate < 1 or bins * length > 1 << 24:
        raise Refused(f"{bins} mel bands of {length} points at {rate} Hz")
    count = length // 2 + 1
    ends = 2595 * np.log10(1 + np.array([low, high]) / 700)
    centres = np.arange(bins + 2) * ((ends[1] - ends[0]) / (bins + 2)) + ends[0]
    at = (700 * (10 ** (centres / 2595) - 1) * (length + 1) // rate).astype(int)
    result = np.zeros((count, bins), np.float32)
    for band in range(bins):
        first, middle, last = at[band : band + 3]
        if middle == first:
            result[middle, band] = 1
        else:
            rising = np.arange(first, middle + 1)
            result[rising, band] = (rising - first) / (middle - first)
        if last > middle:
            falling = np.arange(middle, last)
            result[falling, band] = (last - falling) / (last - middle)
    return Known(result)


OPS: Mapping[str, Handler] = {
    "DFT": _dft,
    "MelWeightMatrix": _mel_weights,
    "STFT": _short_time,
}
