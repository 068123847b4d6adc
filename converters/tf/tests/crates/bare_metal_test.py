"""Crates without std compile for a microcontroller: no allocator, no 64-bit atomics."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from converters.mlf.tests.bare_metal.provision import TARGET, Tools, provision
from converters.tf import ir
from converters.tf.emit.options import Options, Profile
from converters.tf.tests.crates.crates import emitted, write
from converters.tf.tests.crates.graphs import GRAPHS, mlp
from converters.tf.tests.crates.more_graphs import MORE


@pytest.fixture(scope="module")
def tools() -> Tools:
    """The compiler and the `core` of the target."""
    return provision()


@pytest.mark.parametrize("make", (*GRAPHS, *MORE, mlp), ids=lambda make: make.__name__)
def test_it_compiles(make: object, tools: Tools, tmp_path: Path) -> None:
    assert callable(make)
    graph: ir.Graph = make()
    write(emitted(graph, Options(graph.name, "graphs.py", profile=Profile.NO_STD)), tmp_path)
    text = tmp_path / "src/weights.rs"
    folder = text.read_text("utf-8").replace('env!("CARGO_MANIFEST_DIR")', f'"{tmp_path}"')
    text.write_text(folder, "utf-8")
    command = ["rustc", "--edition=2024", f"--target={TARGET}", "-Copt-level=1", "-Cpanic=abort"]
    command += [f"--crate-name={graph.name}", "--crate-type=lib", "-L", str(tools.core)]
    tools.run([*command, "src/lib.rs"], tmp_path)
    assert (tmp_path / f"lib{graph.name}.rlib").stat().st_size > 0


def test_the_whole_of_the_kernels_compiles(tools: Tools, tmp_path: Path) -> None:
    source = Path(os.environ["KERNELS"]).resolve()
    command = ["rustc", "--edition=2024", f"--target={TARGET}", "-Copt-level=1", "-Cpanic=abort"]
    command += ["--crate-name=tfp_kernels", "--crate-type=lib", "-L", str(tools.core)]
    tools.run([*command, str(source), f"--out-dir={tmp_path}"], tmp_path)
    assert (tmp_path / "libtfp_kernels.rlib").stat().st_size > 0
