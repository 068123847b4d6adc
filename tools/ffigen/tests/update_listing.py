"""Rewrites bindgen_listing.txt, with which conformance_test compares. Needs bindgen and g++.

cargo install bindgen-cli --version 0.72.1 --locked
python -m tools.ffigen.tests.update_listing --include_dir=FOLDER --bindgen=PROGRAM
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from tools.ffigen.tests.bindgen import BINDGEN_VERSION, LISTING, listing

_INCLUDE_DIR = flags.DEFINE_string("include_dir", None, "TensorFlow's include folder.")
_BINDGEN = flags.DEFINE_string("bindgen", "bindgen", f"The program, {BINDGEN_VERSION}.")
_OUT = flags.DEFINE_string("out", str(LISTING), "The listing to write.")


def main(argv: Sequence[str]) -> int:
    """Runs the program; returns its exit code."""
    if len(argv) > 1 or not _INCLUDE_DIR.value:
        print("update_listing: expected --include_dir=FOLDER", file=sys.stderr)
        return 2
    text = listing(_BINDGEN.value, Path(_INCLUDE_DIR.value).absolute())
    Path(_OUT.value).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    app.run(main)
