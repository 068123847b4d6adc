"""tf2rust as the program under test: a typed error, or a crate that computes what the file says."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from converters.tf import ir
from converters.tf.emit.options import Options, RuntimeMode
from converters.tf.ir.interpret import interpret
from converters.tf.tests.checks import inputs_for
from converters.tf.tf2rust import Request, Result, run
from tests.fuzz.case import Outcome, Status, Target
from tests.fuzz.targets.texts import refused
from tools.codegen.conversion import ConversionError

_FOLDERS = ("rust_generated_code", "saved_model_from_tensorflow")
# Largest difference, relative to the largest expected element and 1.
_TOLERANCE = 1e-3
# Elements of the axis whose index says whether a size is the stated one; see load/onnx/agreed.py.
_CONFIRMS = 1
# What onnxruntime adds to scores that are masked, where ONNX adds -infinity.
_LOWEST = float(np.finfo(np.float32).min)


class Converter(Target):
    """Converts a file, and compares the graph with another program that computes it."""

    contained = True

    def check(self, path: Path) -> Outcome:
        """Converts a file."""
        try:
            result = run(Request(path, Options("net", path.name, runtime=RuntimeMode.CRATE)))
        except ConversionError as err:
            return refused(err, "tf2rust")
        problem = wrong_files(result.files)
        if problem:
            return Outcome(Status.FAULT, problem, "files")
        graph = result.plan.graph
        arrays = inputs_for(graph, 2, 2)
        self.reference(True)
        expected = self.expected(path, arrays)
        self.reference(False)
        if expected is None:
            return Outcome(Status.TAKEN)
        try:
            problem = different(interpret(graph, arrays), expected)
        except ir.OutsideError as err:
            if err.size != _CONFIRMS:
                raise
            # The file states a size, and these inputs ask for another one.
            return Outcome(Status.TAKEN)
        if problem:
            return Outcome(Status.FAULT, f"{_operations(result)}: {problem}", _operations(result))
        return Outcome(Status.TAKEN)

    def expected(self, path: Path, arrays: dict[str, Any]) -> list[Any] | None:
        """Returns what another program computes of a file; nothing if it can't."""
        del path, arrays
        return None


def _operations(result: Result) -> str:
    return "wrong: " + " ".join(sorted({type(n.op).__name__ for n in result.plan.graph.nodes}))


def wrong_files(files: dict[str, bytes]) -> str:
    """Returns what is wrong with paths and texts of a crate, or nothing."""
    for name in map(PurePosixPath, files):
        if ".." in name.parts or name.is_absolute() or name.parts[0] not in _FOLDERS:
            return f"the file {str(name)!r} is outside of the crate"
        if len(name.name) >= 64:
            return f"the file {str(name)!r} has a long name"
    for path, content in files.items():
        if not path.endswith(".rs") or "/model/" not in f"/{path}":
            continue
        text = content.decode()
        odd = next((c for c in text if not c.isprintable() and c not in "\n\t"), "")
        if odd:
            return f"{path} holds {odd!r}"
    return ""


def different(found: dict[str, Any], expected: list[Any]) -> str:
    """Returns how results differ, or nothing."""
    if len(found) != len(expected):
        return f"{len(found)} outputs in place of {len(expected)}"
    for (name, mine), other in zip(found.items(), expected, strict=True):
        a, b = np.asarray(mine), np.asarray(other)
        if a.shape != b.shape:
            return f"{name} has the shape {a.shape}, expected {b.shape}"
        if a.dtype.kind != b.dtype.kind and "O" not in (a.dtype.kind, b.dtype.kind):
            return f"{name} is {a.dtype}, expected {b.dtype}"
        wide, want = a.astype(np.float64), b.astype(np.float64)
        want = np.where(np.isneginf(wide) & (want == _LOWEST), -np.inf, want)
        finite = np.isfinite(want)
        if not np.array_equal(wide[~finite], want[~finite], equal_nan=True):
            return f"{name} differs where NaN or infinity is expected"
        scale = max(1.0, float(np.abs(want[finite]).max(initial=0)))
        gap = float(np.abs(wide[finite] - want[finite]).max(initial=0)) / scale
        if not gap <= _TOLERANCE:
            return f"{name} differs by {gap:.3g}"
    return ""
