"""Writes a folder at once: either all files are there, or the folder is as it was."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tools.codegen.conversion import Problem, UsageError

# What a folder holds that this program made.
PARTS = ("rust_generated_code", "saved_model_from_tensorflow")


def check_folder(out: Path, overwrite: bool) -> None:
    """Checks that a folder may be written, before the work that fills it.

    Raises:
        UsageError: It exists and may not be replaced.
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageError(Problem(str(out), "exists and is not a folder"))
    if not out.exists() or not any(out.iterdir()):
        return
    if not overwrite:
        raise UsageError(
            Problem(str(out), "is not empty", "pass --overwrite to replace what tf2rust wrote")
        )
    others = sorted(p.name for p in out.iterdir() if p.name not in PARTS)
    if others:
        what = f"holds {', '.join(others[:3])}, which tf2rust did not write"
        raise UsageError(Problem(str(out), what, "give another --path_to_save"))


def write_folder(out: Path, files: Mapping[str, bytes], overwrite: bool) -> None:
    """Writes files (relative path to content) as a folder.

    Raises:
        UsageError: The folder may not be replaced, or can't be written.
    """
    out = out.absolute()
    check_folder(out, overwrite)
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
        raise UsageError(Problem(str(out), f"can't be written: {err}")) from err


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
