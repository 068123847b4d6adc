"""KerasHub, which nothing but what compares with it needs: in a folder of its own."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from tests.packages import clean

PACKAGES: Final = (
    "keras-hub==0.32.0",
    "regex==2026.11.15",
    "sentencepiece==0.2.3",
    "tokenizers==0.23.3",
)
"""What models of KerasHub import beside the packages of this repository's lock."""


def installed() -> Path:
    """Returns a folder with KerasHub, which pip fills (35 MB) on first use.

    It is `keras_hub` in `$TFP_CACHE`, or in `~/.cache/tfp`.

    Raises:
        RuntimeError: pip fails.
    """
    cache = Path(os.environ.get("TFP_CACHE") or Path.home() / ".cache/tfp").absolute()
    folder = cache / "keras_hub"
    done, content = folder / "ready", "\n".join([sys.version, *PACKAGES])
    if not done.exists() or done.read_text("utf-8") != content:
        print(f"installing {', '.join(PACKAGES)} into {folder}", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        asked = clean.pip("install", "--no-deps", "--target", folder, *PACKAGES)
        if asked.returncode != 0:
            reason = (asked.stderr.strip().splitlines() or ["no output"])[-1]
            raise RuntimeError(f"pip can't install {' '.join(PACKAGES)} (network?): {reason}")
        done.write_text(content, "utf-8")
    return folder
