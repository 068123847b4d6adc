"""The libraries, which nothing else of this repository needs: in a folder of their own."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
from typing import Final

from tests.keras_suite.suite import SuiteError
from tests.packages import clean

PINS: Final = pathlib.Path(__file__).with_name("requirements.txt")


def installed() -> pathlib.Path:
    """Returns a folder with the libraries and what they import, which pip fills on first use.

    It is `libraries` in `$TFP_CACHE`, or in `~/.cache/tfp`. The packages of this repository's lock
    are not in it: those of the caller serve, whatever a library asks for.

    Raises:
        SuiteError: If pip fails.
    """
    cache = pathlib.Path(os.environ.get("TFP_CACHE") or pathlib.Path.home() / ".cache/tfp")
    folder = cache.absolute() / "libraries"
    done = folder / "ready"
    content = "\n".join([sys.version, PINS.read_text("utf-8")])
    if not done.exists() or done.read_text("utf-8") != content:
        print(f"installing the libraries into {folder}", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        asked = clean.pip("install", "--no-deps", "--target", folder, "--requirement", PINS)
        if asked.returncode != 0:
            reason = (asked.stderr.strip().splitlines() or ["no output"])[-1]
            raise SuiteError(f"pip can't install {PINS.name} (network?): {reason}")
        done.write_text(content, "utf-8")
    return folder
