"""Trains a small classifier of sounds that are made here, and records what it makes of some.

A sound is a second at 8,000 samples. The model knows six kinds: silence, noise, claps, and tones
that stay, rise or fall, as one whistles them. Writes `sounds.keras` and `sound_features.npz`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from absl import app, flags

_OUT = flags.DEFINE_string("out", None, "folder to write", required=True)
_EPOCHS = flags.DEFINE_integer("epochs", 4, "times to go through the sounds")

RATE = 8000
# As the page names them, in this order.
KINDS = ("silence", "noise", "claps", "a steady tone", "a rising tone", "a falling tone")
_FRAME, _HOP, _BINS = 256, 125, 48

Sound: TypeAlias = npt.NDArray[np.float64]
Random: TypeAlias = np.random.Generator


def _envelope(random: Random) -> Sound:
    """Returns how loud a tone is: it begins and ends at random times, softly."""
    start, length = random.uniform(0, 0.35), random.uniform(0.45, 0.95)
    time = np.arange(RATE) / RATE
    return np.clip((time - start) / 0.02, 0, 1) * np.clip((start + length - time) / 0.02, 0, 1)


def _tone(random: Random, ratio: float) -> Sound:
    """Returns a tone whose frequency grows by a ratio over the second, with weak overtones."""
    first = random.uniform(500, 1800)
    first = first / ratio if ratio < 1 else first
    frequency = first * ratio ** np.linspace(0, 1, RATE)
    frequency *= 1 + 0.01 * random.normal() * np.sin(np.arange(RATE) * random.uniform(0.002, 0.006))
    phase = 2 * np.pi * np.cumsum(frequency) / RATE + random.uniform(0, 6)
    overtones = sum(random.uniform(0, 0.2) * np.sin(n * phase) for n in (2, 3))
    return np.asarray((np.sin(phase) + overtones) * _envelope(random))


def _claps(random: Random) -> Sound:
    sound = np.zeros(RATE)
    for start in random.integers(0, RATE - 800, random.integers(1, 4)):
        length = int(random.integers(300, 800))
        decay = np.exp(-np.arange(length) / random.uniform(30, 120))
        sound[start : start + length] += random.normal(size=length) * decay
    return sound


def _noise(random: Random) -> Sound:
    width = int(random.integers(1, 12))
    smooth = np.convolve(random.normal(size=RATE), np.ones(width) / width**0.5, "same")
    return np.asarray(smooth * (1 + 0.3 * np.sin(np.arange(RATE) * random.uniform(0, 0.002))))


_MAKERS: tuple[Callable[[Random], Sound], ...] = (
    lambda random: np.zeros(RATE),
    _noise,
    _claps,
    lambda random: _tone(random, random.uniform(0.97, 1.03)),
    lambda random: _tone(random, random.uniform(1.3, 2.2)),
    lambda random: _tone(random, 1 / random.uniform(1.3, 2.2)),
)


def sound(random: Random, kind: int) -> npt.NDArray[np.float32]:
    """Returns a sound of a kind, as loud as microphones are, with some noise behind it."""
    made = _MAKERS[kind](random)
    peak = np.abs(made).max() or 1
    behind = random.normal(size=RATE) * 10 ** random.uniform(-4, -2.7)
    return np.asarray(made / peak * 10 ** random.uniform(-1.3, 0) + behind, np.float32)


def _sounds(random: Random, count: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    kinds = np.arange(count) % len(KINDS)
    return np.stack([sound(random, int(kind)) for kind in kinds]), kinds


def _waves() -> npt.NDArray[np.float32]:
    """Returns the filters of the spectrum, 120 Hz to 3,600 Hz: a cosine and a sine of each."""
    frequency = np.geomspace(120, 3600, _BINS)
    angle = 2 * np.pi * np.outer(np.arange(_FRAME) - _FRAME / 2, frequency) / RATE
    window = np.hanning(_FRAME)[:, None] / _FRAME * 4
    return np.concatenate([np.cos(angle) * window, np.sin(angle) * window], 1).astype(np.float32)


def _main(_: Sequence[str]) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras

    keras.utils.set_random_seed(1)
    layers, ops = keras.layers, keras.ops
    samples = x = keras.Input((RATE,), name="samples")
    x = layers.Reshape((RATE, 1), name="channel")(x)
    spectrum = layers.Conv1D(2 * _BINS, _FRAME, _HOP, use_bias=False, trainable=False, name="waves")
    parts = ops.square(spectrum(x))
    power = parts[..., :_BINS] + parts[..., _BINS:]
    x = loud = ops.expand_dims(ops.log(power + 1e-7), -1)
    # Keras' own momentum of 0.99 takes more steps than there are.
    x = layers.BatchNormalization(momentum=0.95, name="norm")(x)
    for number, filters in enumerate((8, 16, 24)):
        x = layers.Conv2D(filters, 3, activation="relu", name=f"conv_{number}")(x)
        x = layers.MaxPooling2D(name=f"pool_{number}")(x)
    x = layers.Flatten(name="flatten")(x)
    x = layers.Dropout(0.3, name="dropout")(x)
    model = keras.Model(samples, layers.Dense(len(KINDS), "softmax", name="kind")(x), name="sounds")
    spectrum.set_weights([_waves()[:, None, :]])
    sounds, kinds = _sounds(np.random.default_rng(1), 3000)
    # The spectrum does not learn: it is computed once.
    heard = keras.Model(samples, loud).predict(sounds, batch_size=100, verbose=0)
    head = keras.Model(loud, model.output)
    steps = len(sounds) * _EPOCHS.value // 32
    head.compile(
        keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(4e-3, steps)),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        jit_compile=False,
    )
    head.fit(heard, kinds, epochs=_EPOCHS.value, verbose=0)
    rest, rest_kinds = _sounds(np.random.default_rng(2), 600)
    accuracy = np.mean(model.predict(rest, batch_size=100, verbose=0).argmax(1) == rest_kinds)
    print(f"accuracy on {len(rest)} sounds that it has not heard: {accuracy:.1%}")
    out = Path(_OUT.value)
    out.mkdir(parents=True, exist_ok=True)
    model.save(out / "sounds.keras")
    some = rest[:12]
    np.savez(out / "sound_features.npz", samples=some, predictions=model.predict(some, verbose=0))


if __name__ == "__main__":
    app.run(_main)
