"""Writes a folder at once: either all files are there, or the folder is as it was."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tools.codegen.conversion import Problem, UsageError


def write_folder(out: Path, files: Mapping[str, bytes], mark: bytes) -> None:
    """Writes `files` (relative path -> content) as the folder `out`.

    An existing folder is replaced only when it is empty or holds a file that contains `mark`, so
    that nobody's work is lost.

    Raises:
      UsageError: `out` is something else, or cannot be written.
    """
    out = out.absolute()
    try:
        _check_replaceable(out, mark)
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


def _check_replaceable(out: Path, mark: bytes) -> None:
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageError(Problem(str(out), "exists and is not a folder"))
    if not out.exists() or not any(out.iterdir()):
        return
    for path in [*out.glob("*.toml"), *out.glob("*.rs")]:
        if path.is_file() and mark in path.read_bytes()[:4096]:
            return
    raise UsageError(
        Problem(
            str(out), "holds files that mlf2rust did not make", "give another --out or empty it"
        )
    )


def _swap(staging: Path, out: Path) -> None:
    if not out.exists():
        staging.rename(out)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}.old.", dir=out.parent))
    out.rename(old / "content")
    try:
        staging.rename(out)
    except OSError:
        (old / "content").rename(out)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
