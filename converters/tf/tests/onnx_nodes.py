"""Runs ONNX's own test suite through tf2rust: every case by the interpreter, many as crates.

Exit status: 0 if every case does what `onnx_nodes.tsv` expects and all crates agree, 1 if not.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from absl import app, flags
from rich.console import Console
from rich.progress import Progress

from converters.tf.tests import onnx_outcomes
from converters.tf.tests.onnx_cases import FOLDERS, Case, cases
from converters.tf.tests.onnx_crates import failures
from converters.tf.tests.onnx_outcomes import Kind, Outcome, outcome
from converters.tf.tests.onnx_page import (
    Row,
    expected,
    page,
    unexpected,
    write_expected,
)

_ONLY = flags.DEFINE_string("only", "", "Regular expression of the cases to run.")
_FOLDERS = flags.DEFINE_list("folders", list(FOLDERS), "Folders of the suite.")
_CRATES = flags.DEFINE_integer("crates", 320, "How many cases to compile as crates, evenly.")
_WRITE = flags.DEFINE_string("write", None, "The page to write.")
_EXPECT = flags.DEFINE_string("expect", None, "The file of expectations to write.")
_JSON = flags.DEFINE_bool("json", False, "Print JSON on standard output.")

EXPECTED: Final = Path(__file__).with_name("onnx_nodes.tsv")
"""What is expected of the cases that do not pass with every input as an input."""
# The largest graphs of crates: compiling larger ones takes the time of many small ones.
_MOST_NODES: Final = 60


def _run(found: list[Case]) -> list[tuple[Case, Outcome]]:
    results = []
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("cases", total=len(found))
        for case in found:
            results.append((case, outcome(case)))
            progress.advance(task)
    return results


def _compiled(results: Sequence[tuple[Case, Outcome]], count: int) -> tuple[int, list[str]]:
    """Compiles cases as crates; returns how many, and a line for each that fails."""
    passed = [
        (case, out.graph, out.given)
        for case, out in results
        if out.kind in (Kind.PASS, Kind.CONSTANTS)
        and out.graph is not None
        and len(out.graph.nodes) <= _MOST_NODES
    ]
    step = max(1, len(passed) // count) if count else 0
    chosen = passed[::step][: count or 0] if step else []
    print(f"onnx_nodes: compiling {len(chosen)} crates", file=sys.stderr)
    found = failures([(graph, given) for _, graph, given in chosen])
    return len(chosen), [f"{chosen[i][0].name}: the crate {why}" for i, why in found.items()]


def main(argv: list[str]) -> int:
    """Runs the cases and compares them with what is expected."""
    if len(argv) > 1:
        print(f"onnx_nodes: unexpected argument {argv[1]}", file=sys.stderr)
        return 2
    here = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    unknown = sorted(set(_FOLDERS.value) - set(FOLDERS))
    if unknown:
        known = ", ".join(FOLDERS)
        print(f"onnx_nodes: no folder {', '.join(unknown)}; there are {known}", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")
    wanted = re.compile(_ONLY.value)
    results = _run([c for f in _FOLDERS.value for c in cases(f) if wanted.search(c.name)])
    rows = [Row.of(case, out) for case, out in results]
    failed = unexpected(rows, expected(EXPECTED))
    crates, broken = _compiled(results, _CRATES.value)
    if _EXPECT.value:
        write_expected(here / _EXPECT.value, rows)
        print(f"onnx_nodes: wrote {_EXPECT.value}", file=sys.stderr)
        failed = []
    if _WRITE.value:
        text = page(rows, crates, onnx_outcomes.RELATIVE, onnx_outcomes.NARROW)
        (here / _WRITE.value).write_text(text)
        print(f"onnx_nodes: wrote {_WRITE.value}", file=sys.stderr)
    kinds = {str(kind): sum(r.kind is kind for r in rows) for kind in Kind}
    if _JSON.value:
        print(json.dumps({"kinds": kinds, "crates": crates, "failed": [*failed, *broken]}))
    else:
        print(", ".join(f"{count} {kind}" for kind, count in kinds.items()))
    for line in (*failed, *broken):
        print(f"onnx_nodes: {line}", file=sys.stderr)
    return 1 if failed or broken else 0


if __name__ == "__main__":
    app.run(main)
