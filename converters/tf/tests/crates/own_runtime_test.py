"""Crates with their own runtime compute what the interpreter does: they have a part of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from converters.tf import ir
from converters.tf.emit.crate import emit_crate
from converters.tf.emit.options import Options, Profile
from converters.tf.tests.crates.crates import compile_and_test, emitted, recorded, rustfmt, write
from converters.tf.tests.crates.graphs import (
    Sketch,
    blocks,
    chained,
    digits,
    lines,
    mlp,
    paired,
    scaled,
    sequences,
    tiled,
)
from converters.tf.tests.crates.more_graphs import transposed
from converters.tf.tests.crates.text_graphs import texts

_OK = "test result: ok"


def _run(graph: ir.Graph, options: Options, folder: Path, flags: Sequence[str]) -> str:
    write(emitted(graph, options), folder)
    return compile_and_test(folder, graph.name, flags)


@pytest.mark.parametrize("make", [blocks, mlp, texts], ids=lambda make: make.__name__)
def test_without_std(make: Callable[[], ir.Graph], tmp_path: Path) -> None:
    graph = make()
    options = Options(graph.name, "graphs.py", profile=Profile.NO_STD)
    flags = ["-Adead_code", "-Cdebug-assertions=off"]
    assert _OK in _run(graph, options, tmp_path, flags)


@pytest.mark.parametrize("make", [digits, chained, paired, scaled, lines, transposed])
def test_few_ways(make: Callable[[], ir.Graph], tmp_path: Path) -> None:
    graph = make()
    flags = ["-Cdebug-assertions=off"]
    assert _OK in _run(graph, Options(graph.name, "graphs.py"), tmp_path, flags)


@pytest.mark.parametrize("make", [digits, lines, mlp, paired, scaled, sequences, tiled, transposed])
def test_without_packing(make: Callable[[], ir.Graph], tmp_path: Path) -> None:
    graph = make()
    options = Options(graph.name, "graphs.py", pack=False)
    assert _OK in _run(graph, options, tmp_path, ["-Cdebug-assertions=off"])
    for name in ("conv", "dense", "recurrent"):
        path = tmp_path / f"src/runtime/{name}.rs"
        assert "AlignedBytes" not in (path.read_text("utf-8") if path.exists() else "")


@pytest.mark.parametrize("examples", [2, 3, 4, 5, 43])
def test_scratch_memory_for_matrices_that_are_not_packed(examples: int, tmp_path: Path) -> None:
    graph = _rows()
    options = Options("rows", "graphs.py", pack=False)
    write(emit_crate(graph, options, recorded(graph, examples), rustfmt()), tmp_path)
    assert _OK in compile_and_test(tmp_path, "rows", ["-Cdebug-assertions=off"])


def _rows() -> ir.Graph:
    """Returns products with matrices of many sizes."""
    s = Sketch("rows")
    for k, n in [(1, 40), (16, 17), (511, 9), (512, 33), (513, 10), (1025, 7), (1300, 24)]:
        x = s.input(f"x{k}", (ir.Batch(), k))
        s.op(ir.Dense(ir.RELU), [x, s.weight(k, n), s.weight(n)], (ir.Batch(), n))
    return s.graph()


def test_rows_of_matrices_of_many_sizes(tmp_path: Path) -> None:
    """A crate without convolutions walks over rows by files of its own."""
    graph = _rows()
    # Strips of all heights, at every level.
    features = recorded(graph, 43)
    write(emit_crate(graph, Options("rows", "graphs.py"), features, rustfmt()), tmp_path)
    assert "Axis" not in (tmp_path / "src/runtime/kernels/gemm/source.rs").read_text("utf-8")
    assert _OK in compile_and_test(tmp_path, "rows", ["-Cdebug-assertions=off"])
