"""Writes scikit-learn's handwritten digits as lines of numbers: 64 grey values and the digit."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import numpy as np
import sklearn.datasets
from absl import app, flags

_OUT = flags.DEFINE_string("out", None, "The file to write.", required=True)


def main(argv: Sequence[str]) -> None:
    """Writes the file."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    digits = sklearn.datasets.load_digits()
    table = np.column_stack([digits.data, digits.target]).astype(int)
    lines = [",".join(map(str, row)) + "\n" for row in table.tolist()]
    pathlib.Path(_OUT.value).write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    app.run(main)
