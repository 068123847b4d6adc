"""Every model of keras.applications, converted and compared with Keras without a compiler.

The graph of tf2rust is computed by its definition in NumPy, for small images. Weights are random,
nothing is downloaded. Exit status: 0 if every model converts and agrees with Keras, 1 if not.
"""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from absl import app, flags

from converters.tf.tests.pages import known_rows

_ONLY = flags.DEFINE_list("only", [], "Models to try; all if not given.")
_WRITE = flags.DEFINE_string("write", None, "The page to write.")
_TRY = flags.DEFINE_string("try", None, "Try this one model; the program calls itself.")

SIDES: Final = (32, 64, 75, 96, 128, 224, 331)
"""Sides of images; the first one that a model takes is used."""
TOLERANCE: Final = 1e-5
"""Largest difference of a logit, relative to the largest logit."""

PAGE: Final = """\
# The models of keras.applications

Every function of `keras.applications`, with random weights, 1000 classes as logits and the smallest
image of {sides} pixels a side that it takes: traced and converted by tf2rust; the emitters
of Rust take the graph, and NumPy computes it by its definition for two images. The difference from
Keras is the largest one of a logit over the largest logit; {tolerance:g} is allowed. Seconds are
those of tracing and converting. Some of them were compiled and run:
[keras.applications as crates](performance/applications.md).

Written by `tools/bazel run //converters/tf/tests:applications_list -- --write
docs/keras-applications.md`; with `--only=MODELS` it renews their rows alone.
{good} of the {tried} models below agree; Keras {keras} has {all}.

| model | image | parameters | ops | million MACs | seconds | difference | compared |
|---|---|---|---|---|---|---|---|
{rows}
"""


@dataclasses.dataclass(frozen=True)
class Found:
    """What became of one model.

    Attributes:
        model: Its name.
        side: Side of the image.
        parameters: Their number.
        ops: Nodes of the graph.
        macs: Multiplications with addition for one image.
        seconds: Time of tracing and converting.
        difference: Largest difference from Keras, over the largest logit.
        error: What failed, or empty.
    """

    model: str
    side: int = 0
    parameters: int = 0
    ops: int = 0
    macs: int = 0
    seconds: float = 0.0
    difference: float = float("nan")
    error: str = ""

    @property
    def good(self) -> bool:
        """Returns whether it converts and agrees."""
        return not self.error and self.difference <= TOLERANCE

    def row(self) -> str:
        """Returns the line of the page."""
        date = datetime.datetime.now(datetime.UTC).date()
        if self.error:
            return f"| {self.model} | {self.error} | | | | | | {date} |"
        return (
            f"| {self.model} | {self.side} | {self.parameters / 1e6:.1f} M | {self.ops} "
            f"| {self.macs / 1e6:.0f} | {self.seconds:.1f} | {self.difference:.1e} | {date} |"
        )


def names() -> list[str]:
    """Returns the names of all models."""
    import keras

    return [n for n, f in vars(keras.applications).items() if inspect.isfunction(f)]


def _made(name: str) -> tuple[int, Any]:
    """Returns the side of the image and the model.

    Raises:
        RuntimeError: It takes no image of the sides.
    """
    import keras

    make = getattr(keras.applications, name)
    for side in SIDES:
        try:
            shape = (side, side, 3)
            return side, make(weights=None, classifier_activation=None, input_shape=shape)
        except ValueError as err:
            reason = str(err)
    raise RuntimeError(reason)


def attempt(name: str) -> Found:
    """Makes, converts and compares one model."""
    from converters.tf.interpret import interpret
    from converters.tf.load.model import trace_model
    from converters.tf.plan import plan_memory
    from converters.tf.tests.checks import difference, inputs_for, randomize
    from converters.tf.tf2rust import graph_of
    from tools.codegen.conversion import ConversionError

    side, model = _made(name)
    randomize(model)
    start = time.monotonic()
    try:
        loaded = trace_model(model)
        graph = graph_of(loaded)
    except ConversionError as err:
        return Found(name, side, error=str(err.problems[0]))
    seconds = time.monotonic() - start
    arrays = inputs_for(graph, 2)
    (found,) = interpret(graph, arrays).values()
    (expected,) = loaded.predict(arrays).values()
    parameters = int(model.count_params())
    macs = plan_memory(graph).macs
    apart = difference(found, expected)
    return Found(name, side, parameters, len(graph.nodes), macs, seconds, apart)


def _apart(name: str) -> Found:
    """Tries a model in a process of its own, which gives its memory back."""
    here = str(Path(__file__).absolute())
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, here, f"--try={name}"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return Found(name, error=" ".join(done.stderr.split())[-300:].replace("|", "/"))
    return Found(**json.loads(done.stdout.splitlines()[-1]))


def _page(rows: dict[str, str], known: Sequence[str]) -> str:
    import keras

    differences = [rows[n].split("|")[-3].strip() for n in known if n in rows]
    good = [d for d in differences if d and float(d) <= TOLERANCE]
    return PAGE.format(
        sides=", ".join(map(str, SIDES[:-1])) + f" or {SIDES[-1]}",
        tolerance=TOLERANCE,
        good=len(good),
        tried=len(differences),
        all=len(known),
        keras=keras.__version__,
        rows="\n".join(rows[n] for n in known if n in rows),
    )


def main(argv: Sequence[str]) -> int:
    """Tries every model; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    if _TRY.value:
        print(json.dumps(dataclasses.asdict(attempt(_TRY.value))))
        return 0
    known = sorted(names())
    page = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), _WRITE.value or os.devnull)
    rows = known_rows(page) if _ONLY.value and _WRITE.value else {}
    results = []
    for name in _ONLY.value or known:
        results.append(_apart(name))
        rows[name] = results[-1].row()
        print(rows[name], file=sys.stderr, flush=True)
    if _WRITE.value:
        page.write_text(_page(rows, known), encoding="utf-8")
    return 0 if all(result.good for result in results) else 1


if __name__ == "__main__":
    app.run(main)
