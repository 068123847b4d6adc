"""Operators on quantized numbers, which are computed as the float32 numbers of their levels.

Sums of products of integers are exact up to 2^24; what they are rounded to is what onnxruntime
rounds them to. Layers compute in integers where they can (`whole.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array, Batch
from converters.tf.ir.symbolic import product
from converters.tf.load.onnx import dynamic, narrow, whole
from converters.tf.load.onnx.context import Context, Handler, Result, fixed, reshaped
from converters.tf.load.onnx.file import dtype_of
from converters.tf.load.onnx.norms import gemm, mat_mul
from converters.tf.load.onnx.pools import average_pool
from converters.tf.load.onnx.values import Known, Tensor, Value, shape_of
from converters.tf.load.onnx.windows import conv
from converters.tf.load.saved_model.replay import Refused

_MICROSOFT = "com.microsoft."
_LEVELS = (np.int8, np.uint8, np.int16, np.uint16)
Function = Callable[..., Any]
_T = TypeVar("_T")


def _spread(ctx: Context, index: int, x: Value) -> Value:
    """Returns scales or levels of 0 in a shape that broadcasts with a tensor."""
    value = ctx.value(index)
    rank = len(shape_of(value))
    block = int(ctx.attr("block_size", 0) or 0)
    if rank == 0 or (shape_of(value) == (1,) and not block):
        return _shaped(ctx, value, ())
    wide = shape_of(x)
    axis = ctx.axis(len(wide), "axis", 1)
    if not block:
        if rank != 1:
            raise Refused(f"scales with {rank} axes")
        return _shaped(ctx, value, tuple(-1 if i == axis else 1 for i in range(len(wide))))
    if rank != len(wide) or block < 1:
        raise Refused(f"scales with {rank} axes of blocks of {block}")
    places = np.arange(fixed(wide[axis], "the size of what has blocks")) // block
    if isinstance(value, Known):
        return Known(np.take(value.data, places, axis))
    return ctx.result(tf.gather(ctx.formed(value), places, axis=axis))


def _shaped(ctx: Context, value: Value, shape: tuple[int, ...]) -> Value:
    if isinstance(value, Known):
        return Known(value.data.reshape(shape), value.name)
    return ctx.inner(value).reshape(0, shape)


def _served(ctx: Context, layer: Callable[[Context], _T]) -> _T | None:
    """Returns a layer in integers, if its place and its operands allow it."""
    if not ctx.session.whole:
        return None
    try:
        return layer(ctx)
    except whole.NotServed:
        return None


def _dequantize(ctx: Context) -> Result:
    if found := _served(ctx, whole.real):
        return found
    x = ctx.value(0)
    operands = [_spread(ctx, i, x) for i in (1, 2) if ctx.has(i)]
    if isinstance(x, Known) and all(isinstance(v, Known) for v in operands):
        scale, *zero = (v.data.astype(np.float32) for v in operands if isinstance(v, Known))
        data = x.data.astype(np.float32)
        return Known((data - zero[0] if zero else data) * scale, x.name)

    def real(v: Any, scale: Any, *zero: Any) -> Any:
        levels = _float(v) - _float(zero[0]) if zero else _float(v)
        return levels * _float(scale)

    return ctx.combined(real, [x, *operands])


def _quantize(ctx: Context) -> Result:
    x = ctx.value(0)
    kind = ctx.node.kinds[2] if ctx.has(2) and len(ctx.node.kinds) > 2 else 0
    kind = kind or int(ctx.attr("output_dtype", 0) or 0)
    scale = _spread(ctx, 1, x)
    if narrow.is_float(kind):
        saturate = bool(ctx.attr("saturate", 1))
        return ctx.combined(
            lambda v, s: narrow.narrowed(_float(v) / _float(s), kind, saturate), [x, scale]
        )
    zero: Value
    if ctx.has(2):
        zero = _spread(ctx, 2, x)
    else:
        zero = Known(np.zeros((), dtype_of(kind) if kind else "uint8"))
    return _levels(
        ctx, lambda v, s: _float(v) / _float(s), [x, scale], zero, limits=narrow.bounds(kind)
    )


def _float(x: Any) -> Any:
    return x if x.dtype == tf.float32 else tf.cast(x, tf.float32)


def _levels(
    ctx: Context,
    function: Function,
    values: list[Value],
    zero: Value,
    after: bool = True,
    limits: tuple[int, int] | None = None,
) -> Tensor:
    """Returns what a function gives for values, rounded to levels.

    Args:
        ctx: The node.
        function: Gives the distance from `zero` in levels.
        values: What it reads.
        zero: The level of 0, of the type of the levels.
        after: Whether `zero` is added after rounding; halves are rounded to even.
        limits: The least and the largest level, if they are not those of the type.
    """
    dtype = np.dtype(_kind(zero))
    if dtype not in _LEVELS:
        raise Refused(f"quantization to {dtype}")
    least, largest = limits or (np.iinfo(dtype).min, np.iinfo(dtype).max)

    def narrowed(*operands: Any) -> Any:
        *own, middle = operands
        y = function(*own)
        y = tf.round(y) + _float(middle) if after else tf.round(y + _float(middle))
        return tf.clip_by_value(y, float(least), float(largest))

    middle = Known(zero.data.astype(np.float32)) if isinstance(zero, Known) else zero
    result = ctx.combined(narrowed, [*values, middle])
    result.levels = str(dtype.name)
    return result


def _kind(value: Value) -> str:
    """Returns the type of levels."""
    return (value.levels if isinstance(value, Tensor) else "") or value.dtype


def _number(ctx: Context, index: int) -> np.float32:
    """Returns an operand that is a scale of all elements."""
    scale = ctx.array(index).ravel()
    if scale.size != 1:
        raise Refused("scales of channels where one scale is expected")
    return np.float32(scale[0])


def _zero(ctx: Context, index: int, like: int) -> Value:
    """Returns an operand that is the level of 0; 0 if it is left out."""
    if not ctx.has(index):
        return Known(np.zeros((), _kind(ctx.value(like))))
    if product(ctx.shape(index)) != 1:
        raise Refused("levels of 0 by channel where one is expected")
    value = ctx.value(index)
    kind, zero = _kind(value), _shaped(ctx, value, ())
    if isinstance(zero, Tensor):
        zero.levels = kind
    return zero


def _whole(ctx: Context, index: int, zero: int, axis: int | None = None) -> Value:
    """Returns levels less the level of 0, which may differ along an axis."""
    value = ctx.value(index)
    middle = ctx.value(zero) if ctx.has(zero) else Known(np.zeros((), np.float32))
    if isinstance(middle, Known):
        rank = len(shape_of(value))
        many = middle.data.size > 1
        if many and axis is None:
            raise Refused("levels of 0 by channel where one is expected")
        place = [1] * rank
        if many:
            place[axis or 0] = -1
        data = middle.data.astype(np.float32).reshape(place if many else ())
        if isinstance(value, Known):
            key = ("whole", index, data.tobytes())
            return value.view(key, lambda a: a.astype(np.float32) - data)
        if not data.any():
            return ctx.combined(_float, [value])
        middle = Known(data)
    if len(shape_of(middle)) == 1 and shape_of(middle) != (1,):
        if axis is None:
            raise Refused("levels of 0 by channel where one is expected")
        rank = len(shape_of(value))
        middle = _shaped(ctx, middle, tuple(-1 if i == axis else 1 for i in range(rank)))
    return ctx.combined(lambda v, z: _float(v) - _float(z), [value, middle])


def _real(ctx: Context, index: int) -> Value:
    """Returns what levels stand for, by the scale and the level of 0 after them."""
    scale = _number(ctx, index + 1)
    levels = _whole(ctx, index, index + 2)
    if isinstance(levels, Known):
        return Known(levels.data * scale, levels.name)
    return ctx.combined(lambda v: v * scale, [levels])


def _bias(ctx: Context, index: int) -> Known | None:
    if not ctx.has(index):
        return None
    return ctx.known(index).view("float", lambda a: a.astype(np.float32))


def _factors(ctx: Context, scales: Array, place: tuple[int, ...]) -> Known:
    """Returns factors of a result's channels, or of all elements."""
    return Known(scales.astype(np.float32).reshape(place if scales.size > 1 else ()), role="scale")


