"""Leaves out of the kernels what a model never reaches.

Some kernels choose a way by the sizes that they are called with, so that the code of all ways names
each of them, and a linker keeps each. The sizes of a model are known here: where none of its layers
takes a way, the way is closed in the copy of the kernels that the crate gets. What would take it
takes the general way then, which computes the same more slowly.

Other ways are for operands that no layer makes, such as a matrix that is not packed. What is copied
of the runtime tells whether one does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from converters.tf import ir
from converters.tf.ir.sizes import has_open, numbers

_TEMPLATES = Path(__file__).parent.parent / "templates" / "unreached"

# As in kernels/src/frame/rows/passes.rs: the elements of rows that take several passes at a time.
_ROWS = range(64, 4096 + 1)
# As in kernels/src/gemm/block/narrow.rs: the steps that have tiles.
_STEPS = (1, 2, 3, 6)


@dataclass(frozen=True)
class Change:
    """A text of the kernels that becomes another.

    Attributes:
        file: Its file below `src`.
        text: What is there once.
        instead: What takes its place.
    """

    file: str
    text: str
    instead: str


@dataclass(frozen=True)
class _Way:
    """A way that some layers take.

    Attributes:
        is_taken: Whether a layer of a crate with std takes it; without std none does.
        change: What closes it.
    """

    is_taken: Callable[[ir.Node], bool]
    change: Change


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
_WAYS = (
    _Way(
        _has_passes,
        Change(
            "frame/rows/passes.rs",
            'cfg!(feature = "std")\n        && (LANES..=WIDEST)',
            "false\n        && (LANES..=WIDEST)",
        ),
    ),
    _Way(
        _has_groups,
        Change(
            "conv/direct.rs",
            "spreads(level, conv) || level == Level::Avx512 &&",
            'cfg!(target_arch = "x86_64") && level == Level::Avx512 &&',
        ),
    ),
    _Way(
        _is_scaled,
        Change(
            "gemm/block/in_place.rs",
            "    let (apart, k) = (source.pixel, from.run(to, source.depth));\n",
            "    if const { true } {\n        return 0;\n    }\n"
            "    let (apart, k) = (source.pixel, from.run(to, source.depth));\n",
        ),
    ),
)


# The files of the runtime whose kernels multiply matrices that are not packed, or that are
# transposed. All others multiply by `dense.rs`, `conv.rs` and `chain.rs`, which pack with std.
_PLAIN = frozenset({"attention.rs", "linear_system.rs", "mat_mul.rs", "recurrent.rs"})
# Each keeps the compiler from code for them, and fails where there is one nevertheless.
_PACKED = (
    Change(
        "kernels/gemm/mod.rs",
        "        if gemv::run_few(self, c) {\n",
        "        if !matches!(self.b, Right::Packed(_)) || self.a.transposed {\n"
        '            let (argument, expected) = ("b", "a packed matrix");\n'
        "            return Err(Error::Value { argument, expected });\n"
        "        }\n"
        "        if gemv::run_few(self, c) {\n",
    ),
    Change(
        "kernels/gemm/block.rs",
        "            A::Columns { data, ld, k, far } => {\n",
        "            A::Columns { .. } if const { true } => unreachable!(),\n"
        "            A::Columns { data, ld, k, far } => {\n",
    ),
    Change(
        "kernels/gemm/block.rs",
        "let packed = matches!(b.b, B::Packed { .. });",
        "let packed = matches!(b.b, B::Packed { .. }) || unreachable!();",
    ),
    Change(
        "kernels/conv/forward.rs",
        '        check_len("input", input.len(), conv.input_len())?;\n',
        "        if matches!(self.filter, Filter::Plain(_)) {\n"
        '            return check_len("packed", 0, 1);\n'
        "        }\n"
        '        check_len("input", input.len(), conv.input_len())?;\n',
    ),
)


def changes(graph: ir.Graph) -> list[Change]:
    """Returns what closes the ways that no layer of a model takes, minimal filtering apart."""
    nodes = list(graph.all_nodes())
    found = [way.change for way in _WAYS if not any(map(way.is_taken, nodes))]
    steps = _steps(nodes)
    if steps != set(_STEPS):
        kept = " | ".join(str(step) for step in sorted(steps))
        text = "matches!(step, 1 | 2 | 3 | 6)"
        instead = f"matches!(step, {kept})" if kept else "false"
        found.append(Change("gemm/block/narrow.rs", text, instead))
    return found


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
    for change in changes(graph) if std else ():
        files[change.file] = files[change.file].replace(change.text, change.instead)
    return files


def with_packed_products(files: Mapping[str, str]) -> dict[str, str]:
    """Returns the copied sources of a crate with std without code for other products.

    Args:
        files: The runtime and the kernels, by path below the runtime's folder.
    """
    left = dict(files)
    if not _PLAIN.isdisjoint(files):
        return left
    for change in _PACKED:
        if change.file in left:
            left[change.file] = left[change.file].replace(change.text, change.instead)
    return left
