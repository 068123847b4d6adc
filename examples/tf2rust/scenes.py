"""What is around things in pictures that are made: colours of a room, light, a camera's noise."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Picture: TypeAlias = npt.NDArray[np.float32]
Random: TypeAlias = np.random.Generator


def places(size: int) -> tuple[Array, Array]:
    """Returns how far right and how far down each pixel of a square is, -1 to 1."""
    y, x = np.meshgrid(*[np.linspace(-1, 1, size)] * 2, indexing="ij")
    return x, y


def background(random: Random, x: Array, y: Array) -> Array:
    """Returns a soft mixture of a few colours with edges at random places, as a room has them."""
    image = np.broadcast_to(random.uniform(0, 1, 3), (*x.shape, 3)).copy()
    for _ in range(random.integers(0, 5)):
        angle, at = random.uniform(0, 2 * np.pi), random.uniform(-0.9, 0.9)
        width = 10 ** random.uniform(-2, 0)
        side = np.clip((x * np.cos(angle) + y * np.sin(angle) - at) / width + 0.5, 0, 1)[..., None]
        image += side * (random.uniform(0, 1, 3) - image) * random.uniform(0.2, 1)
    return image


def photographed(random: Random, image: Array, x: Array, y: Array) -> Picture:
    """Returns an image in the light of a room, with the noise of a camera."""
    angle = random.uniform(0, 2 * np.pi)
    light = 1 + random.uniform(0, 0.35) * (x * np.cos(angle) + y * np.sin(angle))
    image = image * light[..., None] * random.uniform(0.6, 1.1)
    image += random.normal(size=image.shape) * random.uniform(0, 0.04)
    return np.asarray(np.clip(image, 0, 1), np.float32)
