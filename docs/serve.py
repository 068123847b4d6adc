"""Shows the documentation as a site, or builds it into a folder.

The site's generator comes from the package index into the cache folder, once.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from absl import app, flags

_OUT = flags.DEFINE_string("out", None, "Build the site into this folder, and do not serve it.")
_ADDRESS = flags.DEFINE_string("address", "127.0.0.1:8000", "Where to serve.")

MATERIAL: Final = "mkdocs-material==9.6.14"


def generator() -> pathlib.Path:
    """Returns the Python that has the generator; installs it where it is missing.

    Raises:
        RuntimeError: If it can't be installed.
    """
    base = os.environ.get("TFP_CACHE") or os.environ.get("XDG_CACHE_HOME")
    cache = pathlib.Path(base) if base else pathlib.Path.home() / ".cache" / "tfp"
    folder = cache / f"site-{MATERIAL.rpartition('=')[2]}"
    python, done = folder / "bin/python", folder / "installed"
    if done.exists():
        return python
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", MATERIAL],
    ):
        if subprocess.run(command, check=False).returncode:
            raise RuntimeError(f"`{' '.join(command)}` failed; the site needs {MATERIAL}")
    done.touch()
    return python


def main(argv: Sequence[str]) -> int:
    """Serves or builds; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if workspace is None:
        print("serve: run it with `tools/bazel run //docs:serve`", file=sys.stderr)
        return 2
    try:
        python = generator()
    except RuntimeError as error:
        print(f"serve: {error}", file=sys.stderr)
        return 2
    common = [str(python), "-m", "mkdocs"]
    if _OUT.value:
        base = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
        command = [*common, "build", "--strict", "--site-dir", str((base / _OUT.value).absolute())]
    else:
        command = [*common, "serve", "--dev-addr", _ADDRESS.value]
    try:
        return subprocess.run(command, cwd=workspace, check=False).returncode
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    app.run(main)
