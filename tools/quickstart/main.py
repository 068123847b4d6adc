"""Runs a graph on libtfp.so and on the CPU, compares them node by node, and trains a model on both.

Exit status: 0 if every node ran on the device, every value agrees and the training went alike; 1 if
not; 2 if the device could not be set up.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from absl import app, flags

if TYPE_CHECKING:
    from tools.quickstart.run import Row
    from tools.quickstart.training import Course

_LIBRARY = flags.DEFINE_string(
    "library", None, "Plug-in to load; the one that was built with this program if not given."
)
_DEVICE_TYPE = flags.DEFINE_string("device_type", "TFP", "Type of the device that it offers.")
_TOLERANCE = flags.DEFINE_float("tolerance", 1e-5, "Largest absolute difference from the CPU.")
_REPETITIONS = flags.DEFINE_integer(
    "repetitions", 9, "How often the graph runs; times are medians.", lower_bound=1
)
_LOSS_TOLERANCE = flags.DEFINE_float(
    "loss_tolerance", 1e-3, "Largest difference of an epoch's loss from the CPU."
)
_TRAIN = flags.DEFINE_bool("train", True, "Train a small model, too.")
_JSON = flags.DEFINE_bool("json", False, "Print JSON instead of a table.")

LIBRARY_VARIABLE: Final = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"


class SetupError(Exception):
    """The device can't be used; the message says what to do."""


def find_library(given: str | None) -> pathlib.Path:
    """Finds the plug-in.

    Args:
        given: Path that the caller asked for, or None for the built one.

    Returns:
        The absolute path of an existing file.

    Raises:
        SetupError: If there is no such file.
    """
    if given is not None:
        # Bazel runs programs in a folder of its own and keeps the caller's in this variable.
        base = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
        path = (base / given).resolve()
        hint = "give --library the path of libtfp.so"
    else:
        path = pathlib.Path(__file__).parents[2] / "plugin/quick/libtfp.so"
        hint = "start it by `tools/bazel run //:quickstart`, or give --library a libtfp.so"
    if not path.is_file():
        raise SetupError(f"no plug-in at {path}: {hint}")
    return path


def load(library: pathlib.Path, device_type: str) -> str:
    """Imports TensorFlow with the plug-in.

    Args:
        library: The plug-in.
        device_type: Type of the device that it should offer.

    Returns:
        TensorFlow's version.

    Raises:
        SetupError: If TensorFlow can't be imported or lists no such device.
    """
    if "tensorflow" in sys.modules:
        raise SetupError("TensorFlow was imported before the plug-in could be named to it")
    os.environ[LIBRARY_VARIABLE] = str(library)
    os.environ["TFP_DEVICE_TYPE"] = device_type
    # TensorFlow's notices about its own build say nothing about the device.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        import tensorflow as tf
    except ImportError as error:
        raise SetupError(
            f"TensorFlow can't be imported ({error}): install the locked requirements, or run "
            "this program with `tools/bazel run //:quickstart`"
        ) from error
    if not tf.config.list_physical_devices(device_type):
        found = [device.device_type for device in tf.config.list_physical_devices()]
        raise SetupError(
            f"{library} offers no device of type {device_type}; TensorFlow {tf.__version__} lists "
            f"{', '.join(found)}. See the line that begins with `tfp:` above, and unset "
            "TFP_DISABLE and TFP_NUM_DEVICES"
        )
    return str(tf.__version__)


def print_table(version: str, library: pathlib.Path, rows: Sequence[Row]) -> None:
    """Prints the rows for people."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"TensorFlow {version} on {library.name}")
    for heading in ("node", "op", "ran on"):
        table.add_column(heading)
    for heading in ("largest difference", "time [µs]", "CPU's time [µs]"):
        table.add_column(heading, justify="right")
    table.add_column("problem", style="red")
    for row in rows:
        table.add_row(
            row.case,
            row.op,
            row.device.rpartition("/device:")[2],
            f"{row.difference:.1e}" if row.difference else "0",
            f"{row.microseconds:.0f}",
            f"{row.cpu_microseconds:.0f}",
            row.problem,
        )
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    wrong = sum(bool(row.problem) for row in rows)
    if wrong:
        console.print(f"[red]{wrong} of {len(rows)} nodes are wrong.")
    else:
        console.print(f"All {len(rows)} nodes ran on the device and agree with the CPU.")


def print_training(on_device: Course, on_cpu: Course, device: str, problem: str) -> None:
    """Prints how the two trainings went, for people."""
    from rich.console import Console
    from rich.table import Table

    epochs = len(on_device.losses)
    table = Table(title=f"A convolutional network learns handwritten digits, {epochs} epochs")
    for heading in ("", "loss of each epoch", "unseen digits", "time per epoch"):
        table.add_column(heading)
    for name, course in ((device, on_device), ("CPU:0", on_cpu)):
        table.add_row(
            name,
            "  ".join(f"{loss:.4f}" for loss in course.losses),
            f"{course.accuracy:.1%} right",
            f"{1000 * course.seconds / (epochs - 1):.0f} ms",
        )
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    console.print(f"[red]{problem}" if problem else f"The model trained on {device} as on the CPU.")


def main(argv: Sequence[str]) -> int:
    """Runs the program; returns its exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    device_type = _DEVICE_TYPE.value
    try:
        library = find_library(_LIBRARY.value)
        version = load(library, device_type)
    except SetupError as error:
        print(f"quickstart: {error}", file=sys.stderr)
        return 2

    from tensorflow import errors as tf_errors

    from tools.quickstart import run

    try:
        on_device = run.run(f"/device:{device_type}:0", _REPETITIONS.value)
    except tf_errors.OpError as error:
        first = str(error).splitlines()[0]
        print(f"quickstart: the graph does not run on the device: {first}", file=sys.stderr)
        return 1
    on_cpu = run.run("/device:CPU:0", _REPETITIONS.value)
    rows = run.compare(on_device, on_cpu, device_type, _TOLERANCE.value)
    courses: dict[str, Course] = {}
    problem = ""
    if _TRAIN.value:
        import tfp_plugin

        from tools.quickstart import training

        tfp_plugin.enable()
        device = f"{device_type}:0"
        courses = {name: training.train(f"/device:{name}") for name in (device, "CPU:0")}
        problem = training.problem(courses[device], courses["CPU:0"], device, _LOSS_TOLERANCE.value)
    if _JSON.value:
        report = {
            "tensorflow": version,
            "library": str(library),
            "rows": [dataclasses.asdict(row) for row in rows],
            "training": {name: dataclasses.asdict(course) for name, course in courses.items()},
            "problem": problem,
        }
        print(json.dumps(report, indent=2))
    else:
        print_table(version, library, rows)
        if courses:
            print_training(courses[device], courses["CPU:0"], device, problem)
    return 1 if problem or any(row.problem for row in rows) else 0


if __name__ == "__main__":
    app.run(main)
