"""Random models with layers of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from bindings.client.tests.keras_draws import Case, Random, drawn_shape, flag, pick

k = keras.layers


def _range(r: Random, low: float, high: float) -> tuple[float, float]:
    """A range of one number, from which a layer draws that number."""
    value = round(float(r.uniform(low, high)), 3)
    return value, value


def _moved(r: Random) -> Any:
    """A layer that moves pixels, always by as much."""
    options = {
        "fill_mode": pick(r, "reflect", "wrap", "constant", "nearest"),
        "interpolation": pick(r, "nearest", "bilinear"),
        "fill_value": round(float(r.normal()), 3),
    }
    both = _range(r, -0.4, 0.4), _range(r, -0.4, 0.4)
    return pick(
        r,
        k.RandomRotation(both[0], **options),
        k.RandomZoom(both[0], pick(r, None, both[1]), **options),
        k.RandomTranslation(*both, **options),
    )


def _resized(r: Random, *methods: str) -> Any:
    height, width = (int(size) for size in r.integers(3, 12, 2))
    method = pick(r, *methods)
    fit: dict[str, Any] = pick(
        r, {}, {"crop_to_aspect_ratio": True}, {"pad_to_aspect_ratio": True, "fill_value": 0.5}
    )
    layer = k.Resizing(height, width, method, antialias=flag(r), **fit)
    return pick(r, layer, layer, k.CenterCrop(height, width))


def learned_image(r: Random) -> Case:
    """The gradient passes through a layer of images."""
    methods = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5")
    return [drawn_shape(r, 2)], _moved(r) if flag(r) else _resized(r, *methods)


def _together(layers: list[Any]) -> Callable[[Any], Any]:
    """All of some layers, and one with weights."""
    join, conv = k.Concatenate(), k.Conv2D(2, 1)
    return lambda x: conv(join([layer(x) for layer in layers]))


def image_resized(r: Random) -> Case:
    """Layers that resize and crop."""
    rows, columns, _ = drawn_shape(r, 2)
    height, width = (int(size) for size in r.integers(3, 12, 2))
    fits: list[dict[str, Any]] = [
        {"crop_to_aspect_ratio": True},
        {"pad_to_aspect_ratio": True, "fill_value": 0.5},
        {},
    ]
    methods = [str(one) for one in r.permutation(["area", "bilinear", "bicubic", "lanczos5"])]
    layers = [
        k.Resizing(height, width, method, antialias=flag(r), **fit)
        for method, fit in zip(methods[:3], fits, strict=True)
    ]
    return [(rows, columns, 3)], _together([*layers, k.CenterCrop(height, width)])


def image_moved(r: Random) -> Case:
    """Layers that move pixels, always by as much."""
    rows, columns, _ = drawn_shape(r, 2)
    still = k.RandomPerspective((1.0, 1.0), scale=0.0, interpolation=pick(r, "nearest", "bilinear"))
    return [(rows, columns, 3)], _together([*(_moved(r) for _ in range(3)), still])


def image_colored(r: Random) -> Case:
    """What changes colors, always by as much, of inputs that are in the range."""
    rows, columns, _ = drawn_shape(r, 2)
    values = (-8.0, 8.0)

    def part() -> tuple[float, float]:
        return _range(r, 0.1, 0.9)

    bits = int(r.integers(1, 9))
    less = part()[0]
    layers = [
        k.AutoContrast(values),
        k.ContrastLimitedAdaptiveHistogramEqualization(
            values, pick(r, 0.0, 1.5, 4.0), pick(r, (1, 1), (2, 3), (8, 8))
        ),
        k.RandomBrightness(_range(r, -0.5, 0.5), value_range=(-1.5, 1.5)),
        k.RandomColorDegeneration(part(), value_range=values),
        k.RandomColorJitter(
            values,
            brightness_factor=_range(r, -0.1, 0.1),
            contrast_factor=pick(r, None, (-less, less)),
            saturation_factor=pick(r, None, part()),
            hue_factor=pick(r, None, (1.0, 1.0)),
        ),
        k.RandomContrast((-less, less), value_range=(-1.5, 1.5)),
        k.RandomErasing((1.0, 1.0), (1.0, 1.0), pick(r, 0.5, [0.5, -9.0, 2.0]), values),
        k.RandomGaussianBlur((1.0, 1.0), pick(r, 3, (3, 5)), part(), values),
        k.RandomGrayscale(1.0),
        # Half of the circle in either direction.
        k.RandomHue((1.0, 1.0), values),
        k.RandomInvert((1.0, 1.0), values),
        k.RandomPosterization((bits, bits), values),
        k.RandomSaturation(part(), values),
        k.RandomSharpness(part(), values),
        k.Solarization(0.0, 0.0, values),
    ]
    return [(rows, columns, 3)], _together(layers)
