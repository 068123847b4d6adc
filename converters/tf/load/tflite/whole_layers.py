"""Layers between int8 numbers: convolutions and matmuls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from converters.tf import ir
from converters.tf.ir import Array
from converters.tf.ir.ops.quantized import offset_bias, packed, spread, ungrouped
from converters.tf.load.saved_model.replay import Tensor
from converters.tf.load.tflite.whole import Handler, NotServed, Whole, factor, scale_of, zero_of
from converters.tf.load.tflite.windows import padding, pair


def _weights(whole: Whole, channels: int, single: bool) -> tuple[Array, Array, Array, Array]:
    """Returns weights, bias, multipliers and shifts of the output channels.

    Args:
        whole: The operator.
        channels: Output channels.
        single: Whether a factor for all channels is a product of float32, as that of a product of
            matrices.

    Raises:
        NotServed: The weights or the bias are computed, or 0 stands for another number in them.
    """
    kernel = whole.tensor(1)
    found = kernel.quantization
    if kernel.data is None or kernel.data.dtype != np.int8 or found is None:
        raise NotServed
    if np.any(found.zero_point) or found.scale.size not in (1, channels):
        raise NotServed
    bias = np.zeros(channels, np.int32)
    if len(whole.tensors) > 2 and whole.tensors[2] is not None:
        data = whole.tensors[2].data
        if data is None or data.dtype != np.int32 or data.size != channels:
            raise NotServed
        bias = data.reshape(-1)
    source, target = scale_of(whole.tensor(0)), scale_of(whole.result)
    if single and found.scale.size == 1:
        reals = [float(source * np.float32(found.scale[0])) / float(target)]
    else:
        reals = [float(source) * float(scale) / float(target) for scale in found.scale]
    pairs = np.array([factor(real) for real in reals], np.int32)
    multiplier, shift = np.broadcast_to(pairs, (channels, 2)).T
    return kernel.data, bias, multiplier, shift


@dataclass(frozen=True)
class Window:
    """How a filter moves over an image; as in `ir.QuantizedConv`."""

    taps: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]


_POINT = Window((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)))


def window_of(whole: Whole, x: Tensor, taps: Sequence[int], dilated: bool) -> Window:
    """Returns how a window moves over an image.

    Args:
        whole: The operator.
        x: The image.
        taps: Height and width of the window.
        dilated: Whether the operator has dilations.

    Raises:
        NotServed: The size of the image is open.
    """
    call = whole.call
    strides = pair(call, "strideH", "strideW")
    dilations = pair(call, "dilationHFactor", "dilationWFactor") if dilated else [1, 1]
    sizes = x.shape.as_list()[1:3] if x.shape.rank == 4 else [None]
    if None in sizes:
        raise NotServed
    pads = [(0, 0), (0, 0)]
    if padding(call) == "SAME":
        for axis, size in enumerate(sizes):
            reach = (taps[axis] - 1) * dilations[axis] + 1
            lacks = max((-(-size // strides[axis]) - 1) * strides[axis] + reach - size, 0)
            pads[axis] = (lacks // 2, lacks - lacks // 2)
    height, width = (int(t) for t in taps)
    return Window(
        (height, width),
        (strides[0], strides[1]),
        (dilations[0], dilations[1]),
        (pads[0], pads[1]),
    )


def _convolved(
    whole: Whole,
    x: Tensor,
    window: Window,
    parts: tuple[Array, Array, Array, Array],
    rescaling: ir.Rescaling = ir.Rescaling.TWICE,
) -> Tensor:
    """Returns a convolution with a filter `[outputs, height, width, inputs]`."""
    call, (kernel, bias, multiplier, shift) = whole.call, parts
    zero, (low, high) = zero_of(whole.tensor(0)), whole.ends
    op = ir.QuantizedConv(
        window.taps,
        window.strides,
        window.dilations,
        window.padding,
        kernel.shape[0],
        rescaling,
        zero,
        zero_of(whole.result),
        low,
        high,
    )
    return whole.emit(
        op,
        x,
        call.weight("kernel", packed(kernel)),
        call.weight("bias", spread(offset_bias(kernel, bias, zero))),
        call.weight("multiplier", spread(multiplier)),
        call.weight("shift", spread(shift)),
    )


def _conv(whole: Whole) -> Tensor:
    x = whole.value(0)
    outputs = whole.tensor(1).shape[0] or 0
    kernel, *rest = _weights(whole, outputs, single=False)
    if kernel.ndim != 4 or not x.shape[-1] or x.shape[-1] % kernel.shape[3]:
        raise NotServed
    window = window_of(whole, x, kernel.shape[1:3], dilated=True)
    groups = x.shape[-1] // kernel.shape[3]
    if groups > 1:
        kernel = _ungrouped(kernel, groups)
    return _convolved(whole, x, window, (kernel, rest[0], rest[1], rest[2]))


def _ungrouped(kernel: Array, groups: int) -> Array:
    if kernel.shape[0] % groups:
        raise NotServed
    return ungrouped(kernel, groups)


def _depthwise(whole: Whole) -> Tensor:
    x = whole.value(0)
    kernel, bias, multiplier, shift = _weights(whole, whole.tensor(1).shape[-1] or 0, single=False)
    channels = x.shape[-1]
    if kernel.ndim != 4 or kernel.shape[0] != 1 or not channels or kernel.shape[3] % channels:
        raise NotServed
    window = window_of(whole, x, kernel.shape[1:3], dilated=True)
    if kernel.shape[3] != channels:
        wide = _ungrouped(kernel.transpose(3, 1, 2, 0), channels)
        return _convolved(whole, x, window, (wide, bias, multiplier, shift))
    call, (low, high) = whole.call, whole.ends
    op = ir.QuantizedDepthwise(
        window.taps,
        window.strides,
        window.dilations,
        window.padding,
        ir.Rescaling.TWICE,
        zero_of(whole.tensor(0)),
        zero_of(whole.result),
        low,
        high,
    )
    return whole.emit(
        op,
        x,
        call.weight("kernel", kernel[0]),
        call.weight("bias", bias),
        call.weight("multiplier", multiplier),
        call.weight("shift", shift),
    )


def _dense(whole: Whole) -> Tensor:
    x, call = whole.value(0), whole.call
    kernel, *rest = _weights(whole, whole.tensor(1).shape[0] or 0, single=True)
    if kernel.ndim != 2 or call.option("weightsFormat") or x.shape.rank is None:
        raise NotServed
    outputs, inputs = kernel.shape
    lead = x.shape.as_list()[:-1] if x.shape[-1] == inputs else [None]
    if None in lead[1:] or (not call.option("keepNumDims") and len(lead) > 1):
        raise NotServed
    rows = tf.reshape(x, [-1 if lead[0] is None else lead[0], 1, math.prod(lead[1:]), inputs])
    parts = (kernel.reshape(outputs, 1, 1, inputs), rest[0], rest[1], rest[2])
    found = _convolved(whole, rows, _POINT, parts, ir.Rescaling.ONCE)
    return tf.reshape(found, [-1 if lead[0] is None else lead[0], *lead[1:], outputs])


OPS: Mapping[str, Handler] = {
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _dense,
}
