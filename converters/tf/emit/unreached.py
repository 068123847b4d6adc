"""Leaves out of the kernels what a model never reaches.

Some kernels choose a way by the sizes that they are called with. So their code names all ways, and
a linker keeps each. The sizes of a model are known here: the copy of the kernels
that its crate gets has no way that none of its layers takes (`ways`). What would take it takes the
general way then, which computes the same more slowly.

Other ways are for operands that no layer makes, such as a matrix that is not packed: there they are
errors. What is copied of the runtime tells whether a layer makes some.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from converters.tf import ir
from converters.tf.emit.ways import NAMED, with_ways
from converters.tf.ir.sizes import has_open, numbers

_TEMPLATES = Path(__file__).parent.parent / "templates" / "unreached"

# As in kernels/src/frame/rows/passes.rs: the elements of rows that take several passes at a time.
_ROWS = range(64, 4096 + 1)
# As in kernels/src/ops/norm/softmax/short.rs: the most elements of rows that stay in registers.
_SHORT = 16
# As in kernels/src/gemm/block/narrow.rs: the steps that have tiles.
_STEPS = (1, 2, 3, 6)


def _has_tiles(node: ir.Node) -> bool:
    """Returns whether the filter of a convolution is transformed for tiles."""
    return isinstance(node.op, ir.Conv) and node.op.scratch(node) > 0


def _has_passes(node: ir.Node) -> bool:
    """Returns whether rows of a layer may take several passes at a time."""
    if not isinstance(node.op, ir.Softmax | ir.Norm):
        return False
    width = node.input.shape[-1:]
    return has_open(width) or numbers(width)[0] in _ROWS


def _widths(node: ir.Node) -> range:
    """Returns the elements that rows of a softmax may have; none of another layer."""
    if not isinstance(node.op, ir.Softmax):
        return range(0)
    width = node.input.shape[-1:]
    if has_open(width):
        return range(sys.maxsize)
    return range(numbers(width)[0], numbers(width)[0] + 1)


def _has_short_rows(node: ir.Node) -> bool:
    widths = _widths(node)
    return bool(widths) and widths[0] <= _SHORT


def _has_long_rows(node: ir.Node) -> bool:
    widths = _widths(node)
    return bool(widths) and widths[-1] > _SHORT


def _has_groups(node: ir.Node) -> bool:
    """Returns whether a convolution may have groups of few channels."""
    return isinstance(node.op, ir.Conv | ir.ConvTranspose) and node.op.groups > 1


def _has_images(node: ir.Node) -> bool:
    """Returns whether a layer has a product that sees an image through a filter."""
    return isinstance(node.op, ir.Conv | ir.ConvTranspose)


def _has_logarithms(node: ir.Node) -> bool:
    return isinstance(node.op, ir.Softmax) and node.op.log


def _is_scaled(node: ir.Node) -> bool:
    return isinstance(node.op, ir.ScaledDense)


# The module behind which minimal filtering is.
_TILES = "conv/winograd"
# Where the rows of a product are: in a matrix, if no layer sees an image through a filter.
_ROWS_OF_A = {"gemm/source.rs": "source.rs", "gemm/block/piece.rs": "piece.rs"}
# The files of enums with variants that only some kernels make.
_ENUMS = ("kernels/base/error.rs", "kernels/base/worth.rs")
# By its name in the kernels, whether a layer takes a way.
_WAYS: Mapping[str, Callable[[ir.Node], bool]] = {
    "passes": _has_passes,
    "short rows": _has_short_rows,
    "long rows": _has_long_rows,
    "groups": _has_groups,
    "images": _has_images,
    "logarithms": _has_logarithms,
    "scaled": _is_scaled,
}
# The files of the runtime whose kernels multiply matrices that are not packed, or that are
# transposed. All others multiply by `dense.rs`, `conv.rs` and `chain.rs`, which pack with std.
_PLAIN = frozenset({"attention.rs", "linear_system.rs", "mat_mul.rs", "recurrent.rs"})

PLAIN = "plain"
"""The way of products with a matrix that is not packed, or that is transposed."""

TRANSPOSED = "transposed"
"""The way of matrices that are transposed: those of `PLAIN`, and filters that are packed so."""

PACKING = 'all(feature = "std", not(without = "packing"))'
"""What the runtime says of code that packs weights when a model is made."""

HELPERS = "helpers"
"""Threads that a host of WebAssembly lends."""


def closed_ways(graph: ir.Graph, std: bool) -> set[str]:
    """Returns the names of ways that a model does not take, but for `PLAIN`.

    Minimal filtering is a file of its own.
    """
    nodes = list(graph.all_nodes())
    closed = {name for name, takes in _WAYS.items() if not any(map(takes, nodes))}
    steps = _steps(nodes)
    closed |= {f"step {step}" for step in _STEPS if step not in steps}
    # Rows that take several passes are never there without std.
    return closed | (set() if steps else {"steps"}) | (set() if std else {"passes"})


def _steps(nodes: list[ir.Node]) -> set[int]:
    """Returns those of `_STEPS` that neighbours of a convolution's image may be apart."""
    found: set[int] = set()
    for node in nodes:
        channels = node.input.shape[-1:] if isinstance(node.op, ir.Conv) else ()
        if isinstance(node.op, ir.ConvTranspose) or has_open(channels):
            return set(_STEPS)
        if isinstance(node.op, ir.Conv):
            found.add(numbers(channels)[0] * node.op.strides[-1])
    return found & set(_STEPS)


