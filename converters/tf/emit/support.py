"""What can't be emitted: asked before any file is written."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.emit.ops.registry import OPS
from converters.tf.plan import arena as plan

# Ops that read texts.
_READING = (
    *(ir.SameText, ir.TextMatch, ir.TextPrint, ir.TokenCounts, ir.TokenValues),
    *ir.WRITING,
)
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
    reads = isinstance(op, _READING)
    texts = (
        *(() if reads else node.present),
        *(() if isinstance(op, ir.WRITING) else node.outputs),
    )
    if any(v.dtype is ir.DType.STR for v in texts):
        return [f"{name} of text"]
    if type(op) not in OPS:
        return [f"{name} has no emitter"]
    reasons = []
    ranks = [v.rank for v in (*node.present, *node.outputs)]
    if max(ranks) > _MAX_RANK:
        reasons.append(f"{name} of rank {max(ranks)}; at most {_MAX_RANK} are supported")
    return [*reasons, *op.refused(node)]
