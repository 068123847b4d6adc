"""The passes in their order."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.passes import algebra, fusion
from converters.tf.passes.rewrite import merged, rewrite, without_dead_nodes, without_twins


def optimize(graph: ir.Graph) -> ir.Graph:
    """Returns a graph that computes the same with fewer and larger nodes."""
    graph = without_twins(without_dead_nodes(graph))
    graph = rewrite(graph, merged(algebra.RULES, fusion.FOLD))
    graph = without_twins(graph)
    graph = rewrite(graph, merged(algebra.RULES, fusion.FUSE))
    return without_twins(graph)
