"""Every model of keras.applications, converted and compared with Keras without a compiler.

The graph of tf2rust is computed by its definition in NumPy, for small images. Weights are random,
nothing is downloaded. Exit status: 0 if every model converts and agrees with Keras, 1 if not, 2 if
the command line makes no sense.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from converters.tf.tests import listing
from converters.tf.tests.listing import TOLERANCE, Found, Listing, agreeing, compared
from tools.codegen import program

SIDES: Final = (32, 64, 75, 96, 128, 224, 331)
"""Sides of images; the first one that a model takes is used."""

PAGE: Final = """\
# The models of keras.applications

tf2rust traces and converts every function of `keras.applications`, with random weights and 1000
classes as logits. Images have the smallest size that the model takes, of {sides} pixels a side.
The emitters of Rust take the graph, and NumPy computes it by its definition for two images. The
difference from Keras is the largest one of a logit over the largest logit; {tolerance:g} is
allowed. Seconds are the processor's, of tracing and converting. Some of them were compiled and
run: [keras.applications as crates](performance/applications.md).

Written by `tools/bazel run //converters/tf/tests:applications_list -- --write
docs/keras-applications.md`; with `--only=MODELS` it renews their rows alone.
{good} of the {tried} models below agree; Keras {keras} has {all}.

| model | image | parameters | ops | million MACs | seconds | difference | compared |
|---|---|---|---|---|---|---|---|
{rows}
"""


def names() -> tuple[str, ...]:
    """Returns the names of all models, sorted."""
    import keras

    return tuple(sorted(n for n, f in vars(keras.applications).items() if inspect.isfunction(f)))


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
    from converters.tf.tests.checks import inputs_for, randomize

    side, model = _made(name)
    randomize(model)
    return compared(Found(name, str(side)), model, inputs_for, (2,))


def _cells(found: Found) -> Sequence[str]:
    return (
        found.size,
        f"{found.parameters / 1e6:.1f} M",
        str(found.ops),
        f"{found.macs / 1e6:.0f}",
        f"{found.seconds:.1f}",
        found.apart,
    )


def _page(rows: Mapping[str, str]) -> str:
    import keras

    return PAGE.format(
        sides=", ".join(map(str, SIDES[:-1])) + f" or {SIDES[-1]}",
        tolerance=TOLERANCE,
        good=agreeing(rows),
        tried=len(rows),
        all=len(names()),
        keras=keras.__version__,
        rows="\n".join(rows.values()),
    )


def main(argv: Sequence[str]) -> int:
    """Tries the models; returns the exit status."""
    return listing.run(Listing(Path(__file__), names(), attempt, _cells, _page), argv)


if __name__ == "__main__":
    program.run("applications_list", main)
