"""Normalizations; over channels they leave images channels last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.ir.spans import over_spans
from converters.tf.load.nodes import op as _op
from converters.tf.load.onnx.context import Context, Handler, Result, fixed, reshaped
from converters.tf.load.onnx.values import Known, Tensor, last
from converters.tf.load.saved_model.replay import Refused

_MAT_MUL = _op("MatMul")


def _batch_norm(ctx: Context) -> Result:
    if ctx.attr("spatial", 1) != 1:
        raise Refused("a batch norm of each place")
    if ctx.attr("training_mode", 0):
        return _trained_norm(ctx)
    if len([name for name in ctx.node.outputs if name]) > 1:
        raise Refused("the statistics of a batch norm")
    epsilon = float(ctx.attr("epsilon", 1e-5))
    scale, shift, mean, variance = (ctx.form(i) for i in range(1, 5))
    x = ctx.last(0)
    if x.shape.rank == 4:
        options = {"epsilon": epsilon, "is_training": False}
        y = tf.raw_ops.FusedBatchNormV3(
            x=x, scale=scale, offset=shift, mean=mean, variance=variance, **options
        )[0]
    else:
        y = tf.nn.batch_normalization(x, mean, variance, shift, scale, epsilon)
    return ctx.result_last(y)


def _trained_norm(ctx: Context) -> Result:
    """Normalizes by the batch itself; also gives the means that a training carries on."""
    x, rank = ctx.last(0), ctx.rank(0)
    fixed(ctx.shape(0)[0], "the mean over the batch")
    mean, variance = tf.nn.moments(x, list(range(rank - 1)))
    epsilon, kept = float(ctx.attr("epsilon", 1e-5)), float(ctx.attr("momentum", 0.9))
    y = tf.nn.batch_normalization(x, mean, variance, ctx.form(2), ctx.form(1), epsilon)
    carried = [
        ctx.result(ctx.form(i) * kept + now * (1 - kept)) for i, now in ((3, mean), (4, variance))
    ]
    return [ctx.result_last(y), *carried][: len(ctx.node.outputs)]


def _instance_norm(ctx: Context) -> Result:
    x = ctx.last(0)
    axes = list(range(1, x.shape.rank - 1))
    mean, variance = tf.nn.moments(x, axes, keepdims=True)
    y = (x - mean) * tf.math.rsqrt(variance + float(ctx.attr("epsilon", 1e-5)))
    return ctx.result_last(y * ctx.form(1) + ctx.form(2))


def _group_norm(ctx: Context) -> Result:
    """Scales are per channel since version 21, and per group before."""
    groups = int(ctx.attr("num_groups", 1))
    shape = ctx.shape(0)
    channels = ctx.sizes(0)[0]
    if groups < 1 or channels % groups:
        raise Refused(f"{groups} groups of {channels} channels")
    order = last(len(shape))
    spatial = [shape[axis] for axis in order[1:-1]]
    x = reshaped(ctx.last(0), (shape[0], *spatial, groups, channels // groups))
    axes = [*range(1, x.shape.rank - 2), x.shape.rank - 1]
    mean, variance = tf.nn.moments(x, axes, keepdims=True)
    y = (x - mean) * tf.math.rsqrt(variance + float(ctx.attr("epsilon", 1e-5)))
    y = reshaped(y, (shape[0], *spatial, channels))

    def wide(a: Array) -> Array:
        return a if a.size == channels else np.repeat(a, channels // groups)

    def of_channels(index: int) -> Any:
        if isinstance(ctx.value(index), Known):
            return ctx.weight(index, "channels", wide)
        if ctx.shape(index) == (channels,):
            return ctx.form(index)
        return tf.gather(ctx.form(index), np.arange(channels) // (channels // groups))

    scale, shift = of_channels(1), of_channels(2)
    return ctx.result_last(y * scale + shift)


def _row_axes(ctx: Context) -> tuple[Any, list[int], tuple[int, ...]]:
    """Returns a tensor, the axes from the one that is named, and its order."""
    rank = ctx.rank(0)
    axis = ctx.axis(rank, "axis", -1)
    order = ctx.order(0)
    if order[axis:] != tuple(range(axis, rank)):
        order = tuple(range(rank))
    return ctx.form(0, order), list(range(axis, rank)), order


def layer_norm(ctx: Context) -> Result:
    """Returns rows without their mean and of variance 1, times operand 1, plus operand 2.

    Where the node has names for them, also the mean, and the reciprocal of the deviation.
    """
    x, axes, order = _row_axes(ctx)
    mean, variance = tf.nn.moments(x, axes, keepdims=True)
    inverse = tf.math.rsqrt(variance + float(ctx.attr("epsilon", 1e-5)))
    y = (x - mean) * inverse
    y = y * ctx.form(1)
    y = ctx.result(y + ctx.form(2) if ctx.has(2) else y, order)
    if not any(ctx.node.outputs[1:]):
        return y
    return [y, ctx.result(mean, order), ctx.result(inverse, order)][: len(ctx.node.outputs)]


def rms_norm(ctx: Context) -> Result:
    """Returns rows whose mean square is 1, times operand 1."""
    x, axes, order = _row_axes(ctx)
    square = tf.reduce_mean(tf.square(x), axes, keepdims=True)
    y = x * tf.math.rsqrt(square + float(ctx.attr("epsilon", 1e-5)))
    return ctx.result(y * ctx.form(1), order)


def _local_response(ctx: Context) -> Result:
    """Divides by the squares of neighbouring channels, summed by a pool along them."""
    size = int(ctx.attr("size"))
    alpha, beta = float(ctx.attr("alpha", 1e-4)), float(ctx.attr("beta", 0.75))
    x = ctx.last(0)
    rank = x.shape.rank
    channels = int(x.shape[-1])
    if size < 1:
        raise Refused(f"size={size}; a window has at least one channel")
    # Beyond the others there are zeros alone.
    before, after = (min(n, channels - 1) for n in ((size - 1) // 2, size // 2))
    squares = tf.pad(tf.square(x), [[0, 0]] * (rank - 1) + [[before, after]])
    total = over_spans(
        squares,
        before + after + 1,
        channels + before + after,
        lambda y, begin, count: y[..., begin : begin + count],
        tf.add,
    )
    base = float(ctx.attr("bias", 1.0)) + (alpha / size) * total
    return ctx.result_last(x * tf.pow(base, -beta))


def _lp_norm(ctx: Context) -> Result:
    order = ctx.order(0)
    x = ctx.form(0, order)
    axis = order.index(ctx.axis(ctx.rank(0), "axis", -1))
    if int(ctx.attr("p", 2)) == 1:
        norm = tf.reduce_sum(tf.abs(x), axis, keepdims=True)
    else:
        norm = tf.sqrt(tf.reduce_sum(tf.square(x), axis, keepdims=True))
    return ctx.result(tf.math.divide_no_nan(x, norm), order)


def _mean_variance(ctx: Context) -> Result:
    axes = [int(a) for a in ctx.attr("axes", [0, 2, 3])]
    order = ctx.order(0)
    x = ctx.form(0, order)
    mean, variance = tf.nn.moments(x, [order.index(a) for a in axes], keepdims=True)
    return ctx.result((x - mean) / (tf.sqrt(variance) + 1e-9), order)


def gemm(ctx: Context) -> Result:
    """Returns a matmul plus operand 2."""
    alpha, beta = float(ctx.attr("alpha", 1.0)), float(ctx.attr("beta", 1.0))
    left, right = bool(ctx.attr("transA", 0)), bool(ctx.attr("transB", 0))
    weights = ctx.value(1)
    if isinstance(weights, Known):
        y = _dense(ctx, left, right, alpha)
    else:
        y = tf.matmul(ctx.form(0), ctx.form(1), transpose_a=left, transpose_b=right)
        y = y if alpha == 1.0 else y * alpha
    if ctx.has(2) and beta:
        bias = ctx.value(2)
        if isinstance(bias, Known):
            scaled = bias.view(("gemm", beta), lambda a: a.ravel() * np.asarray(beta, a.dtype))
            plain = bias.data.size == y.shape[-1] and bias.data.shape[-1:] == (bias.data.size,)
            whole = bias.view(("scaled", beta), lambda a: a * np.asarray(beta, a.dtype))
            y = y + ctx.formed(scaled if plain else whole)
        else:
            y = y + (ctx.form(2) if beta == 1.0 else ctx.form(2) * beta)
    return ctx.result(y)


def _dense(ctx: Context, left: bool, right: bool, alpha: float) -> Any:
    """Returns the product with a constant matrix."""
    x = ctx.value(0)
    image = x.unrolled if isinstance(x, Tensor) and not left else None
    rows = None if image is None else _rows(image)

    def arranged(a: Array) -> Array:
        a = a.T if right else a
        if rows is not None:
            a = a[rows]
        return a if alpha == 1.0 else a * np.asarray(alpha, a.dtype)

    key = ("dense", right, alpha, None if image is None else (image.shape, image.home))
    weights = ctx.weight(1, key, arranged)
    if image is not None:
        return tf.matmul(reshaped(image.form(image.home), ctx.shape(0)), weights)
    matrix = ctx.form(0)
    if left or matrix.shape.rank != 2:
        return tf.matmul(matrix, weights, transpose_a=left)
    return _MAT_MUL(matrix, weights)


def _rows(image: Tensor) -> Array:
    """Returns the order of rows of weights that reads an image without transposing it."""
    sizes = [int(d) for d in image.shape[1:] if isinstance(d, int)]
    places = np.arange(int(np.prod(sizes))).reshape(sizes)
    return places.transpose([axis - 1 for axis in image.home[1:]]).ravel()


def mat_mul(ctx: Context) -> Result:
    """Returns a matmul, or a product of vectors."""
    a, b = ctx.rank(0), ctx.rank(1)
    if isinstance(ctx.value(1), Known) and a >= 2 and b == 2:
        return ctx.result(_dense(ctx, False, False, 1.0))
    x = tf.expand_dims(ctx.form(0), 0) if a == 1 else ctx.form(0)
    y = tf.expand_dims(ctx.form(1), -1) if b == 1 else ctx.form(1)
    result = tf.matmul(x, y)
    if a == 1:
        result = tf.squeeze(result, [-2])
    if b == 1:
        result = tf.squeeze(result, [-1])
    return ctx.result(result)


def _det(ctx: Context) -> Result:
    return ctx.result(tf.linalg.det(ctx.form(0)))


def _einsum(ctx: Context) -> Result:
    equation = str(ctx.attr("equation")).replace(" ", "")
    if "->" not in equation:
        letters = sorted(c for c in set(equation) - set(",.") if equation.count(c) == 1)
        equation = f"{equation}->{'...' if '...' in equation else ''}{''.join(letters)}"
    return ctx.result(tf.einsum(equation, *(ctx.form(i) for i in range(len(ctx.args)))))


OPS: Mapping[str, Handler] = {
    "BatchNormalization": _batch_norm,
    "Det": _det,
    "Einsum": _einsum,
    "Gemm": gemm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LRN": _local_response,
    "LayerNormalization": layer_norm,
    "LpNormalization": _lp_norm,
    "MatMul": mat_mul,
    "MeanVarianceNormalization": _mean_variance,
    "RMSNormalization": rms_norm,
}