def _conv(ctx: Context) -> Result:
    if found := _served(ctx, whole.conv):
        return found
    real = ctx.inner(_whole(ctx, 0, 2), _whole(ctx, 3, 5, 0), _bias(ctx, 8))
    y = ctx.tensor(conv(real))
    return _scaled(ctx, y, (-1, *(1,) * (y.rank - 2)))


def _scaled(ctx: Context, y: Tensor, place: tuple[int, ...]) -> Tensor:
    """Returns levels of a product, of which operands 1, 4 and 6 are the scales."""
    if all(isinstance(ctx.value(i), Known) for i in (1, 4, 6)):
        scales = _number(ctx, 1) * ctx.array(4).ravel() / _number(ctx, 6)
        factors: list[Value] = [_factors(ctx, scales, place)]
    else:
        single = product(ctx.shape(4)) == 1
        shapes = ((), () if single else place, ())
        factors = [
            _shaped(ctx, ctx.value(i), shape) for i, shape in zip((1, 4, 6), shapes, strict=True)
        ]

    def scaled(v: Any, a: Any, *more: Any) -> Any:
        return v * _float(a) if not more else v * (_float(a) * _float(more[0]) / _float(more[1]))

    return _levels(ctx, scaled, [y, *factors], _zero(ctx, 7, 0))


