"""Which ways of the kernels are closed for which models."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from converters.tf import ir
from converters.tf.emit import unreached
from converters.tf.emit.options import Options, Profile
from converters.tf.emit.unreached import HELPERS, PLAIN, closed_ways, without_unreached
from converters.tf.emit.vendor import read_sources, strip
from converters.tf.emit.ways import NAMED
from converters.tf.ir.expressions import unknown
from converters.tf.tests.crates import graphs
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


def _softmax(width: int) -> ir.Graph:
    s = graphs.Sketch("softmax")
    s.op(ir.Softmax(), [s.input("x", (B, width))], (B, width))
    return s.graph()


def _closed(graph: ir.Graph) -> set[str]:
    """Returns the closed ways of a crate with std, and whether tiles are left out."""
    left = without_unreached(KERNELS, graph, True)
    assert not any(
        name in text for name in closed_ways(graph, True) for text in map(_ways, left.values())
    )
    return closed_ways(graph, True) | ({TILES} if left[TILES] != KERNELS[TILES] else set())


def _ways(text: str) -> set[str]:
    """Returns the names of the ways that a source has attributes for."""
    return set(NAMED.findall(text))


TILES = "conv/winograd.rs"
EVERY = {TILES, "passes", "groups", "scaled", "images", "short rows", "long rows"}


@pytest.mark.parametrize(
    ("graph", "taken"),
    [
        (_softmax(10), {"short rows"}),
        (_softmax(16), {"short rows"}),
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
    left = without_unreached(KERNELS, graphs.tiled(), False)
    assert "pub enum Tiles {}" in left[TILES]
    assert "passes" in closed_ways(_softmax(64), False)


def test_the_ways_are_those_of_the_kernels_and_the_runtime() -> None:
    named = {name for text in (*KERNELS.values(), *RUNTIME.values()) for name in _ways(text)}
    steps = {"steps", *(f"step {step}" for step in unreached._STEPS)}
    assert named == {*unreached._WAYS, *steps, PLAIN, HELPERS}


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
