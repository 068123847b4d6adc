"""Gradients of functions of one element, which a model asks for with respect to its inputs."""

from __future__ import annotations

from collections.abc import Callable

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind, Fn
from converters.tf.ir.build import Builder
from converters.tf.lower.graph import Context, Handler, Result


def _mul(build: Builder, *factors: ir.Value) -> ir.Value:
    result, *rest = factors
    for factor in rest:
        result = build.binary(BinaryKind.MUL, result, factor)
    return result


def _one_minus(build: Builder, x: ir.Value) -> ir.Value:
    return build.binary(BinaryKind.SUB, build.scalar(1, x.dtype), x)


def _of_result(slope: Callable[[Builder, ir.Value], ir.Value]) -> Handler:
    """Handles (y, dy), where the slope is known from the result y."""

    def handler(ctx: Context) -> Result:
        y, change = ctx.values
        return _mul(ctx.build, change, slope(ctx.build, y))

    return handler


def _relu(ctx: Context) -> Result:
    change, x = ctx.values
    zero = ctx.build.scalar(0, x.dtype)
    return ctx.build.select(ctx.build.compare(CompareKind.GT, x, zero), change, zero)


def _softplus(ctx: Context) -> Result:
    change, x = ctx.values
    return _mul(ctx.build, change, ctx.build.unary(Fn.SIGMOID, x))


OPS: dict[str, Handler] = {
    "ReluGrad": _relu,
    "SigmoidGrad": _of_result(lambda b, y: _mul(b, y, _one_minus(b, y))),
    "SoftplusGrad": _softplus,
    "TanhGrad": _of_result(lambda b, y: _one_minus(b, b.unary(Fn.SQUARE, y))),
}
