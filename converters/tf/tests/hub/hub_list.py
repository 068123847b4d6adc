"""Small models of KerasHub, converted and compared with Keras without a compiler.

The graph of tf2rust is computed by its definition in NumPy. Weights are random; KerasHub itself is
installed into the cache folder on first use. Exit status: 0 if every model agrees with Keras, or is
refused and ought to be; 1 if not; 2 if the command line makes no sense; 3 if KerasHub can't be
installed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from converters.tf import ir
from converters.tf.load.shapes import FixedShapes
from converters.tf.tests import listing
from converters.tf.tests.hub.entry import Entry
from converters.tf.tests.hub.installed import PACKAGES, installed
from converters.tf.tests.listing import TOLERANCE, Found, Listing, agreeing, compared
from tools.codegen import program

NOT_INSTALLED: Final = 3
BATCHES: Final = (1, 3)
_WHOLE: Final = 10
_LABELS: Final = 4

PAGE: Final = """\
# The models of KerasHub

Small configurations of the models of KerasHub ({packages}) with random weights: built, traced and
converted by tf2rust; the emitters of Rust take the graph, and NumPy computes it by its definition
for one example and for three. The difference from Keras is the largest one of an element over the
largest element of its output; {tolerance:g} is allowed. What is more is in bold; Keras' own is the
difference of Keras from Keras in float64 then. Seconds are the processor's, of tracing and
converting. Inputs are the shapes of one example. What is refused says why.

Written by `tools/bazel run //converters/tf/tests/hub:hub_list -- --write docs/keras-hub.md`, which
installs KerasHub into the cache folder; with `--only=MODELS` it renews their rows alone.
{good} of the {tried} models below agree, {refused} are refused.

{tables}
"""
TABLE: Final = """\
## {title}

| model | inputs | parameters | ops | MACs | seconds | difference | compared |
|---|---|---|---|---|---|---|---|
{rows}
"""


def tables() -> dict[str, Mapping[str, Entry]]:
    """Returns the configurations by the title of their table."""
    from converters.tf.tests.hub import (
        detectors,
        encoders,
        generators,
        images,
        layers,
        mixed,
        sequences,
    )

    return {
        "Sentences that are read": encoders.ENTRIES,
        "Sentences that are continued": generators.ENTRIES,
        "From one sentence to another, and from speech": sequences.ENTRIES,
        "Images": images.ENTRIES,
        "What is where in an image": detectors.ENTRIES,
        "Images and sentences, and images that are made": mixed.ENTRIES,
        "Layers": layers.ENTRIES,
    }


def _shapes(model: Any, entry: Entry) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the inputs, without the batch, by their names."""
    from converters.tf.load.keras.model import named_inputs

    _, named = named_inputs(model)
    return {name: entry.shape(name, tuple(tensor.shape)[1:]) for name, tensor in named}


def inputs(graph: ir.Graph, batch: int) -> dict[str, ir.Array]:
    """Returns random inputs, each of a kind that its name tells.

    Masks of tokens are ones up to the end of a sentence; segments are the first or the second.
    """
    from converters.tf.tests.checks import inputs_for

    random = np.random.default_rng(batch)
    arrays = inputs_for(graph, batch, _WHOLE)
    for name, array in arrays.items():
        if array.dtype.kind == "f" or name == "mask_positions":
            continue
        if "mask" in name:
            ends = random.integers(1, array.shape[1] + 1, batch)
            data = np.arange(array.shape[1]) < ends[:, np.newaxis]
        elif "segment" in name:
            data = array % 2 == 1
        elif name == "labels":
            data = array % _LABELS
        else:
            continue
        arrays[name] = data.astype(array.dtype)
    return arrays


def _wide(entry: Entry, model: Any) -> Any:
    """Returns the same model in float64."""
    import keras

    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    wide = entry.make()
    for variable, value in zip(wide.variables, model.variables, strict=True):
        variable.assign(np.asarray(value).astype(variable.dtype))
    return wide


def attempt(name: str) -> Found:
    """Makes, converts and compares one model."""
    import keras

    from converters.tf.tests.checks import randomize

    keras.utils.set_random_seed(1)
    entry = next(entries[name] for entries in tables().values() if name in entries)
    model = entry.make()
    randomize(model)
    shapes = _shapes(model, entry)
    size = ", ".join("x".join(map(str, shape)) or "scalar" for shape in shapes.values())
    fixed = FixedShapes(shapes)
    wide = functools.partial(_wide, entry)
    return compared(Found(name, size), model, inputs, BATCHES, fixed, wide)


def _cells(found: Found) -> Sequence[str]:
    return (
        found.size,
        f"{found.parameters:,}",
        str(found.ops),
        f"{found.macs:,}",
        f"{found.seconds:.1f}",
        found.apart,
    )


def _page(rows: Mapping[str, str]) -> str:
    parts = []
    for title, entries in tables().items():
        lines = [rows[name] for name in entries if name in rows]
        if lines:
            parts.append(TABLE.format(title=title, rows="\n".join(lines)))
    return PAGE.format(
        packages=PACKAGES[0].replace("keras-hub==", ""),
        tolerance=TOLERANCE,
        good=agreeing(rows),
        tried=len(rows),
        refused=sum("| refused: " in row for row in rows.values()),
        tables="\n".join(parts).strip(),
    )


def main(argv: Sequence[str]) -> int:
    """Tries the models; returns the exit status."""
    try:
        sys.path.append(str(installed()))
    except RuntimeError as err:
        print(f"hub_list: {err}", file=sys.stderr)
        return NOT_INSTALLED
    known = {name: entry for entries in tables().values() for name, entry in entries.items()}
    refused = frozenset(name for name, entry in known.items() if entry.refused)
    return listing.run(Listing(Path(__file__), tuple(known), attempt, _cells, _page, refused), argv)


if __name__ == "__main__":
    program.run("hub_list", main)
