"""The passes in their order."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.passes import algebra, functions, fusion, loops, norms
from converters.tf.passes.rewrite import merged, rewrite, without_dead_nodes, without_twins


def optimize(graph: ir.Graph) -> ir.Graph:
    """Returns a graph that computes the same with fewer and larger nodes.

    First constants move into weights, then functions and norms are recognised, and what comes
    before and after products joins them last: a product with an activation hides its parts. Bodies
    of loops come before what surrounds them.
    """
    graph = loops.with_bodies(graph, optimize)
    graph = without_twins(without_dead_nodes(graph))
    graph = rewrite(graph, merged(algebra.RULES, fusion.FOLD))
    graph = without_twins(graph)
    graph = rewrite(graph, merged(algebra.RULES, norms.RULES, functions.RULES))
    graph = without_twins(graph)
    graph = rewrite(graph, merged(algebra.RULES, fusion.FUSE))
    return without_twins(graph)