def _conv_integer(ctx: Context) -> Result:
    if found := _served(ctx, dynamic.conv):
        return found
    y = ctx.tensor(conv(ctx.inner(_whole(ctx, 0, 2), _whole(ctx, 1, 3, 0))))
    y.levels = "int32"
    return y


def _product(ctx: Context, a: Value, b: Value) -> Tensor:
    return ctx.tensor(mat_mul(ctx.inner(a, b)))


def _mat_mul(ctx: Context) -> Result:
    if found := _served(ctx, whole.mat_mul):
        return found
    y = _product(ctx, _whole(ctx, 0, 2), _whole(ctx, 3, 5, ctx.rank(3) - 1))
    return _scaled(ctx, y, (-1,))


def _mat_mul_integer(ctx: Context) -> Result:
    if found := _served(ctx, dynamic.mat_mul):
        return found
    y = _product(ctx, _whole(ctx, 0, 2), _whole(ctx, 1, 3, ctx.rank(1) - 1))
    y.levels = "int32"
    return y


def _mat_mul_to_float(ctx: Context) -> Result:
    if found := _served(ctx, dynamic.mat_mul_to_float):
        return found
    y = _product(ctx, _whole(ctx, 0, 4), _whole(ctx, 1, 5, ctx.rank(1) - 1))
    values = [y, ctx.value(2), ctx.value(3), *([ctx.value(6)] if ctx.has(6) else [])]
    return ctx.combined(lambda v, a, b, *bias: sum(bias, start=v * (a * b)), values)


def _dynamic_mat_mul(ctx: Context) -> Result:
    levels, scale, zero = _dynamic(ctx)
    args = (levels, ctx.value(1), scale, ctx.value(2), zero)
    more = [ctx.value(i) if ctx.has(i) else None for i in (3, 4)]
    return _mat_mul_to_float(ctx.inner(*args, *more))


def _gemm(ctx: Context) -> Result:
    if found := _served(ctx, whole.gemm):
        return found
    columns = 0 if ctx.attr("transB", 0) else 1
    real = (_whole(ctx, 0, 2), _whole(ctx, 3, 5, columns), _bias(ctx, 6))
    y = ctx.tensor(gemm(ctx.inner(*real, alpha=1.0, beta=1.0)))
    scales = np.float32(ctx.attr("alpha", 1.0)) * _number(ctx, 1) * ctx.array(4).ravel()
    if not ctx.has(7):
        return ctx.combined(lambda v, s: v * s, [y, _factors(ctx, scales, (-1,))])
    factors = _factors(ctx, scales / _number(ctx, 7), (-1,))
    return _levels(ctx, lambda v, s: v * s, [y, factors], _zero(ctx, 8, 0))


def _add(ctx: Context) -> Result:
    """Levels are added to one another before they are rounded."""
    values: list[Value] = [_whole(ctx, i, i + 2) for i in (0, 3)]
    a, b = (_number(ctx, i) / _number(ctx, 6) for i in (1, 4))
    return _levels(ctx, lambda x, y: x * a + y * b, values, _zero(ctx, 7, 0), after=False)


def _multiply(ctx: Context) -> Result:
    values: list[Value] = [_whole(ctx, i, i + 2) for i in (0, 3)]
    scale = _number(ctx, 1) * _number(ctx, 4) / _number(ctx, 6)
    return _levels(ctx, lambda x, y: x * y * scale, values, _zero(ctx, 7, 0), after=False)


def _global_average(ctx: Context) -> Result:
    if ctx.attr("channels_last", 0):
        raise Refused("channels_last=1")
    x = ctx.inner(_whole(ctx, 0, 2))
    images = x.last(0)
    axes = list(range(1, images.shape.rank - 1))
    count = int(np.prod(images.shape[1:-1]))
    total = ctx.result_last(tf.reduce_sum(images, axes, keepdims=True))
    scale = _number(ctx, 1) / (_number(ctx, 3) * np.float32(count))
    return _levels(ctx, lambda v: v * scale, [total], _zero(ctx, 4, 0))


def _rounded(function: Callable[[Context], Result]) -> Handler:
    """Returns the handler of a function of what levels stand for, of which it gives levels."""

    def handler(ctx: Context) -> Result:
        y = ctx.tensor(function(ctx.inner(_real(ctx, 0))))
        scale = _number(ctx, 3)
        return _levels(ctx, lambda v: v / scale, [y], _zero(ctx, 4, 0))

    return handler


