"""Multiplications with addition of the ops, for one example."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from converters.tf import ir
from converters.tf.ir.sizes import elements, numbers, present


def macs(node: ir.Node) -> int:
    """Returns the multiplications with addition of a node for one example."""
    cost = _MACS.get(type(node.op))
    return 0 if cost is None else cost(node)


def _dense_macs(node: ir.Node) -> int:
    scaled = elements(node.input.shape) if node.operand(5) is not None else 0
    return elements(node.input.shape) * numbers(present(node, 1).shape)[-1] + scaled


def _mat_mul_macs(node: ir.Node) -> int:
    op = node.op
    transposed = isinstance(op, ir.MatMul) and op.transpose_a
    return elements(node.output.shape) * numbers(node.input.shape)[-2 if transposed else -1]


def _conv_macs(node: ir.Node) -> int:
    filter_shape = numbers(present(node, 1).shape)
    return elements(node.output.shape) * math.prod(filter_shape[:-1])


def _chain_macs(node: ir.Node) -> int:
    assert isinstance(node.op, ir.Chain)
    return sum(macs(link) for link in node.op.links)


def _transpose_macs(node: ir.Node) -> int:
    filter_shape = numbers(present(node, 1).shape)
    return elements(node.input.shape) * math.prod(filter_shape[:-1])


def _attention_macs(node: ir.Node) -> int:
    assert isinstance(node.op, ir.Attention)
    _, *lines, width = numbers(present(node, 2).shape)
    keys = lines[0 if node.op.beside else 1]
    depth = numbers(node.input.shape)[-1]
    return elements(node.input.shape) // max(depth, 1) * keys * (depth + width)


def _recurrent_macs(node: ir.Node) -> int:
    batch, steps, _ = numbers(node.input.shape)
    weights = elements(present(node, 1).shape) + elements(present(node, 2).shape)
    return batch * steps * weights


_MACS: Mapping[type[object], Callable[[ir.Node], int]] = {
    ir.Dense: _dense_macs,
    ir.ScaledDense: _dense_macs,
    ir.MatMul: _mat_mul_macs,
    ir.Conv: _conv_macs,
    ir.ConvTranspose: _transpose_macs,
    ir.Chain: _chain_macs,
    ir.Attention: _attention_macs,
    ir.Lstm: _recurrent_macs,
    ir.Gru: _recurrent_macs,
    ir.SimpleRnn: _recurrent_macs,
    ir.ScaleShift: lambda node: elements(node.output.shape),
}
