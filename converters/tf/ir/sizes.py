"""Sizes of nodes and their operands, for one example of the batch."""

from __future__ import annotations

import math

from converters.tf import ir


def elements(shape: ir.Shape) -> int:
    """Returns the elements of one example of a tensor."""
    return math.prod(d.scale if isinstance(d, ir.Batch) else d for d in shape)


def is_fixed(shape: ir.Shape) -> bool:
    """Returns whether a shape does not depend on the batch."""
    return not any(isinstance(d, ir.Batch) for d in shape)


def is_depthwise(node: ir.Node) -> bool:
    """Returns whether a convolution has a group per input channel, more than one."""
    if not isinstance(node.op, ir.Conv):
        return False
    channels = node.input.shape[-1]
    return node.op.groups == channels and channels != 1


def is_pointwise_sum(node: ir.Node) -> bool:
    """Returns whether a convolution with a residual is a product of matrices."""
    op = node.op
    kernel = node.operand(1)
    if not isinstance(op, ir.Conv) or kernel is None or node.operand(3) is None:
        return False
    return (
        op.groups == 1
        and math.prod(numbers(kernel.shape)[:-2]) == 1
        and all(s == 1 for s in op.strides)
        and all(p == (0, 0) for p in op.padding)
    )


def present(node: ir.Node, index: int) -> ir.Value:
    """Returns an operand that has to be there."""
    value = node.operand(index)
    if value is None:
        raise ValueError(f"{type(node.op).__name__} of layer {node.layer!r} lacks operand {index}")
    return value


def numbers(shape: ir.Shape) -> list[int]:
    """Returns the dimensions of a shape, the batch as its scale."""
    return [d.scale if isinstance(d, ir.Batch) else d for d in shape]