def _softmax(ctx: Context) -> Result:
    rank = ctx.rank(0)
    if int(ctx.attr("opset", 13)) < 13 and ctx.axis(rank, "axis", 1) != rank - 1:
        raise Refused("a softmax over several axes")
    order = ctx.order(0)
    axis = order.index(ctx.axis(rank, "axis", -1))
    return ctx.result(tf.nn.softmax(ctx.form(0, order), axis), order)


def _average(ctx: Context) -> Result:
    if ctx.attr("channels_last", 0):
        raise Refused("channels_last=1")
    return average_pool(ctx)


def _concat(ctx: Context) -> Result:
    parts = [_real(ctx, i) for i in range(2, len(ctx.args), 3)]
    rank = len(shape_of(parts[0]))
    axis = int(ctx.attr("axis")) % rank
    y = ctx.result(tf.concat([ctx.formed(p) for p in parts], axis))
    scale = _number(ctx, 0)
    return _levels(ctx, lambda v: v / scale, [y], _zero(ctx, 1, 2))


def _dynamic(ctx: Context) -> list[Tensor]:
    """Gives levels, their scale and the level of 0, by the range of each example.

    ONNX takes the range of the whole batch, so that examples depend on each other; with one example
    both are the same.
    """
    if served := _served(ctx, dynamic.levels):
        return served
    order = ctx.order(0)
    x, shape = ctx.form(0, order), [ctx.shape(0)[axis] for axis in order]
    first = shape[0] if shape else 1
    many = first.scale if isinstance(first, Batch) else 1
    if any(isinstance(d, Batch) for d in shape[1:]):
        raise Refused("a range over a batch that is not the first axis")
    rows = reshaped(x, [Batch(), many, *shape[1:]]) if many > 1 else x
    axes = list(range(1 if isinstance(first, Batch) else 0, rows.shape.rank))
    low = tf.minimum(tf.reduce_min(rows, axes, keepdims=True), 0.0)
    high = tf.maximum(tf.reduce_max(rows, axes, keepdims=True), 0.0)
    width = high - low
    scale = tf.where(width > 0.0, width / 255.0, tf.ones_like(width))
    zero = tf.clip_by_value(tf.round(-low / scale), 0.0, 255.0)
    y = tf.clip_by_value(tf.round(rows / scale) + zero, 0.0, 255.0)
    ones = np.ones((1, many, *(1,) * (len(shape) - 1)), np.float32)
    if many > 1:
        y, scale, zero = (
            reshaped(v, s)
            for v, s in (
                (y, shape),
                (scale * ones, [first, *(1,) * (len(shape) - 1)]),
                (zero * ones, [first, *(1,) * (len(shape) - 1)]),
            )
        )
    if not isinstance(first, Batch):  # One scale of all elements.
        scale, zero = tf.reshape(scale, []), tf.reshape(zero, [])
        results = [ctx.result(y, order), ctx.result(scale), ctx.result(zero)]
    else:
        results = [ctx.result(y, order), ctx.result(scale, order), ctx.result(zero, order)]
    results[0].levels = results[2].levels = "uint8"
    return results


def _cast(ctx: Context) -> Result:
    dtype = dtype_of(ctx.attr("to"))
    return ctx.elementwise(lambda x: x if dtype == "float32" else tf.cast(x, dtype), 0)


# What reads levels.
OPS: Mapping[str, Handler] = {
    "ConvInteger": _conv_integer,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic,
    "MatMulInteger": _mat_mul_integer,
    "QLinearConv": _conv,
    "QLinearMatMul": _mat_mul,
    "QuantizeLinear": _quantize,
    **{
        f"{_MICROSOFT}{op}": handler
        for op, handler in {
            "DequantizeLinear": _dequantize,
            "DynamicQuantizeMatMul": _dynamic_mat_mul,
            "MatMulIntegerToFloat": _mat_mul_to_float,
            "QGemm": _gemm,
            "QLinearAdd": _add,
            "QLinearAveragePool": _rounded(_average),
            "QLinearConcat": _concat,
            "QLinearGlobalAveragePool": _global_average,
            "QLinearLeakyRelu": _rounded(
                lambda ctx: ctx.elementwise(
                    lambda x: tf.nn.leaky_relu(x, ctx.attr("alpha", 0.01)), 0
                )
            ),
            "QLinearMul": _multiply,
            "QLinearSigmoid": _rounded(lambda ctx: ctx.elementwise(tf.sigmoid, 0)),
            "QLinearSoftmax": _rounded(_softmax),
            "QuantizeLinear": _quantize,
        }.items()
    },
}
# What becomes of levels that another operator reads first.
CASTS: Mapping[str, Handler] = {"Cast": _cast}
# What moves levels and leaves them as they are.
MOVING = frozenset(
    [
        "Concat",
        "DepthToSpace",
        "Expand",
        "Flatten",
        "Gather",
        "Identity",
        "MaxPool",
        "Reshape",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    ]
)
