"""Runs the real bindgen over TensorFlow's headers, for the listing that conformance_test reads.

    python -m tools.ffigen.tests.update_listing            # rewrites bindgen_listing.txt
    python -m tools.ffigen.tests.update_listing --check    # says what has changed; writes nothing

Needs g++ and cargo. Once, cargo installs bindgen-cli of the version of `bindgen.py`, with the
crates of its own lock file, into the folder that `--root` names. libclang is the Python package's.
"""

from __future__ import annotations

import difflib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from tools.ffigen.tests.bindgen import BINDGEN_VERSION, LISTING, listing
from tools.ffigen.tests.wheel import include_dir

_INCLUDE_DIR = flags.DEFINE_string("include_dir", None, "The headers; the installed TensorFlow's.")
_BINDGEN = flags.DEFINE_string("bindgen", None, f"A program of {BINDGEN_VERSION} that is there.")
_ROOT = flags.DEFINE_string("root", None, "Where bindgen is installed; ~/.cache/tfp/bindgen.")
_CHECK = flags.DEFINE_bool("check", False, "Compare, and write nothing.")
_OUT = flags.DEFINE_string("out", str(LISTING), "The listing.")


def installed(root: Path) -> str:
    """Returns the path of bindgen in `root`; cargo installs it there if it is missing.

    Raises:
        subprocess.CalledProcessError: cargo could not.
    """
    program = root / "bin/bindgen"
    if not program.is_file():
        version = BINDGEN_VERSION.split()[1]
        command = ["cargo", "install", "bindgen-cli", f"--version={version}", "--locked"]
        subprocess.run([*command, f"--root={root}"], check=True)
    return str(program)


def main(argv: Sequence[str]) -> int:
    """Runs the program; returns its exit code: 1 if `--check` finds a difference."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    cache = Path(os.environ.get("TFP_CACHE") or Path.home() / ".cache/tfp")
    program = _BINDGEN.value or installed(Path(_ROOT.value or cache / "bindgen").absolute())
    headers = Path(_INCLUDE_DIR.value or include_dir()).absolute()
    text, out = listing(program, headers), Path(_OUT.value)
    if not _CHECK.value:
        out.write_text(text, encoding="utf-8")
        return 0
    committed = out.read_text(encoding="utf-8")
    changes = difflib.unified_diff(
        committed.splitlines(), text.splitlines(), str(out), BINDGEN_VERSION, lineterm="", n=0
    )
    lines = list(changes)
    print("\n".join(lines) or f"{out.name} is what {BINDGEN_VERSION} says of {headers}")
    return 1 if lines else 0


if __name__ == "__main__":
    app.run(main)
