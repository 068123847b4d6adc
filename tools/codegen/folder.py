"""Writes a folder at once: either all files are there, or the folder is as it was."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tools.codegen.conversion import Problem, UsageError


def replace_folder(out: Path, files: Mapping[str, bytes]) -> None:
    """Makes `out` a folder of these files, by relative path, and of nothing else.

    Raises:
        UsageError: It can't be written; what was there is as it was.
    """
    out = out.absolute()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        try:
            for name, content in files.items():
                path = staging / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            staging.chmod(0o755)
            _swap(staging, out)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as err:
        raise UsageError(Problem(str(out), f"cannot be written: {err}")) from err


def _swap(staging: Path, out: Path) -> None:
    if not out.exists():
        staging.rename(out)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}.old.", dir=out.parent))
    kept = old / "content"
    try:
        out.rename(kept)
        staging.rename(out)
    except BaseException:  # An interrupt, too.
        if not out.exists():
            _give_back(kept, out)
        raise
    finally:
        if out.exists():
            shutil.rmtree(old, ignore_errors=True)


def _give_back(kept: Path, out: Path) -> None:
    try:
        kept.rename(out)
    except OSError as err:
        raise OSError(f"{err}; what was there is {kept} now") from err
