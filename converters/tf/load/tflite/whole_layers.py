"""Layers between int8 numbers: convolutions and matmuls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import tensorflow as tf

from converters.tf import ir
from converters.tf.ir import Array
from converters.tf.ir.ops.quantized import offset_bias, packed, spread, ungrouped
from converters.tf.load.saved_model.replay import Tensor
from converters.tf.load.tflite.whole import (
    Handler,
    NotServed,
    Whole,
    factor,
    is_unsigned,
    is_whole,
    scale_of,
    signed,
    zero_of,
)
from converters.tf.load.tflite.windows import padding, pair


@dataclass(frozen=True)
class _Weights:
    """What a layer has beside its input, of each output channel.

    Attributes:
        kernel: int8.
        zero: What stands for 0 in it.
        bias: int32.
        multiplier: Of sums.
        shift: Their powers of two.
    """

    kernel: Array
    zero: int
    bias: Array
    multiplier: Array
    shift: Array


def _weights(whole: Whole, channels: int, single: bool) -> _Weights:
    """Returns weights, bias and factors of the output channels.

    Args:
        whole: The operator.
        channels: Output channels.
        single: Whether a factor for all channels is a product of float32, as that of a matmul.

    Raises:
        NotServed: The weights or the bias are computed, or 0 stands for another number in them.
    """
    kernel = whole.tensor(1)
    found = kernel.quantization
    if kernel.data is None or kernel.data.dtype not in (np.int8, np.uint8) or found is None:
        raise NotServed
    unsigned = is_unsigned(kernel)
    if unsigned != is_unsigned(whole.tensor(0)) or found.scale.size not in (1, channels):
        raise NotServed
    zero = zero_of(kernel) if unsigned and is_whole(kernel) else 0
    if (unsigned and not is_whole(kernel)) or (not unsigned and np.any(found.zero_point)):
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
    return _Weights(signed(kernel.data), zero, bias, multiplier, shift)


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
    weights: _Weights,
    rescaling: ir.Rescaling = ir.Rescaling.TWICE,
) -> Tensor:
    """Returns a convolution with a filter `[outputs, height, width, inputs]`."""
    call, kernel = whole.call, weights.kernel
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
        weights.zero,
    )
    apart = kernel.astype(np.int64) - weights.zero
    return whole.emit(
        op,
        x,
        call.weight("kernel", packed(kernel)),
        call.weight("bias", spread(offset_bias(apart, weights.bias, zero))),
        call.weight("multiplier", spread(weights.multiplier)),
        call.weight("shift", spread(weights.shift)),
    )


def _conv(whole: Whole) -> Tensor:
    x = whole.value(0)
    outputs = whole.tensor(1).shape[0] or 0
    weights = _weights(whole, outputs, single=False)
    kernel = weights.kernel
    if kernel.ndim != 4 or not x.shape[-1] or x.shape[-1] % kernel.shape[3]:
        raise NotServed
    window = window_of(whole, x, kernel.shape[1:3], dilated=True)
    groups = x.shape[-1] // kernel.shape[3]
    return _convolved(whole, x, window, _ungrouped(weights, groups))


def _ungrouped(weights: _Weights, groups: int) -> _Weights:
    """Returns weights whose outputs see the channels of all groups."""
    if groups == 1:
        return weights
    if weights.kernel.shape[0] % groups:
        raise NotServed
    apart = ungrouped(weights.kernel, groups)
    if weights.zero:
        seen = ungrouped(np.ones_like(weights.kernel), groups)
        apart = np.where(seen, apart, weights.zero).astype(np.int8)
    return replace(weights, kernel=apart)


def _depthwise(whole: Whole) -> Tensor:
    x = whole.value(0)
    weights = _weights(whole, whole.tensor(1).shape[-1] or 0, single=False)
    kernel = weights.kernel
    channels = x.shape[-1]
    if kernel.ndim != 4 or kernel.shape[0] != 1 or not channels or kernel.shape[3] % channels:
        raise NotServed
    window = window_of(whole, x, kernel.shape[1:3], dilated=True)
    if kernel.shape[3] != channels:
        turned = replace(weights, kernel=kernel.transpose(3, 1, 2, 0))
        return _convolved(whole, x, window, _ungrouped(turned, channels))
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
        weights.zero,
    )
    return whole.emit(
        op,
        x,
        call.weight("kernel", kernel[0]),
        call.weight("bias", weights.bias),
        call.weight("multiplier", weights.multiplier),
        call.weight("shift", weights.shift),
    )


def _dense(whole: Whole) -> Tensor:
    x, call = whole.value(0), whole.call
    weights = _weights(whole, whole.tensor(1).shape[0] or 0, single=True)
    kernel = weights.kernel
    if kernel.ndim != 2 or call.option("weightsFormat") or x.shape.rank is None:
        raise NotServed
    outputs, inputs = kernel.shape
    lead = x.shape.as_list()[:-1] if x.shape[-1] == inputs else [None]
    if None in lead[1:] or (not call.option("keepNumDims") and len(lead) > 1):
        raise NotServed
    rows = tf.reshape(x, [-1 if lead[0] is None else lead[0], 1, math.prod(lead[1:]), inputs])
    point = replace(weights, kernel=kernel.reshape(outputs, 1, 1, inputs))
    found = _convolved(whole, rows, _POINT, point, ir.Rescaling.ONCE)
    return tf.reshape(found, [-1 if lead[0] is None else lead[0], *lead[1:], outputs])


OPS: Mapping[str, Handler] = {
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _dense,
}