def without_unreached(
    kernels: Mapping[str, str], graph: ir.Graph, std: bool, packs: bool
) -> dict[str, str]:
    """Returns the kernels without the ways that a model does not take.

    Args:
        kernels: Sources by path below their `src`.
        graph: The model.
        std: Whether its crate has std.
        packs: Whether it packs weights when it is made.
    """
    files = dict(kernels)
    if not packs or not any(map(_has_tiles, graph.all_nodes())):
        # Only filters that are packed are transformed.
        files = {path: text for path, text in files.items() if not path.startswith(f"{_TILES}/")}
        files[f"{_TILES}.rs"] = (_TEMPLATES / "winograd.rs").read_text("utf-8")
    closed = closed_ways(graph, std)
    if "images" in closed:
        for path, name in _ROWS_OF_A.items():
            files[path] = (_TEMPLATES / name).read_text("utf-8")
    ways = {*_WAYS, "steps", *(f"step {step}" for step in _STEPS)}
    return {path: with_ways(text, closed, ways) for path, text in files.items()}


def has_packed_products(files: Mapping[str, str]) -> bool:
    """Whether all products of the copied sources of a crate with std are of packed matrices.

    Args:
        files: The runtime and the kernels, by path below the runtime's folder.
    """
    return _PLAIN.isdisjoint(files)


def without_unmade_variants(files: Mapping[str, str]) -> dict[str, str]:
    """Returns sources in which enums have no variant that no kernel makes.

    What only such variants named, as the type of a field, may be reached no more. If so, what it
    named itself may not be made any more.

    Args:
        files: The runtime and the kernels, by path below the runtime's folder.
    """
    out = dict(files)
    for path in _ENUMS:
        others = [text for other, text in files.items() if other != path]
        closed = {
            name
            for name in _variants(files.get(path, ""))
            if not any(re.search(rf"\b{name}\b", text) for text in others)
        }
        if closed:
            out[path] = with_ways(files[path], closed, closed)
    return out


def with_variants(files: Mapping[str, str]) -> dict[str, str]:
    """Returns sources in which enums have the variants that are there, and no attributes of them.

    Args:
        files: As for `without_unmade_variants`.
    """
    kept = {
        path: with_ways(files[path], set(), _variants(files[path]))
        for path in _ENUMS
        if path in files
    }
    return {**files, **kept}


def _variants(text: str) -> set[str]:
    """Returns the variants that a source has attributes for."""
    return {name for name in NAMED.findall(text) if "::" in name}


def with_products(files: Mapping[str, str], graph: ir.Graph, packed: bool) -> dict[str, str]:
    """Returns sources with the ways of products that a model takes: `PLAIN` and `TRANSPOSED`.

    Args:
        files: Sources by path.
        graph: The model.
        packed: Whether all products are of packed matrices.
    """
    closed = {PLAIN} if packed else set()
    if packed and not any(isinstance(node.op, ir.ConvTranspose) for node in graph.all_nodes()):
        closed.add(TRANSPOSED)
    return {path: with_ways(text, closed, {PLAIN, TRANSPOSED}) for path, text in files.items()}


def with_helpers(files: Mapping[str, str], helped: bool) -> dict[str, str]:
    """Returns sources with or without the threads that a host of WebAssembly lends.

    Without a program that starts them, the caller's is the only thread there.
    """
    closed = frozenset() if helped else {HELPERS}
    return {path: with_ways(text, closed, {HELPERS}) for path, text in files.items()}


def with_packing(files: Mapping[str, str], packs: bool) -> dict[str, str]:
    """Returns sources whose code that packs weights is marked as there, or as not there."""
    return {path: text.replace(PACKING, str(packs).lower()) for path, text in files.items()}
