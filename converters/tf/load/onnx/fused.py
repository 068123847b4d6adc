"""Operators that onnxruntime's optimizers make of several others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.load.onnx.context import Context, Handler, Result, fixed, reshaped
from converters.tf.load.onnx.norms import gemm, layer_norm, mat_mul, rms_norm
from converters.tf.load.onnx.values import Known, Tensor, Value
from converters.tf.load.onnx.windows import conv
from converters.tf.load.saved_model.replay import Refused

_ACTIVATIONS = ["", "Clip", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Tanh"]


def _activated(ctx: Context, y: Tensor, params: Sequence[float]) -> Tensor:
    """Returns a result after the activation that the node names."""
    kind = ctx.text("activation", "", _ACTIVATIONS)
    numbers = [float(p) for p in params]
    a, b = (*numbers, 0.0, 0.0)[:2]
    functions: dict[str, Callable[[Any], Any]] = {
        "": lambda x: x,
        "Clip": lambda x: tf.nn.relu6(x) if (a, b) == (0, 6) else tf.clip_by_value(x, a, b),
        "HardSigmoid": lambda x: tf.clip_by_value(x * a + b, 0.0, 1.0),
        "LeakyRelu": lambda x: tf.nn.leaky_relu(x, a),
        "Relu": tf.nn.relu,
        "Sigmoid": tf.sigmoid,
        "Tanh": tf.tanh,
    }
    return ctx.combined(functions[kind], [y])


def _conv(ctx: Context) -> Result:
    y = ctx.tensor(conv(ctx))
    if ctx.has(3):
        y = ctx.combined(tf.add, [y, ctx.value(3)])
    return _activated(ctx, y, ctx.attr("activation_params") or ())


def _gemm(ctx: Context) -> Result:
    params = [ctx.attr(f"activation_{name}", 0.0) for name in ("alpha", "beta")]
    return _activated(ctx, ctx.tensor(gemm(ctx)), params)


def _swapped(ctx: Context, index: int, name: str) -> Value:
    """Returns an operand, its last two axes swapped if an attribute says so."""
    value, rank = ctx.value(index), ctx.rank(index)
    if ctx.attr(name.replace("trans", "transBatch"), 0):
        raise Refused(f"{name.replace('trans', 'transBatch')}=1")
    if not ctx.attr(name, 0) or rank < 2:
        return value
    perm = [*range(rank - 2), rank - 1, rank - 2]
    if isinstance(value, Known):
        return value.view(("transpose", *perm), lambda a: a.transpose(perm))
    if not isinstance(value, Tensor):
        raise Refused("a product of dimensions")
    return value.transposed(perm)


def _mat_mul(ctx: Context) -> Result:
    y = mat_mul(ctx.inner(_swapped(ctx, 0, "transA"), _swapped(ctx, 1, "transB")))
    alpha = float(ctx.attr("alpha", 1.0))
    return y if alpha == 1.0 else ctx.combined(lambda v: v * alpha, [ctx.tensor(y)])


def _gelu(approximate: bool) -> Handler:
    """Returns the handler of a function of a tensor with a bias, if there is one."""

    def handler(ctx: Context) -> Result:
        x = ctx.value(0)
        if ctx.has(1):
            x = ctx.combined(tf.add, [x, ctx.value(1)])
        return ctx.combined(lambda v: tf.nn.gelu(v, approximate=approximate), [x])

    return handler


def _quick_gelu(ctx: Context) -> Result:
    alpha = float(ctx.attr("alpha", 1.702))
    return ctx.elementwise(lambda x: x * tf.sigmoid(alpha * x), 0)


def _skip(norm: Handler, shift: bool) -> Handler:
    """Returns the handler of a norm of a sum, which may be a result, too."""

    def handler(ctx: Context) -> Result:
        if any(ctx.node.outputs[1:3]):
            raise Refused("the statistics of a norm")
        more = [ctx.value(i) for i in (4 if shift else 3,) if ctx.has(i)]
        total = ctx.combined(tf.add, [ctx.value(0), ctx.value(1)])
        for bias in more:
            total = ctx.combined(tf.add, [total, bias])
        operands: list[Value | None] = [ctx.value(2)]
        if shift:
            operands.append(ctx.value(3) if ctx.has(3) else None)
        epsilon = float(ctx.attr("epsilon", 1e-12))
        y = norm(ctx.inner(total, *operands, outputs=1, epsilon=epsilon, axis=-1))
        return [y, total, total, total]

    return handler


def _heads(ctx: Context, x: Any, count: int) -> Any:
    """Returns `[batch, heads, steps, size]` of rows."""
    width = fixed(x.shape[-1], "a width")
    if count < 1 or width % count:
        raise Refused(f"{count} heads of {width} columns")
    steps = fixed(x.shape[1], "the number of steps")
    return tf.transpose(tf.reshape(x, [-1, steps, count, width // count]), [0, 2, 1, 3])


def _attended(ctx: Context, q: Any, k: Any, v: Any, mask: Any) -> Tensor:
    count = int(ctx.attr("num_heads", 0))
    width, steps = int(v.shape[-1]), int(q.shape[1])
    q, k, v = (_heads(ctx, x, count) for x in (q, k, v))
    scale = float(ctx.attr("scale", 0.0)) or 1.0 / float(q.shape[-1]) ** 0.5
    scores = tf.matmul(q, k, transpose_b=True) * scale
    if ctx.attr("unidirectional", 0):
        below = np.tril(np.ones((steps, int(k.shape[2])), np.float32))
        scores = scores + tf.constant((1 - below) * np.float32(-1e9))
    if mask is not None:
        scores = scores + mask
    y = tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3])
    first = ctx.shape(0)[0]
    return ctx.result(reshaped(y, [first, steps, width]), None, [first, steps, width])


def _only(ctx: Context, places: Sequence[int], what: str) -> None:
    if any(ctx.has(i) for i in places) or any(ctx.node.outputs[1:]):
        raise Refused(what)


def _attention(ctx: Context) -> Result:
    _only(ctx, (4, 6), "keys and values of earlier calls")
    if ctx.attr("qkv_hidden_sizes") or ctx.attr("do_rotary", 0):
        raise Refused("heads of different sizes, or with rotated places")
    rows = ctx.tensor(mat_mul(ctx.inner(ctx.value(0), ctx.value(1))))
    if ctx.has(2):
        rows = ctx.combined(tf.add, [rows, ctx.value(2)])
    q, k, v = tf.split(rows.form(), 3, axis=-1)
    mask = _mask(ctx, 3)
    if ctx.has(5):
        mask = ctx.form(5) if mask is None else mask + ctx.form(5)
    return _attended(ctx, q, k, v, mask)


def _mask(ctx: Context, index: int) -> Any:
    """Returns what is added to scores for elements that are 0 in a mask `[batch, steps]`."""
    if not ctx.has(index):
        return None
    if ctx.rank(index) != 2:
        raise Refused("a mask of lengths; only one of [batch, steps] is supported")
    kept = tf.cast(ctx.form(index), tf.float32)[:, None, None, :]
    return (1.0 - kept) * float(ctx.attr("mask_filter_value", -10000.0))


def _multi_head(ctx: Context) -> Result:
    _only(ctx, (6, 7), "keys and values of earlier calls")
    if not ctx.has(1) or not ctx.has(2) or any(ctx.rank(i) != 3 for i in (1, 2)):
        raise Refused("queries, keys and values in one tensor, or as heads")
    parts = [ctx.form(i) for i in range(3)]
    if ctx.has(3):
        sizes = [int(p.shape[-1]) for p in parts]
        biases = tf.split(ctx.form(3), sizes)
        parts = [p + b for p, b in zip(parts, biases, strict=True)]
    mask = _mask(ctx, 4)
    if ctx.has(5):
        mask = ctx.form(5) if mask is None else mask + ctx.form(5)
    return _attended(ctx, parts[0], parts[1], parts[2], mask)


def _embedded(ctx: Context) -> Result:
    """Rows of tables of words, places and segments, summed and normalized."""
    if any(ctx.node.outputs[1:2]) and ctx.has(7):
        raise Refused("the lengths of a mask")
    steps = fixed(ctx.shape(0)[1], "the number of steps")
    total = tf.gather(ctx.form(2), ctx.form(0))
    places = ctx.form(8) if ctx.has(8) else tf.constant(np.arange(steps)[None])
    total = total + tf.gather(ctx.form(3), places)
    if ctx.has(1):
        total = total + tf.gather(ctx.form(4), ctx.form(1))
    epsilon = float(ctx.attr("epsilon", 1e-12))
    summed = ctx.result(total)
    y = layer_norm(
        ctx.inner(summed, ctx.value(5), ctx.value(6), outputs=1, epsilon=epsilon, axis=-1)
    )
    lengths = ctx.result(tf.zeros_like(ctx.form(0)[:, 0], tf.int32))
    return [y, lengths, summed]


OPS: Mapping[str, Handler] = {
    "SimplifiedLayerNormalization": rms_norm,
    **{
        f"com.microsoft.{op}": handler
        for op, handler in {
            "Attention": _attention,
            "BiasGelu": _gelu(False),
            "EmbedLayerNormalization": _embedded,
            "FastGelu": _gelu(True),
            "FusedConv": _conv,
            "FusedGemm": _gemm,
            "FusedMatMul": _mat_mul,
            "Gelu": _gelu(False),
            "MultiHeadAttention": _multi_head,
            "QuickGelu": _quick_gelu,
            "SkipLayerNormalization": _skip(layer_norm, True),
            "SkipSimplifiedLayerNormalization": _skip(rms_norm, False),
        }.items()
    },
}
