"""Generated crates in the hands of Cargo, which reads their manifests and finds what they link."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from converters.tf.emit.options import Options, Profile, RuntimeMode
from converters.tf.emit.packages import VENDORED
from converters.tf.tests.crates.crates import emitted, must, program, write
from converters.tf.tests.crates.graphs import digits, mlp
from tools.codegen.cargo import CratePlace

_OK = "test result: ok"


def _cargo(folder: Path, home: Path, *arguments: str) -> str:
    """Runs Cargo in a crate's folder, offline; returns what it printed."""
    env = {**os.environ, "CARGO_HOME": str(home)}
    if "RUSTC" in os.environ:
        env["RUSTC"] = str(Path(os.environ["RUSTC"]).absolute())
    quick = ["--offline", "--quiet", "--config=profile.dev.opt-level=0"]
    return must([program("CARGO", "cargo"), *arguments, *quick], folder, env)


def _linked(name: str, place: CratePlace, profile: Profile = Profile.STD) -> Options:
    return Options(
        name, "graphs.py", profile=profile, runtime=RuntimeMode.CRATE, runtime_place=place
    )


def test_plain_cargo(tmp_path: Path) -> None:
    """Also where a workspace asks for no default features."""
    graph = mlp()
    write(emitted(graph, Options(graph.name, "graphs.py", binary=True)), tmp_path)
    assert _OK in _cargo(tmp_path, tmp_path / "home", "test", "--no-default-features")


@pytest.mark.parametrize("profile", Profile)
def test_cargo_finds_the_runtime_in_the_folder_of_the_crate(
    profile: Profile, tmp_path: Path
) -> None:
    """Nothing is asked for elsewhere; `--workspace` tests the crate, and not its dependencies."""
    graph = mlp()
    write(emitted(graph, _linked(graph.name, VENDORED, profile)), tmp_path)
    printed = _cargo(tmp_path, tmp_path / "home", "test", "--workspace")
    assert printed.count(_OK) == 1
    locked = tomllib.loads((tmp_path / "Cargo.lock").read_text("utf-8"))["package"]
    assert [package["name"] for package in locked] == [graph.name, "tfp-kernels", "tfp-runtime"]
    assert not [package for package in locked if "source" in package]


def test_two_crates_of_one_program_share_the_runtime_of_one_of_them(tmp_path: Path) -> None:
    first, second = mlp(), digits()
    shared = CratePlace("path", f"../{first.name}/{VENDORED.value}")
    for graph, place in ((first, VENDORED), (second, shared)):
        write(emitted(graph, _linked(graph.name, place)), tmp_path / graph.name)
    names = [first.name, second.name]
    needed = "".join(f'{name} = {{ path = "../{name}" }}\n' for name in names)
    manifest = f'[package]\nname = "both"\nedition = "2024"\n[dependencies]\n{needed}'
    main = "".join(f"use {name}::MODEL_VERSION as _;\n" for name in names) + "fn main() {}\n"
    write({"Cargo.toml": manifest.encode(), "src/main.rs": main.encode()}, tmp_path / "both")
    _cargo(tmp_path / "both", tmp_path / "home", "check")
