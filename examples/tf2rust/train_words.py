"""Trains a small network to spot eight spoken words, on voices that a program makes.

A sound is a second at 16,000 samples. Writes `words.keras` and `word_features.npz`, which has one
sound of each kind, in their order, and says how many sounds of other voices the network knows.
"""

from __future__ import annotations

import os
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from absl import app, flags

from examples.tf2rust.voices import RATE, WORDS, Random, Sound, other_word, word

_OUT = flags.DEFINE_string("out", None, "folder to write", required=True)
_EPOCHS = flags.DEFINE_integer("epochs", 7, "times to go through the sounds")
_COUNT = flags.DEFINE_integer("count", 3600, "sounds to learn from")
_RECORDINGS = flags.DEFINE_string(
    "recordings", None, "folder of WAV files of 16,000 samples a second, such as yes-1.wav, to try"
)

# As the page names them, in this order.
KINDS = ("no word", "another word", *WORDS)
_FRAME, _HOP, _BANDS = 320, 80, 40
# Samples of a second with all its echoes: a product of small numbers, as a fast FFT wants it.
_LONG = 18432

Sounds: TypeAlias = npt.NDArray[np.float32]
Kinds: TypeAlias = npt.NDArray[np.int64]


def _no_word(random: Random) -> Sound:
    """Returns noise, a hum, a tone or a few knocks."""
    made = np.zeros(RATE)
    kind = random.integers(4)
    if kind == 0:
        width = int(random.integers(1, 30))
        made = np.convolve(random.normal(size=RATE), np.ones(width), "same")
    elif kind == 1:
        pitch = 10 ** random.uniform(1.7, 3.5) * random.uniform(0.8, 1.25) ** np.linspace(
            0, 1, RATE
        )
        made = np.sin(2 * np.pi * np.cumsum(pitch) / RATE)
    elif kind == 2:
        for start in random.integers(0, RATE - 1600, random.integers(1, 5)):
            decay = np.exp(-np.arange(1600) / random.uniform(30, 300))
            made[start : start + 1600] += random.normal(size=1600) * decay
    return made


def recorded(random: Random, sound: Sound) -> Sounds:
    """Returns a sound as a microphone in a room gives it: dull or bright, with echoes and noise."""
    sound = sound / max(np.abs(sound).max(), 1e-9)
    length = int(random.uniform(0.002, 0.12) * RATE)
    echo = random.normal(size=length) * np.exp(-np.arange(length) / length * 5)
    echo = echo / np.hypot.reduce(echo) * random.uniform(0, 0.6)
    echo[0] = 1
    spectrum = np.fft.rfft(sound, _LONG) * np.fft.rfft(echo, _LONG)
    knots = np.geomspace(60, RATE / 2, 6)
    curve = np.interp(np.fft.rfftfreq(_LONG, 1 / RATE), knots, random.normal(0, 5, len(knots)))
    sound = np.fft.irfft(spectrum * np.exp(np.log(10) / 20 * curve), _LONG)[:RATE]
    width = int(random.integers(1, 12))
    behind = np.convolve(random.normal(size=RATE), np.ones(width) / width**0.5, "same")
    sound = sound / max(np.abs(sound).max(), 1e-9) + behind * 10 ** random.uniform(-3.5, -1.3)
    return np.asarray(sound * 10 ** random.uniform(-1.7, -0.1), np.float32)


