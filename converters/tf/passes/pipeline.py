"""The passes in their order."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.passes import (
    algebra,
    attention,
    functions,
    fusion,
    images,
    loops,
    narrow,
    norms,
    recurrent,
    steps,
    whole,
)
from converters.tf.passes.rewrite import merged, rewrite, without_dead_nodes, without_twins
from converters.tf.passes.unroll import without_loops


def optimize(graph: ir.Graph) -> ir.Graph:
    """Returns a graph that computes the same with fewer and larger nodes.

    First constants move into weights, then functions, norms and recurrent layers are recognised,
    and what comes before and after products joins them last: a product with an activation hides
    its parts. Steps of a sequence that do the same are joined before. Loops that are left are
    written out if they are short; then integers get sizes that have arithmetic.
    """
    graph = without_loops(_fuse(steps.with_joined_steps(_recognise(graph))))
    return loops.with_own_results(_fuse(_widen(without_dead_nodes(graph))))


def _recognise(graph: ir.Graph) -> ir.Graph:
    graph = loops.with_bodies(without_dead_nodes(graph), _recognise)
    graph = without_twins(graph)
    graph = rewrite(graph, merged(algebra.RULES, algebra.WRAPPED, whole.RULES, fusion.FOLD))
    graph = without_twins(graph)
    known = merged(
        algebra.RULES,
        algebra.WRAPPED,
        norms.RULES,
        functions.RULES,
        attention.RULES,
        recurrent.RULES,
        images.RULES,
    )
    return without_twins(rewrite(graph, known))


def _widen(graph: ir.Graph) -> ir.Graph:
    return loops.with_bodies(rewrite(graph, narrow.RULES), _widen)


def _fuse(graph: ir.Graph) -> ir.Graph:
    graph = rewrite(graph, merged(algebra.RULES, fusion.FUSE))
    return loops.with_bodies(without_twins(graph), _fuse)
