"""Which ways of the kernels are closed for which models."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from converters.tf import ir
from converters.tf.emit import unreached
from converters.tf.emit.options import Options
from converters.tf.emit.unreached import CONSTANTS, constants, without_unreached
from converters.tf.emit.vendor import read_sources, strip
from converters.tf.ir.expressions import unknown
from converters.tf.tests.crates import graphs
from converters.tf.tests.crates.crates import emitted

KERNELS = read_sources(Path(unreached.__file__).parents[3] / "kernels/src")
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


def _values(text: str) -> dict[str, str]:
    """Returns the values of a file of constants by name."""
    return dict(re.findall(r"const (\w+): [^=]+ = ([^;]*);", text))


def _closed(graph: ir.Graph) -> set[str]:
    """Returns the constants that are false for a crate with std, and whether tiles are left out."""
    left = without_unreached(KERNELS, graph, True)
    assert {path for path in left if left[path] != KERNELS[path]} <= {CONSTANTS, TILES}
    closed = {name for name, value in _values(left[CONSTANTS]).items() if value == "false"}
    return closed | ({TILES} if left[TILES] != KERNELS[TILES] else set())


TILES = "conv/winograd.rs"
EVERY = {TILES, "PASSES", "GROUPS", "SCALED"}


@pytest.mark.parametrize(
    ("graph", "taken"),
    [
        (_softmax(10), set()),
        (_softmax(63), set()),
        (_softmax(64), {"PASSES"}),
        (_softmax(4096), {"PASSES"}),
        (_softmax(4097), set()),
        (_conv(8, 24), set()),
        (_conv(32, 32), {TILES}),
        (_conv(32, 32, stride=2), set()),
        (_conv(32, 32, groups=4), {"GROUPS"}),
        (graphs.tiled(), {TILES}),
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
    left = without_unreached(KERNELS, graph, True)[CONSTANTS]
    values = _values(left)["STEPS"].strip("&[]").split(", ")
    assert {step for step, value in enumerate(values) if value == "true"} == steps
    assert len(values) == 7


def test_a_size_that_a_call_decides_may_take_any_way() -> None:
    s = graphs.Sketch("open")
    steps = unknown("steps")
    x = s.input("x", (B, steps))
    s.op(ir.Softmax(), [x], (B, steps))
    assert "PASSES" not in _closed(s.graph())


def test_without_std_no_filter_is_transformed() -> None:
    left = without_unreached(KERNELS, graphs.tiled(), False)
    assert "pub enum Tiles {}" in left[TILES]
    assert {path for path in left if left[path] != KERNELS[path]} == {TILES}


def test_every_constant_is_one_of_the_kernels_and_open_there() -> None:
    values = _values(KERNELS[CONSTANTS])
    assert set(constants(graphs.mlp())) | {"PLAIN"} == set(values)
    assert "false" not in values.values()


def test_the_bounds_are_those_of_the_kernels() -> None:
    def constant(file: str, name: str) -> int:
        match = re.search(rf"^const {name}: usize = (\d+);", KERNELS[file], re.MULTILINE)
        assert match is not None
        return int(match[1])

    lanes = constant("frame/rows.rs", "LANES")
    widest = constant("frame/rows/passes.rs", "WIDEST")
    assert range(lanes, widest + 1) == unreached._ROWS


@pytest.mark.parametrize(
    ("make", "is_plain"), [(graphs.digits, "false"), (graphs.products, "true")]
)
def test_products_are_packed_where_no_layer_makes_others(
    make: Callable[[], ir.Graph], is_plain: str
) -> None:
    files = emitted(make(), Options("model", "graphs.py"))
    text = files[f"src/runtime/kernels/{CONSTANTS}"].decode()
    assert _values(text)["PLAIN"] == is_plain


def test_a_crate_without_tiles_has_no_file_of_them() -> None:
    files = emitted(graphs.digits(), Options("digits", "graphs.py"))
    assert not any("winograd/" in path for path in files)


def test_the_files_that_make_other_products_are_those_of_the_runtime() -> None:
    """Of the kernels of other files, none has products, or only those of packed matrices."""
    runtime = read_sources(Path(unreached.__file__).parents[3] / "converters/runtime/src")
    plain = re.compile(r"Gemm::new|Right::Plain|Matrix::columns|Filter::Plain")
    makers = {path for path, text in KERNELS.items() if plain.search(strip(text))}
    rooms = {"ops::" + path.split("/")[1] for path in makers if path.startswith("ops/")}
    assert rooms == {"ops::conv", "ops::matrix", "ops::sequence"}
    named = {
        path
        for path, text in runtime.items()
        if any(f"kernels::{room}" in text for room in rooms) and "whole_product" not in text
    }
    assert named == unreached._PLAIN
