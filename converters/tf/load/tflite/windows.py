"""Convolutions, pools, resizing and matmuls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from converters.tf.load.saved_model.replay import Refused, Tensor
from converters.tf.load.tflite.call import Call, Constant, Handler


def padding(call: Call) -> str:
    """Returns how a window is padded, in TensorFlow's words."""
    return "VALID" if call.option("padding") else "SAME"


def pair(call: Call, first: str, second: str) -> list[int]:
    """Returns two options of an operator, which are 1 where they are missing."""
    return [int(call.option(first, 1)) or 1, int(call.option(second, 1)) or 1]


def _conv(call: Call) -> Tensor:
    kernel = call.tensor(1, "kernel", (1, 2, 3, 0))
    strides = pair(call, "strideH", "strideW")
    dilations = pair(call, "dilationHFactor", "dilationWFactor")
    x = tf.nn.conv2d(call.tensor(0), kernel, strides, padding(call), dilations=dilations)
    return call.biased(x, 2)


def _depthwise(call: Call) -> Tensor:
    x, value = call.tensor(0), call.value(1)
    strides = pair(call, "strideH", "strideW")
    dilations = pair(call, "dilationHFactor", "dilationWFactor")
    channels = x.shape[-1]
    shape = [int(d) for d in (value.data if isinstance(value, Constant) else value).shape]
    if len(shape) != 4 or shape[0] != 1 or not channels or shape[3] % channels:
        raise Refused(f"filters of the shape {shape} for {channels} channels")
    if strides[0] != strides[1]:
        kernel = call.tensor(1, "kernel", (1, 2, 0, 3))
        y = tf.nn.conv2d(x, kernel, strides, padding(call), dilations=dilations)
        return call.biased(y, 2)
    kernel = tf.reshape(call.tensor(1, "kernel"), [*shape[1:3], channels, shape[3] // channels])
    y = tf.nn.depthwise_conv2d(
        x,
        kernel,
        [1, *strides, 1],
        padding(call),
        dilations=dilations if max(dilations) > 1 else None,
    )
    return call.biased(y, 2)


def _transposed(call: Call) -> Tensor:
    kernel = call.tensor(1, "kernel", (1, 2, 0, 3))
    strides = pair(call, "strideH", "strideW")
    x = tf.nn.conv2d_transpose(call.tensor(2), kernel, call.tensor(0), strides, padding(call))
    return call.biased(x, 3)


def _deep(call: Call) -> tuple[list[int], list[int]]:
    names = [f"{what}{axis}" for what in ("stride", "dilation") for axis in "DHW"]
    names = [n if n[:6] == "stride" else f"{n}Factor" for n in names]
    numbers = [int(call.option(n, 1)) or 1 for n in names]
    return [1, *numbers[:3], 1], [1, *numbers[3:], 1]


def _conv_3d(call: Call) -> Tensor:
    strides, dilations = _deep(call)
    x = tf.nn.conv3d(
        call.tensor(0), call.tensor(1, "kernel"), strides, padding(call), dilations=dilations
    )
    return call.biased(x, 2)


def _transposed_3d(call: Call) -> Tensor:
    strides, dilations = _deep(call)
    x = tf.nn.conv3d_transpose(
        call.tensor(2),
        call.tensor(1, "kernel"),
        call.tensor(0),
        strides,
        padding(call),
        dilations=dilations,
    )
    return call.biased(x, 3)


def _pool(function: Callable[..., Tensor]) -> Handler:
    def pool(call: Call) -> Tensor:
        size = pair(call, "filterHeight", "filterWidth")
        strides = pair(call, "strideH", "strideW")
        return call.activated(function(call.tensor(0), size, strides, padding(call)))

    return pool


def _l2_pool(x: Tensor, size: Sequence[int], strides: Sequence[int], padding: str) -> Tensor:
    return tf.sqrt(tf.nn.avg_pool2d(tf.square(x), size, strides, padding))


def _dense(call: Call) -> Tensor:
    if call.option("weightsFormat"):
        raise Refused("the weights are shuffled")
    kernel, x = call.tensor(1, "kernel", (1, 0)), call.tensor(0)
    if not call.option("keepNumDims") and (x.shape.rank != 2 or x.shape[-1] != kernel.shape[0]):
        x = tf.reshape(x, [-1, kernel.shape[0]])
    return call.biased(tf.matmul(x, kernel), 2)


def _batch_mat_mul(call: Call) -> Tensor:
    a, b = call.tensor(0), call.tensor(1, "kernel")
    adj_x, adj_y = bool(call.option("adjX")), bool(call.option("adjY"))
    if a.shape.rank == b.shape.rank == 2:
        return tf.matmul(a, b, adj_x, adj_y)
    return tf.raw_ops.BatchMatMulV2(x=a, y=b, adj_x=adj_x, adj_y=adj_y)


def _resize(function: Callable[..., Tensor]) -> Handler:
    return lambda call: function(
        images=call.tensor(0),
        size=call.tensor(1),
        align_corners=bool(call.option("alignCorners")),
        half_pixel_centers=bool(call.option("halfPixelCenters")),
    )


def _local_response(call: Call) -> Tensor:
    """Sums over neighbouring channels are a product with a matrix of ones around the diagonal."""
    x, radius = call.tensor(0), int(call.option("radius"))
    places = np.arange(int(x.shape[-1]))
    band = np.abs(places[:, None] - places) <= radius
    total = tf.matmul(tf.square(x), tf.constant(band.astype(np.float32)))
    scale = call.option("bias", 0.0) + call.option("alpha", 0.0) * total
    return x * tf.pow(scale, -call.option("beta", 0.0))


OPS: dict[str, Handler] = {
    "AVERAGE_POOL_2D": _pool(tf.nn.avg_pool2d),
    "BATCH_MATMUL": _batch_mat_mul,
    "CONV_2D": _conv,
    "CONV_3D": _conv_3d,
    "CONV_3D_TRANSPOSE": _transposed_3d,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _dense,
    "L2_NORMALIZATION": lambda call: call.activated(
        tf.math.l2_normalize(call.tensor(0), axis=-1, epsilon=1e-12)
    ),
    "L2_POOL_2D": _pool(_l2_pool),
    "LOCAL_RESPONSE_NORMALIZATION": _local_response,
    "MAX_POOL_2D": _pool(tf.nn.max_pool2d),
    "RESIZE_BILINEAR": _resize(tf.raw_ops.ResizeBilinear),
    "RESIZE_NEAREST_NEIGHBOR": _resize(tf.raw_ops.ResizeNearestNeighbor),
    "TRANSPOSE_CONV": _transposed,
}
