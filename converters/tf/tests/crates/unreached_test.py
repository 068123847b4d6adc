"""Which ways of the kernels are closed for which models."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from converters.tf import ir
from converters.tf.emit import unreached
from converters.tf.emit.modules import code_of
from converters.tf.emit.options import Options, Profile
from converters.tf.emit.unreached import (
    HELPERS,
    PLAIN,
    TRANSPOSED,
    closed_ways,
    with_variants,
    without_unmade_variants,
    without_unreached,
)
from converters.tf.emit.vendor import read_sources, strip
from converters.tf.emit.ways import NAMED
from converters.tf.ir.expressions import unknown
from converters.tf.tests.crates import graphs, more_graphs
from converters.tf.tests.crates.crates import emitted

_ROOT = Path(unreached.__file__).parents[3]
KERNELS = read_sources(_ROOT / "kernels/src")
RUNTIME = read_sources(_ROOT / "converters/runtime/src")
B = graphs.B


def _conv(
    channels: int, outputs: int, stride: int = 1, groups: int = 1, pixels: int = 12
) -> ir.Graph:
    s = graphs.Sketch("conv")
    x = s.input("x", (B, pixels, pixels, channels))
    weights = s.weight(3, 3, channels // groups, outputs)
    stops = (pixels - 3) // stride + 1
    conv = ir.Conv((stride, stride), (1, 1), ((0, 0), (0, 0)), groups)
    s.op(conv, [x, weights], (B, stops, stops, outputs))
    return s.graph()


def _softmax(width: int, log: bool = False) -> ir.Graph:
    s = graphs.Sketch("softmax")
    s.op(ir.Softmax(log), [s.input("x", (B, width))], (B, width))
    return s.graph()


def _closed(graph: ir.Graph) -> set[str]:
    """Returns the closed ways of a crate with std, and whether tiles are left out."""
    left = without_unreached(KERNELS, graph, True, True)
    assert not any(
        name in text for name in closed_ways(graph, True) for text in map(_ways, left.values())
    )
    return closed_ways(graph, True) | ({TILES} if left[TILES] != KERNELS[TILES] else set())


def _ways(text: str) -> set[str]:
    """Returns the names of the ways that a source has attributes for."""
    return set(NAMED.findall(text))


TILES = "conv/winograd.rs"
EVERY = {
    TILES, "passes", "groups", "scaled", "images", "short rows", "long rows", "logarithms"
}  # fmt: skip


@pytest.mark.parametrize(
    ("graph", "taken"),
    [
        (_softmax(10), {"short rows"}),
        (_softmax(16), {"short rows"}),
        (_softmax(16, log=True), {"short rows", "logarithms"}),
        (_softmax(17), {"long rows"}),
        (_softmax(63), {"long rows"}),
        (_softmax(64), {"long rows", "passes"}),
        (_softmax(4096), {"long rows", "passes"}),
        (_softmax(4097), {"long rows"}),
        (_conv(8, 24), {"images"}),
        (_conv(32, 32), {"images", TILES}),
        (_conv(32, 32, stride=2), {"images"}),
        (_conv(32, 32, groups=4), {"images", "groups"}),
        (graphs.tiled(), {"images", TILES}),
        (graphs.mlp(), {"short rows"}),
    ],
)
def test_a_way_stays_for_a_layer_that_takes_it(graph: ir.Graph, taken: set[str]) -> None:
    assert EVERY - _closed(graph) == taken


@pytest.mark.parametrize(
    ("graph", "steps"),
    [
        (_softmax(10), set()),
        (_conv(1, 16), {1}),
        (_conv(3, 16, stride=2), {6}),
        (_conv(3, 3, groups=3), {3}),
        (_conv(4, 16), set()),
    ],
)
def test_neighbours_have_the_steps_of_the_model(graph: ir.Graph, steps: set[int]) -> None:
    closed = closed_ways(graph, True)
    assert {step for step in (1, 2, 3, 6) if f"step {step}" not in closed} == steps
    assert ("steps" in closed) == (not steps)


def test_a_size_that_a_call_decides_may_take_any_way() -> None:
    s = graphs.Sketch("open")
    steps = unknown("steps")
    x = s.input("x", (B, steps))
    s.op(ir.Softmax(), [x], (B, steps))
    assert not {"passes", "short rows", "long rows"} & _closed(s.graph())


def test_without_std_no_filter_is_transformed() -> None:
    left = without_unreached(KERNELS, graphs.tiled(), False, False)
    assert "pub enum Tiles {}" in left[TILES]
    assert "passes" in closed_ways(_softmax(64), False)


def test_the_ways_are_those_of_the_kernels_and_the_runtime() -> None:
    named = {name for text in (*KERNELS.values(), *RUNTIME.values()) for name in _ways(text)}
    named = {name for name in named if "::" not in name}
    steps = {"steps", *(f"step {step}" for step in unreached._STEPS)}
    assert named == {*unreached._WAYS, *steps, PLAIN, TRANSPOSED, HELPERS, "packing"}


def test_the_bounds_are_those_of_the_kernels() -> None:
    def constant(file: str, name: str) -> int:
        match = re.search(rf"^const {name}: usize = (\d+);", KERNELS[file], re.MULTILINE)
        assert match is not None
        return int(match[1])

    lanes = constant("frame/rows.rs", "LANES")
    widest = constant("frame/rows/passes.rs", "WIDEST")
    assert range(lanes, widest + 1) == unreached._ROWS
    text = KERNELS["ops/norm/softmax/short.rs"]
    assert f"pub(super) const WIDTH: usize = {unreached._SHORT};" in text


@pytest.mark.parametrize(("make", "is_plain"), [(graphs.digits, False), (graphs.products, True)])
def test_products_are_packed_where_no_layer_makes_others(
    make: Callable[[], ir.Graph], is_plain: bool
) -> None:
    files = emitted(make(), Options("model", "graphs.py"))
    text = files["src/runtime/kernels/gemm/mod.rs"].decode()
    assert ("Plain(" in text) == is_plain


@pytest.mark.parametrize(("make", "is_scaled"), [(graphs.digits, False), (graphs.scaled, True)])
def test_products_are_scaled_where_the_plan_joins_layers(
    make: Callable[[], ir.Graph], is_scaled: bool
) -> None:
    files = emitted(make(), Options("model", "graphs.py"))
    text = files["src/runtime/kernels/gemm/block/apart.rs"].decode()
    assert ("struct Scaled" in text) == is_scaled


@pytest.mark.parametrize("profile", list(Profile))
def test_a_crate_has_no_attribute_that_is_decided(profile: Profile) -> None:
    files = emitted(graphs.digits(), Options("digits", "graphs.py", profile=profile))
    for path, content in files.items():
        if path.endswith(".rs"):
            text = content.decode()
            assert not re.search(r"cfg\((?:not\()?(?:true|false|without)", text), path


@pytest.mark.parametrize(
    ("make", "is_transposed"),
    [(graphs.digits, False), (more_graphs.transposed, True), (graphs.products, True)],
)
def test_matrices_are_transposed_where_a_filter_is(
    make: Callable[[], ir.Graph], is_transposed: bool
) -> None:
    files = emitted(make(), Options("model", "graphs.py"))
    text = files["src/runtime/kernels/gemm/pack.rs"].decode()
    assert ("transposed" in code_of(text)) == is_transposed


@pytest.mark.parametrize(
    "make", [graphs.mlp, graphs.digits, more_graphs.transposed, graphs.products]
)
@pytest.mark.parametrize("profile", list(Profile))
def test_only_a_convolution_has_the_axes_of_an_image(
    make: Callable[[], ir.Graph], profile: Profile
) -> None:
    graph = make()
    files = emitted(graph, Options("model", "graphs.py", profile=profile))
    text = files["src/runtime/kernels/gemm/source.rs"].decode()
    images = any(isinstance(n.op, ir.Conv | ir.ConvTranspose) for n in graph.all_nodes())
    assert ("struct Axis" in text) == images


def test_a_variant_stays_if_another_file_makes_it() -> None:
    for path in unreached._ENUMS:
        name = Path(path).stem
        assert len(_ways(KERNELS[f"base/{name}.rs"])) >= 6
    path = "kernels/base/worth.rs"
    files = {path: KERNELS["base/worth.rs"], "other.rs": "let work = Work::Depthwise(8);"}
    left = with_variants(without_unmade_variants(files))
    assert left["other.rs"] == files["other.rs"]
    assert "    Depthwise(usize)," in left[path]
    assert "            Self::Depthwise(flops) =>" in left[path]
    assert "DepthwiseGradient" not in left[path]
    assert "without" not in left[path]


def test_a_crate_has_the_errors_that_its_kernels_make() -> None:
    def variants(graph: ir.Graph) -> set[str]:
        files = emitted(graph, Options("model", "graphs.py"))
        text = files["src/runtime/kernels/base/error.rs"].decode()
        assert ("src/runtime/kernels/base/dtype.rs" in files) == ("DType {" in text)
        return set(re.findall(r"^    (\w+) \{$", text, re.MULTILINE))

    assert variants(graphs.mlp()) == {"Length", "Value", "Overflow"}
    assert variants(graphs.products()) > {"Length", "Value", "Overflow"}


def test_a_crate_without_tiles_has_no_file_of_them() -> None:
    files = emitted(graphs.digits(), Options("digits", "graphs.py"))
    assert not any("winograd/" in path for path in files)


def test_the_files_that_make_other_products_are_those_of_the_runtime() -> None:
    """Of the kernels of other files, none has products, or only those of packed matrices."""
    plain = re.compile(r"Gemm::new|Right::Plain|Matrix::columns|Filter::Plain")
    makers = {path for path, text in KERNELS.items() if plain.search(strip(text))}
    rooms = {"ops::" + path.split("/")[1] for path in makers if path.startswith("ops/")}
    assert rooms == {"ops::conv", "ops::matrix", "ops::sequence"}
    named = {
        path
        for path, text in RUNTIME.items()
        if any(f"kernels::{room}" in text for room in rooms) and "whole_product" not in text
    }
    assert named == unreached._PLAIN
