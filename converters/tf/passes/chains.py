"""Layers that are computed together: convolutions, a band of lines at a time, and two products.

An image that does not stay in the second cache costs more to write and to read again than a
convolution of each channel costs. The matrices of two products of one row may not stay in that
cache. Then one walk reads them less often from behind it. Only packed weights can stand in a chain,
so this is not part of the pipeline: the plan of a crate that packs them asks for it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from converters.tf import ir

# As in kernels/src/conv/chain.rs.
MAX_LINKS = 4
# Bytes of an image that does not stay in the second cache with what is read and written beside it:
# a core has 1 or 2 MiB of it.
_FAR_BYTES = 512 << 10
# Elements of two matrices that may not stay there: as in kernels/src/gemm/thin/pair.rs.
FAR_WEIGHTS = 1 << 18


def with_chains(graph: ir.Graph) -> ir.Graph:
    """Returns a graph without large images between convolutions, and with pairs of products."""
    users = Counter(port.value for port in graph.outputs)
    for node in graph.nodes:
        users.update(node.present)
    links_of = {node.input: node for node in graph.nodes if _is_link(node)}
    products = {node.input: node for node in graph.nodes if _is_product(node)}
    chains: dict[ir.Node, tuple[ir.Node, ...]] = {}
    inside: set[ir.Node] = set()
    for node in graph.nodes:
        if node in inside:
            continue
        links = [node]
        if _is_product(node):
            after = products.get(node.output)
            if after is not None and users[node.output] == 1 and _are_far(node, after):
                links.append(after)
        while _is_link(node) and len(links) < MAX_LINKS and users[links[-1].output] == 1:
            after = links_of.get(links[-1].output)
            if after is None or not _pays(links[-1], after):
                break
            links.append(after)
        if len(links) > 1:
            chains[links[-1]] = tuple(links)
            inside.update(links)
    nodes = [
        _chain(chains[node]) if node in chains else node
        for node in graph.nodes
        if node in chains or node not in inside
    ]
    return replace(graph, nodes=tuple(nodes))


def _chain(links: tuple[ir.Node, ...]) -> ir.Node:
    weights = dict.fromkeys(v for link in links for v in link.present if v.is_constant)
    last = links[-1]
    return replace(last, op=ir.Chain(links), inputs=(links[0].input, *weights))


def _pays(before: ir.Node, after: ir.Node) -> bool:
    """Returns whether the image between two convolutions is better not there as a whole."""
    image = before.output
    size = image.dtype.bytes
    for dim in image.shape[1:]:
        size *= dim if isinstance(dim, int) else 1
    # Products that read bands lose more than the image costs.
    return size >= _FAR_BYTES and not _by_channel(before) and _by_channel(after)


def _by_channel(node: ir.Node) -> bool:
    """Returns whether a convolution has one filter for each of several channels."""
    assert isinstance(node.op, ir.Conv)
    return node.op.groups == node.input.shape[-1] == node.output.shape[-1] != 1


def _is_link(node: ir.Node) -> bool:
    op, kernel = node.op, node.operand(1)
    if not isinstance(op, ir.Conv) or kernel is None or kernel.data is None:
        return False
    if node.input.rank != 4 or node.input.is_constant or node.operand(3) is not None:
        return False
    bias = node.operand(2)
    if bias is not None and bias.data is None:
        return False
    if not isinstance(node.input.shape[0], ir.Batch) or not _sees(node, op, kernel):
        return False
    if _by_channel(node):
        return True
    # Their filters may be transformed for tiles.
    tiled = kernel.shape[:2] == (3, 3) and op.strides == (1, 1) and op.dilations == (1, 1)
    return op.groups == 1 and not tiled


def _sees(node: ir.Node, op: ir.Conv, kernel: ir.Value) -> bool:
    """Returns whether every line of the output sees a part of the image."""
    height, lines, taps = node.input.shape[1], node.output.shape[1], kernel.shape[0]
    if not (isinstance(height, int) and isinstance(lines, int) and isinstance(taps, int)):
        return False
    before = op.padding[0][0]
    return before <= (taps - 1) * op.dilations[0] and (lines - 1) * op.strides[0] < before + height


def _is_product(node: ir.Node) -> bool:
    """Returns whether a node is a product of one row per example and a matrix of weights."""
    kernel, bias = node.operand(1), node.operand(2)
    return (
        isinstance(node.op, ir.Dense)
        and not node.input.is_constant
        and node.input.rank == 2
        and node.input.shape[0] == ir.Batch()
        and kernel is not None
        and kernel.data is not None
        and (bias is None or bias.data is not None)
        and node.operand(3) is None
    )


def _are_far(before: ir.Node, after: ir.Node) -> bool:
    """Returns whether the matrices of two products may not stay in the second cache."""
    kernels = (before.operand(1), after.operand(1))
    return sum(k.data.size for k in kernels if k is not None and k.data is not None) >= FAR_WEIGHTS
