"""Calls of ops over images: pools, convolutions by channel, resizing, batch norms, fused layers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tests.conformance.cases import Array, Call, values

Types = Mapping[str, np.dtype[Any]]


def _image(types: Types, *shape: int, seed: int = 0) -> Array:
    return values(shape, types["T"], seed, -3, 3)


_WINDOWS = ((2, 2, "VALID"), (3, 2, "SAME"), (3, 1, "VALID"), (2, 3, "SAME"))
"""Size, stride, padding."""

_EMPTY = ((2, 0, 9, 5), (2, 8, 0, 5), (0, 8, 9, 5), (2, 8, 9, 0), (2, 0, 0, 5))
"""Images without a pixel, no images, and images without channels."""

_OVER_EMPTY = ((2, 2, "VALID"), (3, 2, "SAME"), (4, 2, "VALID"), (4, 1, "VALID"))
"""Windows over them. Where no number of windows would fit, all refuse."""


def _window(size: int, stride: int, padding: str) -> dict[str, Any]:
    return {"ksize": [1, size, size, 1], "strides": [1, stride, stride, 1], "padding": padding}


def _outputs(
    size: int, stride: int, padding: str, height: int = 8, width: int = 9
) -> tuple[int, int]:
    reach = stride - 1 if padding == "SAME" else stride - size
    return max(0, (height + reach) // stride), max(0, (width + reach) // stride)


def _pool(types: Types, argument: str) -> Iterator[Call]:
    for i, window in enumerate(_WINDOWS):
        yield Call({argument: _image(types, 2, 8, 9, 5, seed=i)}, _window(*window))
    # A pixel that no window fits: oneDNN's maximum ends the process, and its mean is empty.
    for shape in (*_EMPTY, *([(2, 1, 1, 5)] if argument == "value" else [])):
        for window in _OVER_EMPTY:
            yield Call({argument: _image(types, *shape)}, _window(*window))


def _max_pool_grad(types: Types) -> Iterator[Call]:
    for i, (size, stride, padding) in enumerate(_WINDOWS):
        x = _image(types, 2, 8, 9, 5, seed=i)
        height, width = _outputs(size, stride, padding)
        pads = [(0, 0)] * 4
        if padding == "SAME":
            needed = [(o - 1) * stride + size - n for o, n in ((height, 8), (width, 9))]
            pads[1:3] = [(max(n, 0) // 2, max(n, 0) - max(n, 0) // 2) for n in needed]
        padded = np.pad(x, pads, constant_values=-np.inf)
        y = np.stack(
            [
                np.stack(
                    [
                        padded[:, r : r + size, c : c + size].max((1, 2))
                        for c in range(0, width * stride, stride)
                    ],
                    1,
                )
                for r in range(0, height * stride, stride)
            ],
            1,
        )
        gradient = _image(types, *y.shape, seed=i + 50)
        call = {"orig_input": x, "orig_output": y, "grad": gradient}
        yield Call(call, _window(size, stride, padding))
    # The CPU leaves the gradient of an image that no window fits as the memory was.
    for shape in _EMPTY:
        for window in _OVER_EMPTY:
            y = _image(types, shape[0], *_outputs(*window, *shape[1:3]), shape[3])
            call = {"orig_input": _image(types, *shape), "orig_output": y, "grad": y}
            yield Call(call, _window(*window))


def _avg_pool_grad(types: Types) -> Iterator[Call]:
    for i, window in enumerate(_WINDOWS):
        shape = np.array([2, 8, 9, 5], np.int32)
        gradient = _image(types, 2, *_outputs(*window), 5, seed=i)
        yield Call({"orig_input_shape": shape, "grad": gradient}, _window(*window))
    # oneDNN's kernel refuses images without channels, and those that the window does not fit.
    # TensorFlow's own kernel, for float16, takes both.
    for empty in (*(s for s in _EMPTY if s[3]), (2, 1, 1, 5)):
        for window in _OVER_EMPTY[:2]:
            gradient = _image(types, empty[0], *_outputs(*window, *empty[1:3]), empty[3])
            call = {"orig_input_shape": np.array(empty, np.int32), "grad": gradient}
            yield Call(call, _window(*window))


_SLIDES = ((3, 1, "SAME"), (3, 2, "VALID"), (2, 1, "VALID"))


def _depthwise(types: Types, gradient_of: str) -> Iterator[Call]:
    for i, (size, stride, padding) in enumerate(_SLIDES):
        x = _image(types, 2, 8, 9, 3, seed=i)
        w = _image(types, size, size, 3, 2, seed=i + 20)
        gradient = _image(types, 2, *_outputs(size, stride, padding), 6, seed=i + 50)
        calls: dict[str, dict[str, Array | list[Array]]] = {
            "": {"input": x, "filter": w},
            "input": {
                "input_sizes": np.array(x.shape, np.int32),
                "filter": w,
                "out_backprop": gradient,
            },
            "filter": {
                "input": x,
                "filter_sizes": np.array(w.shape, np.int32),
                "out_backprop": gradient,
            },
        }
        attributes = {"strides": [1, stride, stride, 1], "padding": padding}
        yield Call(calls[gradient_of], attributes)


_SIZES = ((8, 10), (3, 9), (4, 5), (1, 1))


def _modes() -> Iterator[dict[str, bool]]:
    yield {}
    yield {"align_corners": True}
    yield {"half_pixel_centers": True}


def _resize(types: Types) -> Iterator[Call]:
    for size in _SIZES:
        for mode in _modes():
            images = _image(types, 2, 4, 5, 3)
            yield Call({"images": images, "size": np.array(size, np.int32)}, mode)


def _resize_nearest_grad(types: Types) -> Iterator[Call]:
    for size in _SIZES:
        for mode in _modes():
            gradient = _image(types, 2, *size, 3)
            yield Call({"grads": gradient, "size": np.array([4, 5], np.int32)}, mode)


def _resize_bilinear_grad(types: Types) -> Iterator[Call]:
    for size in _SIZES:
        for mode in _modes():
            gradient = values((2, *size, 3), np.dtype(np.float32), 1, -3, 3)
            yield Call({"grads": gradient, "original_image": _image(types, 2, 4, 5, 3)}, mode)


_LAYOUTS = (("NHWC", (2, 5, 6, 3)), ("NCHW", (2, 3, 5, 6)))


def _vectors(count: int) -> list[Array]:
    float32 = np.dtype(np.float32)
    return [values((count,), float32, seed, 0.5, 2) for seed in range(4)]


def _batch_norm(types: Types) -> Iterator[Call]:
    scale, offset, mean, variance = _vectors(3)
    for layout, shape in _LAYOUTS:
        x = _image(types, *shape)
        fixed = {"x": x, "scale": scale, "offset": offset}
        attributes = {"data_format": layout, "epsilon": 1e-3}
        given = {**fixed, "mean": mean, "variance": variance}
        yield Call(given, {**attributes, "is_training": False})
        yield Call(given, {**attributes, "is_training": True, "exponential_avg_factor": 0.25})
        none = np.zeros(0, np.float32)
        yield Call({**fixed, "mean": none, "variance": none}, {**attributes, "is_training": True})


def _batch_norm_grad(types: Types, version: int) -> Iterator[Call]:
    scale, _, mean, variance = _vectors(3)
    for layout, shape in _LAYOUTS:
        for training in (True, False):
            call = {
                "y_backprop": _image(types, *shape, seed=1),
                "x": _image(types, *shape),
                "scale": scale,
                "reserve_space_1": mean - 1,
                "reserve_space_2": variance,
            }
            if version == 3:
                call["reserve_space_3"] = np.zeros((), np.float32)
            attributes = {"data_format": layout, "is_training": training, "epsilon": 1e-3}
            yield Call(call, attributes)


_ACTIVATIONS = (
    "",
    "Elu",
    "LeakyRelu",
    "Relu",
    "Relu6",
    "Selu",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Tanh",
)


def _fused_mat_mul(types: Types) -> Iterator[Call]:
    for activation in _ACTIVATIONS:
        for m, k, n in ((1, 4, 5), (33, 20, 50), (0, 3, 2), (3, 0, 2), (40, 300, 1)):
            for ta in (False, True):
                a = values((k, m) if ta else (m, k), types["T"], 1, -1, 1)
                b = values((n, k), types["T"], 2, -1, 1)
                bias = values((n,), types["T"], 3, -5, 5)
                attributes = {
                    "transpose_a": ta,
                    "transpose_b": True,
                    "activation": activation,
                    "alpha": 0.3,
                }
                yield Call({"a": a, "b": b, "bias": bias}, attributes)


def _fused_conv(types: Types) -> Iterator[Call]:
    for activation in _ACTIVATIONS:
        for size, stride, padding in _SLIDES:
            call: dict[str, Array | list[Array]] = {
                "input": _image(types, 2, 8, 9, 3),
                "filter": values((size, size, 3, 7), types["U"], 1, -1, 1),
                "bias": values((7,), types["U"], 2, -5, 5),
            }
            attributes = {
                "strides": [1, stride, stride, 1],
                "dilations": [1, 1, 1, 1],
                "padding": padding,
                "explicit_paddings": [],
                "data_format": "NHWC",
                "activation": activation,
                "alpha": 0.3,
            }
            yield Call({**call, "residual": []}, attributes)
            if stride == 1 and padding == "SAME":
                residual = values((2, 8, 9, 7), types["T"], 3, -5, 5)
                yield Call({**call, "residual": [residual]}, attributes)


def _scale_shift(types: Types) -> Iterator[Call]:
    for activation in ("", "Relu", "Relu6"):
        for shape in ((5,), (3, 4), (2, 8, 9, 33), (0, 4), (2, 2, 1)):
            x = _image(types, *shape)
            for front in ((), (1,) * (len(shape) - 1)):
                channels = front + shape[-1:]
                scale, shift = (values(channels, types["U"], seed, -3, 3) for seed in (1, 2))
                call: dict[str, Array | list[Array]] = {"x": x, "scale": scale, "shift": shift}
                yield Call(call, {"activation": activation})


CALLS: Mapping[str, Callable[[Types], Iterator[Call]]] = {
    "AvgPool": functools.partial(_pool, argument="value"),
    "AvgPoolGrad": _avg_pool_grad,
    "DepthwiseConv2dNative": functools.partial(_depthwise, gradient_of=""),
    "DepthwiseConv2dNativeBackpropFilter": functools.partial(_depthwise, gradient_of="filter"),
    "DepthwiseConv2dNativeBackpropInput": functools.partial(_depthwise, gradient_of="input"),
    "FusedBatchNorm": _batch_norm,
    "FusedBatchNormV2": _batch_norm,
    "FusedBatchNormV3": _batch_norm,
    "FusedBatchNormGrad": functools.partial(_batch_norm_grad, version=1),
    "FusedBatchNormGradV2": functools.partial(_batch_norm_grad, version=2),
    "FusedBatchNormGradV3": functools.partial(_batch_norm_grad, version=3),
    "MaxPool": functools.partial(_pool, argument="input"),
    "MaxPoolGrad": _max_pool_grad,
    "ResizeBilinear": _resize,
    "ResizeBilinearGrad": _resize_bilinear_grad,
    "ResizeNearestNeighbor": _resize,
    "ResizeNearestNeighborGrad": _resize_nearest_grad,
    "TfpFusedConv2D": _fused_conv,
    "TfpFusedMatMul": _fused_mat_mul,
    "TfpScaleShift": _scale_shift,
}
"""Calls by op."""
