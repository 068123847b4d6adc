"""Time and memory of loading a SavedModel, by the client and by Python, in turn.

The model is Keras' MobileNetV2 without trained weights. Each loading has a process of its own.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Final

from absl import app, flags, logging

from tests.bench import report

_ROUNDS = flags.DEFINE_integer("rounds", 5, "How often each side loads.", lower_bound=3)
_RUST = flags.DEFINE_string("rust", None, "The Rust side's program.")
_WRITE = flags.DEFINE_string(
    "write", None, "The page to write, such as docs/performance/loading.md."
)
_FOLDER = flags.DEFINE_string("folder", None, "Load this model once with Python, and end.")

PAGE: Final = """\
# Loading a SavedModel

`tools/bazel run -c opt //tests/bench/client:load_vs_python -- --write docs/performance/loading.md`
loads an exported MobileNetV2 of Keras ({megabytes:.1f} MB) by `tfp::Model` and by
`tf.saved_model.load`. Each of {rounds} loadings of a side has a process of its own, in which
TensorFlow has run an op before. The sides take turns.

{where}.
Medians with quartiles, and the ratio of the medians:

{table}

Memory is what the process grew by. The first call traces nothing, but TensorFlow optimizes the
graph of the signature.
"""

ROWS: Final = (("loading, ms", 1e6), ("memory, MB", 1e6), ("first call, ms", 1e6))
"""What is measured, with the nanoseconds or bytes of its unit."""


def load_once(folder: str) -> None:
    """Prints the nanoseconds of the loading, the bytes that grew, and those of the first call."""
    import tensorflow as tf

    def resident() -> int:
        text = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
        return int(text.partition("VmRSS:")[2].split()[0]) * 1024

    tf.constant(0.0)
    before, begun = resident(), time.perf_counter_ns()
    model = tf.saved_model.load(folder)
    loaded, grown = time.perf_counter_ns() - begun, resident() - before
    signature = model.signatures["serving_default"]
    begun = time.perf_counter_ns()
    arguments = {
        name: tf.zeros([dim or 1 for dim in spec.shape], spec.dtype)
        for name, spec in signature.structured_input_signature[1].items()
    }
    for result in signature(**arguments).values():
        result.numpy()
    print(loaded, grown, time.perf_counter_ns() - begun, flush=True)


def write_model(folder: pathlib.Path) -> float:
    """Exports the model, and returns the megabytes of its files."""
    import keras

    model = keras.applications.MobileNetV2(weights=None)
    model.export(str(folder), verbose=False)
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def table(python: Sequence[Sequence[float]], client: Sequence[Sequence[float]]) -> str:
    """Returns the table of readings, each with a number for each row."""
    lines = ["| | Python | client | client / Python |", "|---|---:|---:|---:|"]
    for at, (name, unit) in enumerate(ROWS):
        cells, medians = [name], []
        for readings in (python, client):
            values = [one[at] / unit for one in readings]
            cells.append(report.cell(values, digits=1))
            medians.append(statistics.median(values))
        lines.append(f"| {' | '.join([*cells, f'{medians[1] / medians[0]:.2f}'])} |")
    return "\n".join(lines)


def main(argv: Sequence[str]) -> None:
    """Measures both sides and prints the table."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if _FOLDER.value:
        load_once(_FOLDER.value)
        return
    if not _RUST.value:
        raise app.UsageError("--rust is missing")
    where = report.when_and_where()
    logging.set_verbosity(logging.WARNING)
    report.tell("exporting the model")
    import tensorflow as tf

    os.environ.setdefault("TF_LIBRARY_PATH", str(pathlib.Path(tf.__file__).parent))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "model"
        megabytes = write_model(folder)
        sides: dict[str, list[str]] = {
            "Python": [sys.executable, __file__, f"--folder={folder}"],
            "client": [_RUST.value, str(folder)],
        }
        readings: dict[str, list[list[float]]] = {name: [] for name in sides}
        for turn in range(_ROUNDS.value + 1):
            for name, command in sides.items():
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                reading = [float(number) for number in done.stdout.split()]
                # The first reading of each side brings the files into memory.
                if turn > 0:
                    readings[name].append(reading)
                    report.tell(f"round {turn} of {_ROUNDS.value}, {name}: {done.stdout.strip()}")
    text = table(readings["Python"], readings["client"])
    print(text, flush=True)
    if _WRITE.value:
        rounds = _ROUNDS.value
        page = PAGE.format(megabytes=megabytes, rounds=rounds, where=where, table=text)
        report.write(_WRITE.value, page)


if __name__ == "__main__":
    app.run(main)
