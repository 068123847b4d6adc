"""Reductions, running sums, places of extremes, norms of rows."""

from __future__ import annotations

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, ReduceKind
from converters.tf.ir.symbolic import Symbol, larger, product
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.ops.control import examples
from converters.tf.lower.ops.math.elementwise import simplified

_WHOLE = (ir.DType.I32, ir.DType.I64)


def _reduce(kind: ReduceKind) -> Handler:
    def handler(ctx: Context) -> Result:
        arg = ctx.args[0]
        if isinstance(arg, Symbol) and kind in (ReduceKind.PROD, ReduceKind.MAX):
            return _reduce_dims(arg, kind)
        x = ctx.value(0)
        if x.rank == 0:
            return x
        axes = {a % x.rank for a in ctx.ints(1)}
        extremes = kind in (ReduceKind.MAX, ReduceKind.MIN)
        whole = extremes and x.dtype in _WHOLE and len(axes) == x.rank
        if whole and any(isinstance(d, ir.Batch) for d in x.shape):
            known = examples.of_each(ctx.build, x)
            if known is None:
                return examples.extreme(x)
            x = ir.constant(known)
        return ctx.build.reduce(kind, x, ctx.ints(1), bool(ctx.attr("keep_dims", False)))

    return handler


def _reduce_dims(arg: Symbol, kind: ReduceKind) -> Result:
    result = np.empty((), object)
    dims = list(arg.dims.ravel())
    if kind is ReduceKind.PROD:
        result[()] = product(dims)
    else:
        total = dims[0]
        for dim in dims[1:]:
            total = larger(total, dim)
        result[()] = total
    return simplified(Symbol(result, arg.dtype))


def _arg(smallest: bool) -> Handler:
    def handler(ctx: Context) -> Result:
        x = ctx.value(0)
        axis = ctx.axis(1, x.rank)
        if isinstance(x.shape[axis], ir.Batch):
            raise Unsupported("a place along the batch")
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        op = ir.ArgExtreme(axis, smallest)
        return ctx.build.emit(op, [x], shape, ctx.dtype("output_type"))

    return handler


def _cumulative(multiply: bool) -> Handler:
    def handler(ctx: Context) -> Result:
        x = ctx.value(0)
        axis = ctx.axis(1, x.rank)
        if isinstance(x.shape[axis], ir.Batch):
            raise Unsupported("a running sum along the batch")
        exclusive, reverse = bool(ctx.attr("exclusive")), bool(ctx.attr("reverse"))
        return ctx.build.emit(ir.Cumulative(axis, multiply, exclusive, reverse), [x], x.shape)

    return handler


def _softmax(log: bool) -> Handler:
    def handler(ctx: Context) -> Result:
        x = ctx.value(0)
        return ctx.build.emit(ir.Softmax(log), [x], x.shape)

    return handler


def _batch_norm(ctx: Context) -> Result:
    if ctx.attr("is_training", True):
        return _row_norm(ctx)
    b = ctx.build
    x, gamma, beta, mean, variance = (ctx.value(i) for i in range(5))
    epsilon = b.scalar(ctx.attr("epsilon", 1e-3), variance.dtype)
    scale = b.unary(ir.Fn.RSQRT, b.binary(BinaryKind.ADD, variance, epsilon))
    scale = b.binary(BinaryKind.MUL, scale, gamma)
    shift = b.binary(BinaryKind.SUB, beta, b.binary(BinaryKind.MUL, mean, scale))
    if ctx.attr("data_format", "NHWC") in ("NCHW", "NCDHW"):
        wide = (*scale.shape, *(1,) * (x.rank - 2))
        scale, shift = b.reshape(scale, wide), b.reshape(shift, wide)
    return b.binary(BinaryKind.ADD, b.binary(BinaryKind.MUL, x, scale), shift)


def _row_norm(ctx: Context) -> Result:
    """Returns a norm of rows, which Keras 2 writes as a batch norm of the only example."""
    x, gamma, beta = (ctx.value(i) for i in range(3))
    batch, rows, *rest = x.shape
    if ctx.attr("data_format", "NHWC") != "NCHW" or batch != 1:
        raise Unsupported("a batch norm in training mode")
    b = ctx.build
    matrix = b.reshape(x, (rows, product(rest)))
    norm = ir.Norm(ir.NormKind.LAYER, float(ctx.attr("epsilon", 1e-3)))
    result = b.emit(norm, [matrix], matrix.shape)
    result = b.binary(BinaryKind.MUL, result, b.reshape(gamma, (rows, 1)))
    result = b.binary(BinaryKind.ADD, result, b.reshape(beta, (rows, 1)))
    return b.reshape(result, x.shape)


OPS: dict[str, Handler] = {
    "Sum": _reduce(ReduceKind.SUM),
    "Mean": _reduce(ReduceKind.MEAN),
    "Max": _reduce(ReduceKind.MAX),
    "Min": _reduce(ReduceKind.MIN),
    "Prod": _reduce(ReduceKind.PROD),
    "All": _reduce(ReduceKind.ALL),
    "Any": _reduce(ReduceKind.ANY),
    "ArgMax": _arg(False),
    "ArgMin": _arg(True),
    "Cumsum": _cumulative(False),
    "Cumprod": _cumulative(True),
    "Softmax": _softmax(False),
    "LogSoftmax": _softmax(True),
    "FusedBatchNorm": _batch_norm,
    "FusedBatchNormV2": _batch_norm,
    "FusedBatchNormV3": _batch_norm,
}
