"""Products with weights of int8, whose other factors become int8 by their range at run time.

Sums are of int32. Each row of a matmul and each image of a convolution has its own scale, so that
examples do not depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from converters.tf import ir
from converters.tf.ir import Array
from converters.tf.ir.ops.quantized import packed, spread
from converters.tf.ir.sizes import has_open, numbers
from converters.tf.passes.rewrite import without_dead_nodes
from converters.tf.passes.rounded import as_bytes, is_large


@dataclass(frozen=True)
class _Weights:
    """What a layer has in place of its float32 kernel."""

    kernel: ir.Value
    totals: ir.Value
    factors: ir.Value


def quantized(graph: ir.Graph) -> ir.Graph:
    """Returns a graph whose matmuls and convolutions with large weights multiply int8 numbers.

    Weights of integers stay as they are, because their products are exact. So do grouped
    convolutions, images of open sizes, and what loops contain.
    """
    return _Pass(graph).run()


def is_quantized(graph: ir.Graph) -> bool:
    """Returns whether a graph has numbers that become int8 by their range at run time."""
    return any(isinstance(node.op, ir.DynamicLevels) for node in graph.nodes)


@dataclass
class _Pass:
    graph: ir.Graph
    nodes: list[ir.Node] = field(default_factory=list)
    levels: dict[tuple[ir.Value, int], tuple[ir.Value, ir.Value]] = field(default_factory=dict)
    weights: dict[ir.Value, _Weights | None] = field(default_factory=dict)

    def run(self) -> ir.Graph:
        for node in self.graph.nodes:
            self.nodes.append(self._made(node) or node)
        return without_dead_nodes(replace(self.graph, nodes=tuple(self.nodes)))

    def _made(self, node: ir.Node) -> ir.Node | None:
        op = node.op
        if not isinstance(op, ir.Dense | ir.Conv):
            return None
        bias = node.operand(2)
        if bias is not None and not bias.is_constant:
            return None
        if isinstance(op, ir.Conv) and (op.groups != 1 or has_open(node.input.shape)):
            return None
        weights = self._weights(node.given(1))
        if weights is None:
            return None
        *taps, _, outputs = numbers(node.given(1).shape)
        made: ir.Op = ir.DynamicDense(outputs, op.activation)
        axes = 1
        if isinstance(op, ir.Conv):
            window = (tuple(taps), op.strides, op.dilations, op.padding)
            axes, made = node.input.rank - 1, ir.DynamicConv(*window, outputs, op.activation)
        levels = self._levels(node, axes)
        parts = (weights.kernel, weights.totals, weights.factors, bias, node.operand(3))
        return replace(node, op=made, inputs=(*levels, *parts))

    def _levels(self, node: ir.Node, axes: int) -> tuple[ir.Value, ir.Value]:
        """Returns levels of an operand and what they stand for, made on the first use."""
        x = node.input
        if (x, axes) not in self.levels:
            op = ir.DynamicLevels(axes)
            kinds = (ir.DType.I8, ir.DType.F32)
            shapes = op.shapes([x.shape])
            levels, ends = (ir.Value(*each) for each in zip(kinds, shapes, strict=True))
            self.nodes.append(ir.Node(op, (x,), (levels, ends), node.layer))
            self.levels[x, axes] = levels, ends
        return self.levels[x, axes]

    def _weights(self, kernel: ir.Value) -> _Weights | None:
        if kernel not in self.weights:
            self.weights[kernel] = None if kernel.data is None else _weights(kernel)
        return self.weights[kernel]


def _weights(kernel: ir.Value) -> _Weights | None:
    """Returns int8 weights, if it is worth it and their products are not exact already."""
    data = kernel.data
    assert data is not None
    parts = as_bytes(data) if is_large(data) else None
    if parts is None or np.array_equal(parts[0], data.reshape(parts[0].shape)):
        return None
    whole, factors = parts
    owner = kernel.name.rpartition("/")[0]

    def named(role: str, array: Array) -> ir.Value:
        return ir.constant(array, f"{owner}/{role}" if owner else role)

    widened = np.pad(factors, (0, spread(factors).size - factors.size))
    return _Weights(
        named("kernel", packed(np.ascontiguousarray(whole.T)[:, None])),
        named("totals", spread(whole.sum(axis=0, dtype=np.int64))),
        named("factors", widened),
    )
