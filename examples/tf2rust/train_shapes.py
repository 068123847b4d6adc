"""Trains a small classifier of shapes in pictures that are made here; records what it answers.

A picture has 64 x 64 pixels of red, green and blue, 0 to 1. It shows one shape or none. The shape
is filled or drawn as a line, turned and slanted. Background and light differ in each picture.
Writes `shapes.keras` and `shape_features.npz`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from absl import app, flags

from examples.tf2rust.scenes import Array, Picture, Random, background, photographed, places

_OUT = flags.DEFINE_string("out", None, "folder to write", required=True)
_EPOCHS = flags.DEFINE_integer("epochs", 3, "times to go through the pictures")
_COUNT = flags.DEFINE_integer("count", 6000, "pictures to learn from")

SIZE = 64
# As the page names them, in this order.
KINDS = ("no shape", "a circle", "a triangle", "a square", "a star", "a cross")


def _polygon(sides: int) -> Callable[[Array, Array], Array]:
    def distance(u: Array, v: Array) -> Array:
        part = 2 * np.pi / sides
        angle = (np.arctan2(v, u) + part / 2) % part - part / 2
        return np.asarray(np.hypot(u, v) * np.cos(angle) - np.cos(part / 2))

    return distance


def _star(u: Array, v: Array) -> Array:
    """Is negative within a star of five points: lines from its points to its notches."""
    part = 2 * np.pi / 5
    angle = np.abs((np.arctan2(v, u) + part / 2) % part - part / 2)
    radius, notch = np.hypot(u, v), 0.42
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    along, across = notch * np.cos(part / 2) - 1, notch * np.sin(part / 2)
    return np.asarray(((x - 1) * across - y * along) / np.hypot(along, across))


def _cross(u: Array, v: Array) -> Array:
    x, y = np.abs(u), np.abs(v)
    arm = 0.32
    return np.asarray(np.minimum(np.maximum(x - 1, y - arm), np.maximum(y - 1, x - arm)))


# Negative inside of a shape, of about one unit from its middle to its border.
_DISTANCES: tuple[Callable[[Array, Array], Array], ...] = (
    lambda u, v: np.hypot(u, v) - 1,
    _polygon(3),
    _polygon(4),
    _star,
    _cross,
)


def _shape(random: Random, image: Array, kind: int, x: Array, y: Array) -> Array:
    """Draws a shape whose colour differs from what is behind it."""
    angle, size = random.uniform(0, 2 * np.pi), random.uniform(0.35, 0.75)
    left, down = random.uniform(-0.2, 0.2, 2)
    slant = random.uniform(-0.15, 0.15, (2, 2)) + np.eye(2)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    u, v = np.tensordot(turn @ slant / size, np.stack([x - left, y - down]), 1)
    distance = _DISTANCES[kind - 1](u, v) * size
    if random.random() < 0.5:
        width = random.uniform(0.04, 0.09)
        distance = np.abs(distance + width) - width
    behind = image[np.abs(distance) < 0.2].mean(0)
    colour = random.uniform(0, 1, 3)
    while np.abs(colour - behind).mean() < 0.25:
        colour = random.uniform(0, 1, 3)
    soft = random.uniform(0.02, 0.08)
    inside = np.clip(0.5 - distance / soft, 0, 1)[..., None]
    return np.asarray(image + inside * (colour - image))


def picture(random: Random, kind: int, size: int = SIZE) -> Picture:
    """Returns a picture of a kind, `[size, size, 3]`, with the light and the noise of a camera."""
    x, y = places(size)
    image = background(random, x, y)
    if kind:
        image = _shape(random, image, kind, x, y)
    return photographed(random, image, x, y)


def _pictures(random: Random, count: int) -> tuple[Picture, npt.NDArray[np.int64]]:
    kinds = np.arange(count) % len(KINDS)
    return np.stack([picture(random, int(kind)) for kind in kinds]), kinds


def _main(_: Sequence[str]) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras

    keras.utils.set_random_seed(1)
    layers = keras.layers
    image = x = keras.Input((SIZE, SIZE, 3), name="image")
    for number, filters in enumerate((12, 24, 32, 48)):
        strides = 2 if number == 0 else 1
        x = layers.Conv2D(
            filters, 3, strides, padding="same", use_bias=False, name=f"conv_{number}"
        )(x)
        # Keras' own momentum of 0.99 takes more steps than there are.
        x = layers.BatchNormalization(momentum=0.95, name=f"norm_{number}")(x)
        x = layers.ReLU(name=f"relu_{number}")(x)
        x = layers.MaxPooling2D(name=f"pool_{number}")(x)
    x = layers.Flatten(name="flatten")(x)
    x = layers.Dropout(0.1, name="dropout")(x)
    model = keras.Model(image, layers.Dense(len(KINDS), "softmax", name="kind")(x), name="shapes")
    steps = _COUNT.value * _EPOCHS.value // 32
    # A rate that is large in between learns in fewer steps.
    rate = keras.optimizers.schedules.CosineDecay(
        2e-3, steps * 7 // 10, warmup_target=2e-2, warmup_steps=steps * 3 // 10
    )
    model.compile(
        keras.optimizers.Adam(rate),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        jit_compile=False,
    )
    model.fit(*_pictures(np.random.default_rng(1), _COUNT.value), epochs=_EPOCHS.value, verbose=0)
    rest = _pictures(np.random.default_rng(2), 600)
    accuracy = model.evaluate(*rest, verbose=0)[1]
    print(f"accuracy on {len(rest[0])} pictures that it has not seen: {accuracy:.1%}")
    out = Path(_OUT.value)
    out.mkdir(parents=True, exist_ok=True)
    model.save(out / "shapes.keras")
    some = rest[0][:12]
    np.savez(out / "shape_features.npz", image=some, predictions=model.predict(some, verbose=0))


if __name__ == "__main__":
    app.run(_main)
