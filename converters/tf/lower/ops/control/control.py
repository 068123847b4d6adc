"""Calls of functions, branches and loops."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.ir import CompareKind
from converters.tf.lower.graph import POISON, Context, Handler, Result, Tensor, Unsupported
from converters.tf.lower.ops.control.loops import OPS as LOOPS
from converters.tf.lower.trace import FunctionName


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
    return tuple(_chosen(ctx, condition, _branch(ctx, names[0]), _branch(ctx, names[1])))


def _chosen(
    ctx: Context, condition: ir.Value, then: list[Tensor], other: list[Tensor]
) -> list[Tensor]:
    """Chooses between the results of two branches that are both computed."""
    return [_one_of(ctx, condition, *pair) for pair in zip(then, other, strict=True)]


def _one_of(ctx: Context, condition: ir.Value, then: Tensor, other: Tensor) -> Tensor:
    if then is other:
        return then
    if POISON in (then, other):
        return POISON
    if not isinstance(then, ir.Value) or not isinstance(other, ir.Value):
        raise Unsupported("a branch that depends on the inputs and gives no tensor")
    if then.shape != other.shape:
        shapes = f"{ir.shape_text(then.shape)} or {ir.shape_text(other.shape)}"
        raise Unsupported(f"branches give {shapes}, as the inputs say")
    return ctx.build.select(condition, then, other)


def _case(ctx: Context) -> Result:
    index = ctx.value(0)
    names = ctx.attr("branches")
    if index.data is not None:
        place = int(index.data)
        return tuple(_branch(ctx, names[place if 0 <= place < len(names) else -1]))
    results = _branch(ctx, names[-1])
    for place, name in enumerate(names[:-1]):
        here = ctx.build.compare(CompareKind.EQ, index, ctx.build.scalar(place, index.dtype))
        results = _chosen(ctx, here, _branch(ctx, name), results)
    return tuple(results)


OPS: dict[str, Handler] = {
    "PartitionedCall": _call,
    "StatefulPartitionedCall": _call,
    "If": _if,
    "StatelessIf": _if,
    "Case": _case,
    "StatelessCase": _case,
    **LOOPS,
}
