"""Complex numbers inside of a model: spectra, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from converters.tf.tests.checks import checked, few
from tools.codegen.conversion import UnsupportedError

_SIZES = st.integers(1, 150)
_fft = tf.signal


def _pair(z: Any) -> list[Any]:
    return [tf.math.real(z), tf.math.imag(z)]


@few
@given(_SIZES, _SIZES)
def test_transforms_of_any_length(size: int, points: int) -> None:
    """Cut, or with zeros at their end; primes, and products of few and of many."""

    def body(x: Any, y: Any) -> list[Any]:
        spectrum = _fft.rfft(x, [points])
        z = tf.complex(x, y)
        there, back = _pair(_fft.fft(z)), _pair(_fft.ifft(z))
        return [*_pair(spectrum), *there, *back, _fft.irfft(z, [points])]

    checked([(size,), (size,)], body)


@few
@given(st.integers(1, 12), st.integers(1, 12), st.integers(2, 12), st.integers(2, 12))
def test_transforms_of_images(rows: int, columns: int, tall: int, wide: int) -> None:
    def body(x: Any, y: Any) -> list[Any]:
        z = tf.complex(x, y)
        spectrum = _fft.rfft2d(x, [tall, wide])
        planes = [*_pair(spectrum), *_pair(_fft.fft2d(z)), *_pair(_fft.ifft2d(z))]
        return [*planes, _fft.irfft2d(spectrum, [tall, wide])]

    checked([(rows, columns), (rows, columns)], body)


def test_what_is_real_has_a_phase_of_half_a_turn() -> None:
    """And not of minus a half: the sign of a zero decides."""

    def body(x: Any) -> list[Any]:
        real = [tf.gather(tf.math.angle(_fft.rfft(x, [n])), [0, n // 2], axis=1) for n in (8, 20)]
        return [*real, tf.math.angle(_fft.fft(tf.complex(x, tf.zeros_like(x))))[:, :1]]

    checked([(17,)], body)


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [2, 15, 64])
def test_cosine_transforms(kind: int, size: int) -> None:
    def body(x: Any) -> list[Any]:
        found = [_fft.dct(x, kind), _fft.idct(x, kind)]
        return found if kind == 1 else [*found, _fft.dct(x, kind, norm="ortho")]

    checked([(size,)], body)


@pytest.mark.parametrize(("frame", "step", "points"), [(32, 8, 32), (20, 10, 32), (16, 16, 20)])
def test_a_signal_and_back(frame: int, step: int, points: int) -> None:
    def body(x: Any) -> list[Any]:
        spectra = _fft.stft(x, frame, step, points)
        window = _fft.inverse_stft_window_fn(step)
        loud = tf.where(tf.abs(spectra) > 0.5, spectra, tf.zeros_like(spectra))
        return [
            _fft.inverse_stft(spectra, frame, step, points, window_fn=window),
            _fft.inverse_stft(loud, frame, step, points),
        ]

    checked([(100,)], body)


@pytest.mark.parametrize("center", [True, False])
def test_a_signal_and_back_in_keras(center: bool) -> None:
    o = keras.ops

    def body(x: Any) -> list[Any]:
        parts = o.stft(x, 32, 8, 32, center=center)
        return [
            *parts,
            o.istft(parts, 32, 8, 32, center=center),
            o.irfft(o.rfft(x)),
            o.irfft(o.rfft(x), fft_length=30),
            *o.fft2((x[:, None], x[:, None] * 2)),
            *o.ifft2((x[:, None], x[:, None] * 2)),
        ]

    checked([(96,)], body)


def test_features_of_speech() -> None:
    def body(x: Any) -> Any:
        power = tf.square(tf.abs(_fft.stft(x, 64, 32)))
        mel = tf.matmul(power, _fft.linear_to_mel_weight_matrix(12, 33, 8000))
        return _fft.mfccs_from_log_mel_spectrograms(tf.math.log(mel + 1e-2))

    checked([(256,)], body)


def _moved(z: Any) -> Any:
    y = tf.reshape(z[:, :16], [-1, 4, 4])
    y = tf.concat([tf.transpose(y, [0, 2, 1]), y[:, ::-1], tf.roll(y, 1, 2)], 1)
    y = tf.stack([*tf.unstack(y, axis=1), *tf.split(y[:, 0], 1, 1)], 1)
    return tf.gather(
        tf.pad(tf.tile(tf.squeeze(y[:, None], 1), [1, 1, 2]), [[0, 0], [0, 2], [1, 0]]),
        [0, 3],
        axis=1,
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a * b + a - 2j,
        lambda a, b: a / (b + 3.0) - -a,
        lambda a, b: a * tf.math.conj(b),
        lambda a, b: tf.exp(a / 10.0) * tf.square(b) + tf.math.reciprocal(b + 20.0),
        lambda a, b: tf.reduce_sum(a, -1, keepdims=True) + tf.reduce_mean(b, -1, keepdims=True),
        lambda a, b: tf.where(tf.math.real(a) > 0, a, b),
        lambda a, b: tf.matmul(a[:, :, None], b[:, :, None], adjoint_a=True),
        lambda a, b: tf.einsum("bi,bj->bij", a, b),
        lambda a, b: tf.cast(tf.math.real(a), tf.complex64) * tf.ones_like(b),
        lambda a, b: _moved(a) + _moved(b),
        lambda a, b: _fft.fftshift(a, axes=[1]),
    ],
)
def test_numbers_of_a_spectrum(function: Callable[..., Any]) -> None:
    def body(x: Any, y: Any) -> list[Any]:
        found = function(_fft.rfft(x), _fft.rfft(y))
        return [*_pair(found), tf.abs(found)]

    checked([(40,), (40,)], body)


def test_complex_outputs_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="a complex number"):
        checked([(8,)], _fft.rfft)
