"""Pages of models that are converted and compared with Keras, without a compiler.

Each model has a process of its own, which gives its memory back, and ends alone if it fails, takes
too long or too much.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np
from absl import flags
from rich.console import Console
from rich.progress import Progress

from converters.tf import ir
from converters.tf.tests.pages import known_rows
from tools.codegen.program import USAGE

_ONLY = flags.DEFINE_list("only", [], "Models to try; all if not given.")
_WRITE = flags.DEFINE_string("write", None, "The page to write.")
_JSON = flags.DEFINE_bool("json", False, "Print JSON on standard output.")
_TRY = flags.DEFINE_string("try", None, "Try this one model; the program calls itself.")
_SECONDS = flags.DEFINE_float("seconds", 1200.0, "Most seconds that a model may take.")
_MEGABYTES = flags.DEFINE_float("megabytes", 12_000.0, "Most memory that a model may take.")

TOLERANCE: Final = 1e-5
"""Largest difference of an element of an output, relative to its largest one."""
_POLL_SECONDS: Final = 0.1
_REASON_CHARACTERS: Final = 160

Inputs = Callable[[ir.Graph, int], dict[str, ir.Array]]


@dataclasses.dataclass(frozen=True)
class Found:
    """What became of one model.

    Attributes:
        model: Its name.
        size: What it was given: the side of the image, the shape of its inputs.
        parameters: Their number.
        ops: Nodes of the graph.
        macs: Multiplications with addition for one example.
        seconds: The processor's time of tracing and converting.
        difference: Largest difference from Keras, over the largest element of the output.
        own: The same of Keras from Keras in float64; not a number where nobody asked.
        refused: Why tf2rust refuses it, or empty.
        error: What failed, or empty.
    """

    model: str
    size: str = ""
    parameters: int = 0
    ops: int = 0
    macs: int = 0
    seconds: float = 0.0
    difference: float = float("nan")
    own: float = float("nan")
    refused: str = ""
    error: str = ""

    @property
    def good(self) -> bool:
        """Returns whether it converts and agrees."""
        return not self.error and not self.refused and self.difference <= TOLERANCE

    @property
    def apart(self) -> str:
        """Returns the difference as a page has it: in bold if it is more than is allowed."""
        if self.good:
            return f"{self.difference:.1e}"
        own = "" if np.isnan(self.own) else f", Keras' own {self.own:.1e}"
        return f"**{self.difference:.1e}**{own}"


@dataclasses.dataclass(frozen=True)
class Listing:
    """A page of models.

    Attributes:
        program: The file of the program, which tries one model if it gets `--try`.
        names: The models, in the order of the page.
        attempt: Makes, converts and compares one of them.
        cells: The cells between name and date of a model that was converted; the last one is
            `Found.apart`.
        page: Returns the page, of rows by model.
        refused: Those that tf2rust refuses with good reason.
    """

    program: Path
    names: tuple[str, ...]
    attempt: Callable[[str], Found]
    cells: Callable[[Found], Sequence[str]]
    page: Callable[[Mapping[str, str]], str]
    refused: frozenset[str] = frozenset()

    def row(self, found: Found) -> str:
        """Returns the line of the page."""
        cells = list(self.cells(found))
        if found.refused or found.error:
            what = f"refused: {found.refused}" if found.refused else found.error
            cells = [what.replace("|", "/"), *("" for _ in cells[1:])]
        date = datetime.datetime.now(datetime.UTC).date()
        return " ".join(f"| {cell}" if cell else "|" for cell in (found.model, *cells, f"{date} |"))

    def met(self, found: Found) -> bool:
        """Returns whether a model agrees, or is refused and ought to be."""
        return found.good or (bool(found.refused) and found.model in self.refused)


def agreeing(rows: Mapping[str, str]) -> int:
    """Returns of how many models of a page the difference is one that is allowed."""
    cells = [row.split("|")[-3].strip() for row in rows.values()]
    return sum(bool(cell) and not cell.startswith("**") for cell in cells)


def compared(
    found: Found,
    model: Any,
    inputs: Inputs,
    batches: Sequence[int],
    shapes: Any = None,
    wide: Callable[[Any], Any] | None = None,
) -> Found:
    """Traces and converts a model, computes its graph in NumPy and compares that with Keras.

    Args:
        found: Its name and size.
        model: The Keras model; its weights are those to compare with.
        inputs: Makes arrays for a graph and a number of examples.
        batches: Numbers of examples.
        shapes: Dimensions that the model leaves open: a `FixedShapes`.
        wide: Returns the model in float64, which is asked where the difference is too large.
    """
    from converters.tf.ir.interpret import interpret
    from converters.tf.load.model import trace_model
    from converters.tf.plan.arena import plan_memory
    from converters.tf.tf2rust import graph_of
    from tools.codegen.conversion import ConversionError

    start = time.process_time()
    try:
        loaded = trace_model(model, shapes)
        graph = graph_of(loaded)
    except ConversionError as err:
        reason = " ".join(err.problems[0].what.split())
        return dataclasses.replace(found, refused=_short(reason))
    seconds = time.process_time() - start
    given = [inputs(graph, batch) for batch in batches]
    expected = [loaded.predict(arrays) for arrays in given]
    apart = _largest([interpret(graph, arrays) for arrays in given], expected)
    own = float("nan")
    if apart > TOLERANCE and wide is not None:
        exact = trace_model(wide(model), shapes)
        widened = [{n: a.astype(_widened(a.dtype)) for n, a in e.items()} for e in expected]
        own = _largest(widened, [exact.predict(arrays) for arrays in given])
    return dataclasses.replace(
        found,
        parameters=int(model.count_params()),
        ops=len(graph.nodes),
        macs=plan_memory(graph).macs,
        seconds=seconds,
        difference=apart,
        own=own,
    )


def _widened(dtype: Any) -> Any:
    return np.float64 if dtype == np.float32 else dtype


def _largest(found: list[dict[str, ir.Array]], expected: list[dict[str, ir.Array]]) -> float:
    """Returns the largest difference of an output of several calls."""
    from converters.tf.tests.checks import difference

    pairs = list(zip(found, expected, strict=True))
    assert all(list(a) == list(b) for a, b in pairs), [(list(a), list(b)) for a, b in pairs]
    return max(difference(a[name], array) for a, b in pairs for name, array in b.items())


def _short(text: str) -> str:
    return text if len(text) <= _REASON_CHARACTERS else f"{text[:_REASON_CHARACTERS]} ..."


def _resident_megabytes(process: int) -> float:
    """Returns the memory that a process has; 0 if it has ended or the system does not say."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _watched(command: Sequence[str], out: TextIO, err: TextIO) -> tuple[int, str]:
    """Runs a program within the limits; returns its status and which limit ended it, if one did."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen(command, env=env, stdout=out, stderr=err)
    end, limit = time.monotonic() + _SECONDS.value, ""
    try:
        while process.poll() is None and not limit:
            if time.monotonic() > end:
                limit = f"takes more than {_SECONDS.value:g} s"
            elif _resident_megabytes(process.pid) > _MEGABYTES.value:
                limit = f"takes more than {_MEGABYTES.value:g} MB"
            time.sleep(_POLL_SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
        status = process.wait()
    return status, limit


def _apart(program: Path, name: str) -> Found:
    """Tries a model in a process of its own."""
    # -P: modules beside the program must not hide those of packages.
    command = [sys.executable, "-P", str(program.absolute()), f"--try={name}"]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        status, limit = _watched(command, out, err)
        if limit:
            return Found(name, error=limit)
        out.seek(0)
        err.seek(0)
        if status != 0:
            return Found(name, error=" ".join(err.read().split())[-300:] or f"status {status}")
        return Found(**json.loads(out.read().splitlines()[-1]))


def run(listing: Listing, argv: Sequence[str]) -> int:
    """Tries the models that the flags name; returns the exit status.

    That is 0 if every one agrees with Keras, or is refused and ought to be; 1 if not; 2 if the
    command line makes no sense. The page is written after each model.
    """
    asked = [*_ONLY.value, *([_TRY.value] if _TRY.value else [])]
    wrong = [*argv[1:], *(name for name in asked if name not in listing.names)]
    if wrong:
        known = ", ".join(listing.names)
        print(f"unexpected: {', '.join(wrong)}; the models are {known}", file=sys.stderr)
        return USAGE
    if _TRY.value:
        print(json.dumps(dataclasses.asdict(listing.attempt(_TRY.value))))
        return 0
    page = Path(_WRITE.value) if _WRITE.value else None
    rows = known_rows(page) if page is not None and _ONLY.value else {}
    results = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        names = _ONLY.value or listing.names
        task = progress.add_task("", total=len(names))
        for name in names:
            progress.update(task, description=name)
            results.append(_apart(listing.program, name))
            rows[name] = listing.row(results[-1])
            progress.console.print(rows[name], markup=False, highlight=False, soft_wrap=True)
            if page is not None:
                kept = {n: rows[n] for n in listing.names if n in rows}
                page.write_text(listing.page(kept), encoding="utf-8")
            progress.advance(task)
    if _JSON.value:
        print(json.dumps([dataclasses.asdict(result) for result in results], indent=2))
    return 0 if all(listing.met(result) for result in results) else 1
