"""Leaves out of the kernels what a model never reaches.

Some kernels choose a way by the sizes that they are called with, so that the code of all ways names
each of them, and a linker keeps each. The sizes of a model are known here: where none of its layers
takes a way, its constant in `kernels/src/base/reached.rs` is false in the copy of the kernels that
the crate gets. What would take it takes the general way then, which computes the same more slowly.

Other ways are for operands that no layer makes, such as a matrix that is not packed. What is copied
of the runtime tells whether one does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from converters.tf import ir
from converters.tf.ir.sizes import has_open, numbers

_TEMPLATES = Path(__file__).parent.parent / "templates" / "unreached"

# As in kernels/src/frame/rows/passes.rs: the elements of rows that take several passes at a time.
_ROWS = range(64, 4096 + 1)
# As in kernels/src/gemm/block/narrow.rs: the steps that have tiles.
_STEPS = (1, 2, 3, 6)

# As in converters/runtime/src/engine.rs: where a host may lend threads.
_BROWSER = 'all(target_family = "wasm", target_os = "unknown")'

CONSTANTS: Final = "base/reached.rs"
"""The file of the kernels with a constant for each way."""


def _has_tiles(node: ir.Node) -> bool:
    """Returns whether the filter of a convolution is transformed for tiles."""
    return isinstance(node.op, ir.Conv) and node.op.scratch(node) > 0


def _has_passes(node: ir.Node) -> bool:
    """Returns whether rows of a layer may take several passes at a time."""
    if not isinstance(node.op, ir.Softmax | ir.Norm):
        return False
    width = node.input.shape[-1:]
    return has_open(width) or numbers(width)[0] in _ROWS


def _has_groups(node: ir.Node) -> bool:
    """Returns whether a convolution may have groups of few channels."""
    return isinstance(node.op, ir.Conv | ir.ConvTranspose) and node.op.groups > 1


def _is_scaled(node: ir.Node) -> bool:
    return isinstance(node.op, ir.ScaledDense)


# The module behind which minimal filtering is.
_TILES = "conv/winograd"
# By constant, whether a layer of a crate with std takes the way; without std none does.
_WAYS: Mapping[str, Callable[[ir.Node], bool]] = {
    "PASSES": _has_passes,
    "GROUPS": _has_groups,
    "SCALED": _is_scaled,
}
# The files of the runtime whose kernels multiply matrices that are not packed, or that are
# transposed. All others multiply by `dense.rs`, `conv.rs` and `chain.rs`, which pack with std.
_PLAIN = frozenset({"attention.rs", "linear_system.rs", "mat_mul.rs", "recurrent.rs"})


def constants(graph: ir.Graph) -> dict[str, str]:
    """Returns the values of constants, as Rust has them, for the ways that a model does not take.

    Minimal filtering is a file of its own, and `PLAIN` depends on what is copied of the runtime.
    """
    nodes = list(graph.all_nodes())
    values = {name: "false" for name, takes in _WAYS.items() if not any(map(takes, nodes))}
    steps = _steps(nodes)
    if steps != set(_STEPS):
        each = ("true" if step in steps else "false" for step in range(max(_STEPS) + 1))
        values["STEPS"] = f"&[{', '.join(each)}]"
    return values


def _with_values(text: str, values: Mapping[str, str]) -> str:
    """Returns the file of constants with other values, for those of them that are in it."""
    for name, value in values.items():
        text = re.sub(rf"(const {name}: [^=]+ = )[^;]*;", rf"\g<1>{value};", text, count=1)
    return text


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


def without_unreached(kernels: Mapping[str, str], graph: ir.Graph, std: bool) -> dict[str, str]:
    """Returns the kernels without the ways that a model does not take.

    Args:
        kernels: Sources by path below their `src`.
        graph: The model.
        std: Whether its crate has std.
    """
    files = dict(kernels)
    if not std or not any(map(_has_tiles, graph.all_nodes())):
        # Without std no filter is transformed.
        files = {path: text for path, text in files.items() if not path.startswith(f"{_TILES}/")}
        files[f"{_TILES}.rs"] = (_TEMPLATES / "winograd.rs").read_text("utf-8")
    if std:
        files[CONSTANTS] = _with_values(files[CONSTANTS], constants(graph))
    return files


def with_packed_products(files: Mapping[str, str]) -> dict[str, str]:
    """Returns the copied sources of a crate with std without code for other products.

    Args:
        files: The runtime and the kernels, by path below the runtime's folder.
    """
    path = f"kernels/{CONSTANTS}"
    if path not in files or not _PLAIN.isdisjoint(files):
        return dict(files)
    return {**files, path: _with_values(files[path], {"PLAIN": "false"})}


def with_gated_helpers(files: Mapping[str, str]) -> dict[str, str]:
    """Returns the copied sources of a crate whose host lends no threads.

    Threads that a host lends are in the engine of WebAssembly alone. If nothing else names them,
    other systems do not compile them.

    Args:
        files: The runtime and the kernels, by path below the runtime's folder.
    """
    above, path = "kernels/base/mod.rs", "kernels/base/helpers.rs"
    named = {file for file, text in files.items() if "helpers::" in text} - {path}
    if path not in files or named != {"engine.rs"}:
        return dict(files)
    text = files[above].replace("pub mod helpers;", f"#[cfg({_BROWSER})]\npub mod helpers;", 1)
    return {**files, above: text}
