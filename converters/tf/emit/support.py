"""What can't be emitted: asked before any file is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from converters.tf import ir
from converters.tf.emit.functions import BINARY, COMPARE, REDUCE, unary
from converters.tf.emit.ops import OPS, changes_size
from converters.tf.ir.build import SINGLE
from converters.tf.plan import arena as plan

_CASTS = frozenset(
    [ir.DType.F32, ir.DType.F64, ir.DType.I32, ir.DType.I64, ir.DType.BOOL, ir.DType.U8]
)
_INDICES = frozenset([ir.DType.I32, ir.DType.I64])
_NUMBERS = frozenset([ir.DType.F32, ir.DType.F64, ir.DType.I32, ir.DType.I64])
# As many axes as the kernels' shapes have.
_MAX_RANK = 8


def problems(graph: ir.Graph) -> list[tuple[str, str]]:
    """Returns the layer and the reason for everything that the emitters refuse, in order."""
    found = list(plan.problems(graph))
    for port in (*graph.inputs, *graph.outputs):
        if sum(isinstance(d, ir.Batch) for d in port.value.shape) > 1:
            found.append((port.name, "has two axes that depend on the batch size"))
    for node in graph.all_nodes():
        found += [(node.layer, reason) for reason in _reasons(node)]
    return found


def _reasons(node: ir.Node) -> list[str]:
    op = node.op
    if isinstance(op, ir.Reshape):
        return []
    name = type(op).__name__
    if type(op) not in OPS:
        return [f"{name} has no emitter"]
    reasons = []
    ranks = [v.rank for v in (*node.present, *node.outputs)]
    if max(ranks) > _MAX_RANK:
        reasons.append(f"{name} of rank {max(ranks)}; at most {_MAX_RANK} are supported")
    if type(op) in SINGLE:
        for found in sorted({v.dtype for v in node.present} - {ir.DType.F32, ir.DType.BOOL}):
            reasons += _types(name, found, frozenset([ir.DType.F32]))
    check = _CHECKS.get(type(op))
    if check is not None:
        reasons += check(node)
    return reasons


def _types(name: str, found: ir.DType, allowed: frozenset[ir.DType]) -> list[str]:
    if found in allowed:
        return []
    return [f"{name} of {found}; supported: {', '.join(sorted(allowed))}"]


def _unary(node: ir.Node) -> list[str]:
    assert isinstance(node.op, ir.Unary)
    function = node.op.function
    kernel = unary(function, node.input.dtype)
    return _types(str(function.kind), node.input.dtype, kernel.types)


def _binary(node: ir.Node) -> list[str]:
    assert isinstance(node.op, ir.Binary)
    reasons = _types(str(node.op.kind), node.input.dtype, BINARY[node.op.kind].types)
    if node.op.activation is not None and node.input.dtype is not ir.DType.F32:
        reasons.append(f"{node.op.kind} of {node.input.dtype} with an activation; f32 only")
    return reasons


def _compare(node: ir.Node) -> list[str]:
    assert isinstance(node.op, ir.Compare)
    return _types(str(node.op.kind), node.input.dtype, COMPARE[node.op.kind].types)


def _reduce(node: ir.Node) -> list[str]:
    assert isinstance(node.op, ir.Reduce)
    return _types(f"reduce {node.op.kind}", node.input.dtype, REDUCE[node.op.kind].types)


def _cast(node: ir.Node) -> list[str]:
    if changes_size(node):
        return []
    targets = _CASTS - {ir.DType.U8}
    return [
        *_types("cast", node.input.dtype, _CASTS),
        *_types("cast to", node.output.dtype, targets),
    ]


def _arg(node: ir.Node) -> list[str]:
    return _types("arg_max", node.input.dtype, _NUMBERS)


def _top_k(node: ir.Node) -> list[str]:
    return _types("top_k", node.input.dtype, _NUMBERS)


def _cumulative(node: ir.Node) -> list[str]:
    return _types("cumulative", node.input.dtype, _NUMBERS)


def _whole_product(node: ir.Node) -> list[str]:
    return _types("product of matrices", node.input.dtype, _INDICES)


def _indices(index: int) -> Callable[[ir.Node], list[str]]:
    def check(node: ir.Node) -> list[str]:
        value = node.operand(index)
        return [] if value is None else _types("indices", value.dtype, _INDICES)

    return check


def _scatter(node: ir.Node) -> list[str]:
    return [*_types("scatter", node.input.dtype, _NUMBERS), *_indices(1)(node)]


_CHECKS: Mapping[type[object], Callable[[ir.Node], list[str]]] = {
    ir.ArgExtreme: _arg,
    ir.Binary: _binary,
    ir.Cast: _cast,
    ir.Compare: _compare,
    ir.Cumulative: _cumulative,
    ir.Gather: _indices(1),
    ir.OneHot: _indices(0),
    ir.Reduce: _reduce,
    ir.Scatter: _scatter,
    ir.TopK: _top_k,
    ir.Unary: _unary,
    ir.WholeProduct: _whole_product,
}