def _sounds(random: Random, count: int) -> tuple[Sounds, Kinds]:
    """Returns sounds `[count, RATE]` and their kinds, of which each word has a twelfth."""
    kinds = np.arange(count) % len(KINDS)
    rest = (kinds > 1) & (np.arange(count) // 10 % 6 == 0)
    kinds[rest] = np.arange(count)[rest] % 2
    kinds[: len(KINDS)] = np.arange(len(KINDS))
    makers = (_no_word, other_word)
    made = [
        makers[kind](random) if kind < 2 else word(random, KINDS[kind]) for kind in kinds.tolist()
    ]
    return np.stack([recorded(random, sound) for sound in made]), kinds


def _waves() -> Sounds:
    """Returns the filters of the spectrum, 90 Hz to 7,200 Hz: a cosine and a sine of each.

    Those of high frequencies are short, so that each hears all that lies between its neighbours.
    """
    frequency = np.geomspace(90 + 400, 7200 + 400, _BANDS) - 400
    length = np.clip(2.5 * RATE / np.gradient(frequency), 64, _FRAME)
    at = np.arange(_FRAME)[:, None] - _FRAME / 2 + 0.5
    window = np.where(np.abs(at) < length / 2, np.cos(np.pi * at / length) ** 2, 0) * 4 / length
    angle = 2 * np.pi * at * frequency / RATE
    return np.concatenate([np.cos(angle) * window, np.sin(angle) * window], 1).astype(np.float32)


def _spectrum(keras: Any) -> Any:
    """Returns the model that makes of samples how loud each band is over time."""
    layers, ops = keras.layers, keras.ops
    samples = keras.Input((RATE,), name="samples")
    x = layers.Reshape((RATE, 1), name="channel")(samples)
    waves = layers.Conv1D(2 * _BANDS, _FRAME, _HOP, use_bias=False, trainable=False, name="waves")
    parts = ops.square(waves(x))
    power = layers.AveragePooling1D(2, name="frames")(parts[..., :_BANDS] + parts[..., _BANDS:])
    loud = ops.log(power + 1e-7)
    # Relative to the whole second: neither the distance nor the microphone counts.
    loud = ops.expand_dims(loud - ops.mean(loud, axis=(1, 2), keepdims=True), -1)
    model = keras.Model(samples, loud, name="spectrum")
    waves.set_weights([_waves()[:, None, :]])
    return model


def _head(keras: Any, shape: tuple[int, ...]) -> Any:
    """Returns the model that names the kind of a spectrum."""
    layers = keras.layers
    spectrum = x = keras.Input(shape, name="spectrum")
    # Keras' own momentum of 0.99 takes more steps than there are.
    x = layers.BatchNormalization(momentum=0.95, name="norm")(x)
    for number, (filters, strides) in enumerate(((16, 2), (32, 1), (48, 1), (64, 1))):
        x = layers.Conv2D(
            filters, 3, strides, padding="same", use_bias=False, name=f"conv_{number}"
        )(x)
        x = layers.BatchNormalization(momentum=0.95, name=f"norm_{number}")(x)
        x = layers.ReLU(name=f"relu_{number}")(x)
        if number < 3:
            x = layers.MaxPooling2D(name=f"pool_{number}")(x)
        x = layers.SpatialDropout2D(0.1, name=f"drop_{number}")(x)
    # Wherever in the second the word is.
    x = layers.MaxPooling2D((x.shape[1], 1), name="anywhere")(x)
    x = layers.Flatten(name="flatten")(x)
    x = layers.Dropout(0.3, name="dropout")(x)
    # A model's name is that of its output in the whole.
    return keras.Model(spectrum, layers.Dense(len(KINDS), "softmax", name="share")(x), name="kind")


def _recordings(folder: Path) -> tuple[Sounds, Kinds]:
    """Returns the loudest second of each file, and the kind that its name begins with."""
    sounds, kinds = [], []
    for path in sorted(folder.glob("*.wav")):
        with wave.open(str(path)) as file:
            assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 2**15
        samples = np.pad(samples, (0, max(0, RATE - len(samples))))
        loud = np.convolve(samples**2, np.ones(RATE), "valid")
        start = int(np.median(np.flatnonzero(loud >= 0.999 * loud.max())))
        sounds.append(samples[start : start + RATE].astype(np.float32))
        name = path.stem.split("-")[0]
        kinds.append(KINDS.index(name) if name in KINDS else 1)
    return np.stack(sounds), np.array(kinds)


def _main(_: Sequence[str]) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras

    keras.utils.set_random_seed(1)
    spectrum = _spectrum(keras)
    sounds, kinds = _sounds(np.random.default_rng(1), _COUNT.value)
    heard = spectrum.predict(sounds, batch_size=100, verbose=0)
    head = _head(keras, heard.shape[1:])
    steps = _COUNT.value * _EPOCHS.value // 32
    # A rate that is large in between learns in fewer steps.
    rate = keras.optimizers.schedules.CosineDecay(
        1.2e-3, steps * 8 // 10, warmup_target=1.2e-2, warmup_steps=steps * 2 // 10
    )
    head.compile(
        keras.optimizers.Adam(rate),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        jit_compile=False,
    )
    head.fit(heard, kinds, epochs=_EPOCHS.value, verbose=0)
    model = keras.Model(spectrum.input, head(spectrum.output), name="words")
    rest, rest_kinds = _sounds(np.random.default_rng(2), 600)
    found = model.predict(rest, batch_size=100, verbose=0)
    accuracy = np.mean(found.argmax(1) == rest_kinds)
    print(f"accuracy on {len(rest)} sounds that it has not heard: {accuracy:.1%}")
    if _RECORDINGS.value:
        files, named = _recordings(Path(_RECORDINGS.value))
        best = model.predict(files, batch_size=100, verbose=0).argmax(1)
        for kind in np.unique(named):
            of = named == kind
            counts = np.bincount(best[of], minlength=len(KINDS))
            heard_as = ", ".join(f"{KINDS[i]} {n}" for i, n in enumerate(counts) if n)
            print(f"{KINDS[kind]}: {np.mean(best[of] == kind):.0%} of {of.sum()} ({heard_as})")
        print(f"recordings: {np.mean(best == named):.1%} of {len(named)}")
    out = Path(_OUT.value)
    out.mkdir(parents=True, exist_ok=True)
    model.save(out / "words.keras")
    known = found.argmax(1) == rest_kinds
    some = [np.flatnonzero(known & (rest_kinds == kind))[0] for kind in range(len(KINDS))]
    np.savez(out / "word_features.npz", samples=rest[some], predictions=found[some])


if __name__ == "__main__":
    app.run(_main)
