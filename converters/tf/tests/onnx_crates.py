"""Crates of many small models, compiled together: one test program has a module for each."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from converters.tf import ir
from converters.tf.emit.crate import Features, emit_crate
from converters.tf.emit.options import Options, RuntimeMode, WeightsMode
from converters.tf.emit.single_file import crate_root, test_root
from converters.tf.ir import Array
from converters.tf.ir.interpret import interpret
from converters.tf.tests.crates.crates import program, runtime_flags, rustfmt

_GROUP: Final = 40
"""Models of one program: more take memory, fewer are linked more often."""
_SECONDS: Final = 1800
_ALLOCATOR: Final = re.compile(r"#\[global_allocator\]\s*static \w+: \w+ = \w+;")
_RESULT: Final = re.compile(r"^test m(\d+)::golden::\S+ \.\.\. (\w+)", re.MULTILINE)

Model = tuple[ir.Graph, Mapping[str, Array]]


def failures(models: Sequence[Model]) -> dict[int, str]:
    """Compiles models as crates and runs their own tests.

    Args:
        models: Graphs, each with its inputs.

    Returns:
        Why a crate failed, by the place of the model.
    """
    found: dict[int, str] = {}
    for first in range(0, len(models), _GROUP):
        found |= _group(models[first : first + _GROUP], first)
    return found


def _group(models: Sequence[Model], first: int) -> dict[int, str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = [
            _module(graph, given, f"m{first + i}", folder)
            for i, (graph, given) in enumerate(models)
        ]
        source, test = folder / "all.rs", folder / "all_test.exe"
        source.write_text("\n".join(["#![allow(warnings)]", *parts]))
        flags = ["--edition=2024", "-Cdebuginfo=0", "--test", *runtime_flags()]
        command = [program("RUSTC", "rustc"), *flags, str(source), "-o", str(test)]
        done = _run(command)
        if done.returncode:
            message = done.stderr[:2000]
            return {first + i: f"does not compile: {message}" for i in range(len(models))}
        done = _run([str(test), "--test-threads=1"])
    results = dict(_RESULT.findall(done.stdout))
    return {
        number: f"its own test fails: {_said(done.stdout, number)}"
        for number in range(first, first + len(models))
        if results.get(str(number)) != "ok"
    }


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS, env=os.environ, check=False
    )


def _said(output: str, number: int) -> str:
    """Returns the message of a test's panic."""
    _, _, after = output.partition(f"---- m{number}::")
    return " ".join(after.split("----")[1].split()[:60]) if "----" in after else "it did not run"


def _module(graph: ir.Graph, given: Mapping[str, Array], name: str, folder: Path) -> str:
    """Returns a model's crate and its test as a module, and writes what they read."""
    options = Options(
        name, "case.onnx", weights=WeightsMode.BYTES, runtime=RuntimeMode.CRATE, tolerance=2e-5
    )
    files = emit_crate(graph, options, Features(given, interpret(graph, given)), rustfmt())
    own = folder / name
    for path, content in files.items():
        if path.endswith((".npz", ".bin")):
            (own / path).parent.mkdir(parents=True, exist_ok=True)
            (own / path).write_bytes(content)
    root = crate_root(files).replace("#![deny(missing_docs)]", "")
    root = re.sub(r"\bcrate::", f"crate::{name}::", root)
    test = _ALLOCATOR.sub("", test_root(files, "tests/golden.rs"))
    test = re.sub(rf"\buse {name}::", f"use crate::{name}::", test)
    test = test.replace('env!("CARGO_MANIFEST_DIR")', f'"{own}"')
    return f"mod {name} {{\n{root}\nmod golden {{\n{test}\n}}\n}}\n"
