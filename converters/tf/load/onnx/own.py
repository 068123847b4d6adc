"""Nodes that an operator of the user computes."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf.load.custom_ops import FLAG, CustomOp, called, tensors
from converters.tf.load.onnx.context import Context, Handler, Result
from converters.tf.load.onnx.registry import HANDLERS
from converters.tf.load.saved_model.replay import Refused
from tools.codegen.conversion import Problem, UsageError


def handlers(ops: Mapping[str, CustomOp]) -> dict[str, Handler]:
    """Returns what replays the operators of the user, by the names that nodes have.

    Raises:
        UsageError: One of them is an operator that is supported.
    """
    found = {_name(name): _handler(op) for name, op in ops.items()}
    for name in found:
        if name in HANDLERS:
            raise UsageError(Problem(f"{FLAG} {name}", "tf2rust converts this operator itself"))
    return found


def _name(name: str) -> str:
    """Returns what a node of an operator has: `mine.SoftClip` for `mine::SoftClip`."""
    domain, _, op = name.rpartition("::")
    return f"{domain}.{op}" if domain not in ("", "ai.onnx") else op


def _handler(op: CustomOp) -> Handler:
    def replayed(ctx: Context) -> Result:
        if None in ctx.args:
            raise Refused(f"operand {ctx.args.index(None)} of {op.name} is left out")
        call = called(op, ctx.node.attrs)
        operands = [ctx.form(index) for index in range(len(ctx.args))]
        shapes = [ctx.shape(index) for index in range(len(ctx.args))]
        results = tensors(call, operands, shapes)
        pairs = zip(results, call.shapes(shapes), strict=True)
        return [ctx.result(tensor, None, shape) for tensor, shape in pairs]

    return replayed
