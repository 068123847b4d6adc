"""Training steps of the client and of Python's TensorFlow, in turn.

Both train the same models from the same `.keras` file on the same batch with Adam, in a graph and
eagerly. Python has two forms of a graph: Keras' `fit` as it is, which compiles with XLA where Keras
chooses it, and a `tf.function` without XLA around a tape and the optimizer. Prints a table of times
per step with medians and quartiles. It also tells how long the client takes to read and build each
model with its gradients, and how long each side's first step takes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import app, flags

from tests.bench import report

if TYPE_CHECKING:
    from tests.bench.client.training_models import Case

_ROUNDS = flags.DEFINE_integer("rounds", 9, "How often each side is timed.", lower_bound=3)
_STEPS = flags.DEFINE_integer(
    "steps", 40, "Steps of the smallest models per round; larger ones make fewer.", lower_bound=1
)
_ONLY = flags.DEFINE_list("only", [], "The models to time; all unless told.")
_RUST = flags.DEFINE_string("rust", None, "The Rust side's program.", required=True)
_JSON = flags.DEFINE_bool("json", False, "Print one JSON object per line.")

Run = Callable[[int], float]


def fit_steps(folder: Path) -> Run:
    """Returns a function that fits for so many steps, and returns their nanoseconds."""
    import keras

    model = keras.models.load_model(folder / "model.keras")
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    def run(steps: int) -> float:
        data = _batch(folder).repeat(steps)
        begun = time.perf_counter_ns()
        model.fit(data, epochs=1, verbose=0, shuffle=False)
        return time.perf_counter_ns() - begun

    return run


def tape_steps(folder: Path, mode: str) -> Run:
    """Returns a function that makes so many steps by a tape, and returns their nanoseconds."""
    import keras
    import tensorflow as tf

    model = keras.models.load_model(folder / "model.keras")
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    x, truth = next(iter(_batch(folder)))

    def step(x: Any, truth: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(truth, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    call = tf.function(step) if mode == "graph" else step

    def run(steps: int) -> float:
        begun = time.perf_counter_ns()
        for _ in range(steps):
            call(x, truth).numpy()
        return time.perf_counter_ns() - begun

    return run


def _batch(folder: Path) -> Any:
    """Returns a `tf.data.Dataset` of the one batch."""
    import numpy as np
    import tensorflow as tf

    with np.load(folder / "batch.npz") as batch:
        return tf.data.Dataset.from_tensors((batch["x"], batch["truth"]))


class Client:
    """The Rust side.

    Attributes:
        built: nanoseconds that the last model took to be read and built.
    """

    def __init__(self, program: str) -> None:
        self.built = 0.0
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def steps(self, folder: Path, mode: str) -> Run:
        """Returns a function that makes so many steps and returns their nanoseconds together."""

        def run(steps: int) -> float:
            pipes = self._process
            if not pipes.stdin or not pipes.stdout:
                raise RuntimeError("the Rust side has no pipes")
            pipes.stdin.write(f"{folder}\t{mode}\t{steps}\n")
            answer = pipes.stdout.readline().split()
            if len(answer) != 3:
                raise RuntimeError(f"the Rust side ended while it made steps of {folder.name}")
            self.built = float(answer[1])
            return float(answer[0])

        return run

    def close(self) -> None:
        """Ends the program."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()


def _in_turn(sides: Sequence[Run], steps: int) -> list[list[float]]:
    """Returns the microseconds per step of each round, for each side."""
    for side in sides:
        side(steps)
    found: list[list[float]] = [[] for _ in sides]
    for _ in range(_ROUNDS.value):
        for side, times in zip(sides, found, strict=True):
            times.append(side(steps) / steps / 1000)
    return found


def _ratio(client: Sequence[float], python: Sequence[float]) -> float:
    return statistics.median(c / p for p, c in zip(python, client, strict=True))


def _seconds(run: Run) -> float:
    """Returns the seconds until the first step is done, which builds the graph."""
    return run(1) / 1e9


def _measure(client: Client, name: str, case: Case, mode: str, folder: Path) -> None:
    """Times a model and prints its row."""
    steps = max(1, round(_STEPS.value * case.share))
    ours = client.steps(folder, mode)
    tape = tape_steps(folder, mode)
    sides = [ours, tape] + ([fit_steps(folder)] if mode == "graph" else [])
    first = [_seconds(side) for side in sides]
    found = _in_turn(sides, steps)
    if _JSON.value:
        names = ("client_us", "function_us", "fit_us")
        row: dict[str, Any] = {"step": f"{name}, {mode}", "built_s": client.built / 1e9}
        row |= dict(zip(names, found, strict=False)) | {"first_step_s": first}
        print(json.dumps(row), flush=True)
        return
    cells = [f"{name}, {mode}", report.cell(found[0]), report.cell(found[1])]
    cells += [report.cell(found[2])] if len(found) > 2 else [""]
    cells += [f"{_ratio(found[0], found[1]):.2f}"]
    cells += [f"{_ratio(found[0], found[2]):.2f}"] if len(found) > 2 else [""]
    cells += [f"{client.built / 1e9:.2f}", " / ".join(f"{seconds:.1f}" for seconds in first)]
    print("| " + " | ".join(cells) + " |", flush=True)


def main(argv: Sequence[str]) -> None:
    """Measures all sides in turn and prints the table."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    from tests.bench.client.training_models import CASES

    os.environ.setdefault("TF_LIBRARY_PATH", str(Path(tf.__file__).parent))
    unknown = sorted(set(_ONLY.value) - set(CASES))
    if unknown:
        raise app.UsageError(f"unknown models {unknown}: there are {sorted(CASES)}")
    if not _JSON.value:
        print(
            "| training step | client, us | `tf.function`, us | `fit`, us | client / `tf.function` "
            "| client / `fit` | client built in, s | first step, s |"
        )
        print("|---|---|---|---|---|---|---|---|")
    client = Client(_RUST.value)
    with tempfile.TemporaryDirectory() as scratch:
        for name in _ONLY.value or CASES:
            case = CASES[name]
            report.tell(f"{name}: batch {case.batch}, shape {case.shape}")
            case.write(Path(scratch) / name)
            for mode in case.modes:
                _measure(client, name, case, mode, Path(scratch) / name)
    client.close()


if __name__ == "__main__":
    app.run(main)
