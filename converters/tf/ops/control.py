"""Calls of functions, branches and loops."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.lower import Context, Handler, Result, Tensor, Unsupported
from converters.tf.ops.loops import OPS as LOOPS
from converters.tf.trace import FunctionName


def _call(ctx: Context) -> Result:
    function = ctx.low.trace.functions[ctx.attr("f").name]
    return tuple(ctx.low.call(function, ctx.args, ctx.build.layer))


def _branch(ctx: Context, name: FunctionName) -> list[Tensor]:
    function = ctx.low.trace.functions[name.name]
    return ctx.low.call(function, ctx.args[1:], ctx.build.layer)


def _if(ctx: Context) -> Result:
    condition = ctx.value(0)
    names = (ctx.attr("then_branch"), ctx.attr("else_branch"))
    if condition.data is not None:
        return tuple(_branch(ctx, names[0 if bool(condition.data) else 1]))
    results = []
    for then, other in zip(_branch(ctx, names[0]), _branch(ctx, names[1]), strict=True):
        if then is other:
            results.append(then)
        elif isinstance(then, ir.Value) and isinstance(other, ir.Value):
            results.append(ctx.build.select(condition, then, other))
        else:
            raise Unsupported("a branch that depends on the inputs and gives no tensor")
    return tuple(results)


def _case(ctx: Context) -> Result:
    index = ctx.integer(0)
    names = ctx.attr("branches")
    return tuple(_branch(ctx, names[index if 0 <= index < len(names) else -1]))


OPS: dict[str, Handler] = {
    "PartitionedCall": _call,
    "StatefulPartitionedCall": _call,
    "If": _if,
    "StatelessIf": _if,
    "Case": _case,
    "StatelessCase": _case,
    **LOOPS,
}
