"""Products of one operand whose results an attention reads: one product with all their columns.

Who can't read columns of a result gains nothing, so this is not part of the pipeline: the plan of a
crate asks for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from converters.tf import ir
from converters.tf.ir.build import Builder


def with_joined_products(graph: ir.Graph) -> ir.Graph:
    """Returns a graph in which such products are one, and their results slices of its result."""
    groups: dict[tuple[ir.Value, ir.Op, bool], list[ir.Node]] = {}
    read = read_by_attention(graph)
    for node in graph.nodes:
        if not isinstance(node.op, ir.Dense) or node.output not in read:
            continue
        kernel, bias, residual = (node.operand(i) for i in (1, 2, 3))
        constant = kernel is not None and kernel.is_constant
        constant &= bias is None or bias.is_constant
        if constant and residual is None:
            groups.setdefault((node.input, node.op, bias is None), []).append(node)
    first = {nodes[0]: nodes for nodes in groups.values() if len(nodes) > 1}
    joined = {node for nodes in first.values() for node in nodes}
    build = Builder()
    new: dict[ir.Value, ir.Value] = {}
    for node in graph.nodes:
        if node in first:
            new |= _join(build, first[node])
        elif node not in joined:
            inputs = tuple(None if v is None else new.get(v, v) for v in node.inputs)
            build.nodes.append(replace(node, inputs=inputs))
    return replace(graph, nodes=tuple(build.nodes))


def read_by_attention(graph: ir.Graph) -> set[ir.Value]:
    """Returns the values that only attentions read whose heads lie side by side.

    They may read them reshaped; the last axis of such a value is what all heads have of a line.
    """
    rows: dict[ir.Value, int] = {}
    others = {port.value for port in graph.outputs}
    for node in reversed(graph.nodes):
        found: list[tuple[ir.Value, int]] = []
        if isinstance(node.op, ir.Attention) and node.op.beside:
            for side in node.present:
                *_, heads, depth = (d if isinstance(d, int) else 0 for d in side.shape)
                found.append((side, heads * depth))
        elif isinstance(node.op, ir.Reshape) and node.output in rows and node.output not in others:
            found.append((node.input, rows[node.output]))
        else:
            others.update(node.present)
        others.update(v for v, row in found if rows.setdefault(v, row) != row)
    return {v for v, row in rows.items() if v not in others and v.rank and v.shape[-1] == row}


def _join(build: Builder, nodes: list[ir.Node]) -> dict[ir.Value, ir.Value]:
    """Emits the product of all; returns what stands for each one's result."""
    kernels = [_data(node, 1) for node in nodes]
    names = [(node.operand(1) or node.input).name.split("/") for node in nodes]
    common = 0
    while len({name[common] for name in names if len(name) > common + 1}) == 1:
        common += 1
    own = [name[common] for name in names]
    build.layer = "/".join([*names[0][:common], "_".join(own)])
    operands = [nodes[0].input, ir.constant(np.concatenate(kernels, 1), f"{build.layer}/kernel")]
    if nodes[0].operand(2) is not None:
        biases = np.concatenate([_data(node, 2) for node in nodes])
        operands.append(ir.constant(biases, f"{build.layer}/bias"))
    widths = [kernel.shape[1] for kernel in kernels]
    lead = nodes[0].output.shape[:-1]
    whole = build.emit(nodes[0].op, operands, (*lead, sum(widths)))
    slices = {}
    for place, node in enumerate(nodes):
        build.layer = node.layer
        begin = (*(0 for _ in lead), sum(widths[:place]))
        op = ir.Slice(begin, (1,) * len(begin))
        slices[node.output] = build.emit(op, [whole], node.output.shape)
    return slices


def _data(node: ir.Node, index: int) -> ir.Array:
    value = node.operand(index)
    if value is None or value.data is None:
        raise ValueError(f"operand {index} of {node.layer!r} is not a constant")
    return value.data
