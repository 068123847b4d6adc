"""Compares crates with open sizes with those of the same models whose sizes are fixed.

Both have the same weights and get the same input, of the fixed model's size. They take turns in one
process, and each result is compared with Keras'. It writes a page with the medians of the time of a
call, and the quartiles of the ratio of neighbouring rounds.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from absl import app, flags

from tests.bench.machine import processor
from tests.bench.models import files

FLAGS = flags.FLAGS
flags.DEFINE_integer("rounds", 15, "Rounds of calls per row.", lower_bound=3)
flags.DEFINE_float("round_seconds", 0.2, "Time of a round of one crate, about.")
flags.DEFINE_string("output", "docs/performance/open-sizes.md", "The page to write.")
flags.DEFINE_bool("json", False, "Print all rows as JSON.")
flags.DEFINE_list("threads", ["1", "2"], "Numbers of threads.")
flags.DEFINE_list("batches", ["1", "8"], "Examples of a call.")

_TOLERANCE = 1e-3
MODELS = ("LSTM128, T=100", "Transformer 4x256, T=128", "MobileNetV2")
"""Models of the zoo that have a form with open sizes."""


@dataclass(frozen=True)
class Row:
    """The times of a model.

    Attributes:
        model: Its name.
        batch: Examples of a call.
        threads: Threads of both crates.
        fixed: Seconds of a call, one number per round.
        open: The same of the crate with open sizes.
    """

    model: str
    batch: int
    threads: int
    fixed: Sequence[float]
    open: Sequence[float]

    def cells(self) -> str:
        """The row of the table."""
        each = [after / before for before, after in zip(self.fixed, self.open, strict=True)]
        low, middle, high = statistics.quantiles(each, n=4)
        times = [f"{statistics.median(all_) * 1e3:.3g}" for all_ in (self.fixed, self.open)]
        ratio = f"{middle:.3f} | {low:.3f} to {high:.3f}"
        return f"| {self.model} | {self.batch} | {self.threads} | {' | '.join(times)} | {ratio} |"


def page(rows: Sequence[Row], command: str) -> str:
    """The page: how it was measured, and a row per model, batch and number of threads."""
    lines = [
        "# Open sizes against fixed ones",
        "",
        f"Measured {time.strftime('%Y-%m-%d')} on {processor()}, by",
        f"`{command}`.",
        "",
        "What it costs that a size is [open](../tf2rust/inputs.md#open-dimensions): the same model",
        "with the same weights, as a crate whose sequence or image may have any size, and as one",
        "with the size of the row. Both get the same input. They take turns,",
        f"{FLAGS.rounds} rounds of about {FLAGS.round_seconds:g} s each.",
        "",
        "Times are medians of a call in milliseconds. A ratio is that of neighbouring rounds, open",
        "over fixed: its median, and its quartiles. Above 1, the open crate is slower.",
        "",
        "| model | batch | threads | fixed, ms | open, ms | open / fixed | quartiles |",
        "|---|---:|---:|---:|---:|---:|---|",
        *(row.cells() for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _open_form(model: Any) -> Any:
    """Returns the model with the same weights and an open length, or an open image."""
    given = model.inputs[0]
    open_axes = (None, None) if len(given.shape) == 4 else (None,)
    shape = (None, *open_axes, *given.shape[1 + len(open_axes) :])
    config = model.get_config()
    config.pop("build_input_shape", None)
    for layer in config["layers"]:
        if layer["class_name"] == "InputLayer":
            layer["config"]["batch_shape"] = list(shape)
    new = type(model).from_config(config)
    new.set_weights(model.get_weights())
    return new


def prepared(name: str, folder: Path, batches: Sequence[int]) -> None:
    """Compiles both crates of a model, each in a folder of its own with inputs and results."""
    from converters.tf.ir.fixed import open_dims
    from converters.tf.load.model import trace_model
    from converters.tf.load.shapes import FixedShapes
    from converters.tf.tf2rust import graph_of
    from tests.bench.models.ours import compile_crate
    from tests.bench.models.zoo import ZOO, make, sample

    model = make(next(entry for entry in ZOO if entry.name == name))
    open_model = _open_form(model)
    x = sample(model)
    y = np.asarray(model(x, training=False))
    for kind, form in (("fixed", model), ("open", open_model)):
        shape = tuple(form.inputs[0].shape[1:])
        shapes = FixedShapes({"": shape}) if kind == "open" else None
        graph = graph_of(trace_model(form, shapes))
        names = open_dims(graph)
        assert bool(names) == (kind == "open"), (name, kind, names)
        fixed = [size for size, of in zip(x.shape[1:], shape, strict=True) if of is None]
        sizes = dict(zip(names, fixed, strict=True)) if names else None
        place = folder / kind
        place.mkdir(parents=True)
        compile_crate(graph, x, y, place, sizes)
        for batch in batches:
            part = place / files.batch_folder(batch)
            part.mkdir()
            given = sample(model, batch)
            np.save(part / files.INPUT, given)
            np.save(part / files.EXPECTED, np.asarray(model(given, training=False)))


def measured(name: str, folder: Path, batch: int, threads: int) -> Row:
    """Measures both crates of a model, in turns.

    Raises:
        AssertionError: A crate computes something else than Keras.
    """
    from tests.bench.models import ours

    runs: list[Callable[[int], float]] = []
    for kind in ("fixed", "open"):
        part = folder / kind / files.batch_folder(batch)
        run, result = ours.load(part, threads)
        run(1)
        expected = np.load(part / files.EXPECTED)
        np.testing.assert_allclose(result(), expected, rtol=0, atol=_TOLERANCE, err_msg=kind)
        runs.append(run)
    calls = max(1, int(FLAGS.round_seconds / runs[0](3)))
    times: list[list[float]] = [[], []]
    for number in range(FLAGS.rounds):
        for place in (0, 1) if number % 2 else (1, 0):
            times[place].append(runs[place](calls))
    return Row(name, batch, threads, *times)


def main(argv: Sequence[str]) -> None:
    """Measures all models and writes the page."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    batches = [int(batch) for batch in FLAGS.batches]
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in MODELS:
            folder = Path(temporary, name.split(",")[0].replace(" ", "_"))
            prepared(name, folder, batches)
            for batch, threads in itertools.product(batches, map(int, FLAGS.threads)):
                row = measured(name, folder, batch, threads)
                print(row.cells(), file=sys.stderr)
                rows.append(row)
    if FLAGS.json:
        print(json.dumps([asdict(row) for row in rows]))
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    command = f"tools/bazel run //tests/bench:open_vs_fixed -- --rounds={FLAGS.rounds}"
    (root / FLAGS.output).write_text(page(rows, command), "utf-8")
    print(f"written: {FLAGS.output}", file=sys.stderr)


if __name__ == "__main__":
    app.run(main)
