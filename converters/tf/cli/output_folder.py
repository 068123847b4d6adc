"""Writes what tf2rust makes over what it made before, and over nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tools.codegen.conversion import Problem, UsageError
from tools.codegen.folder import replace_folder

# What a folder holds that this program made.
PARTS = ("rust_generated_code", "saved_model_from_tensorflow", "web")


def check_folder(out: Path, overwrite: bool) -> None:
    """Checks that a folder may be written, before the work that fills it.

    Raises:
        UsageError: It exists and may not be replaced.
    """
    try:
        if out.is_symlink():
            what = "is a symbolic link, which tf2rust does not write through"
            raise UsageError(Problem(str(out), what, "name the folder itself"))
        if out.exists() and not out.is_dir():
            raise UsageError(Problem(str(out), "exists and is not a folder"))
        found = sorted(path.name for path in out.iterdir()) if out.exists() else []
    except OSError as err:
        raise UsageError(Problem(str(out), f"cannot be read: {err}")) from err
    if not found:
        return
    if not overwrite:
        raise UsageError(
            Problem(str(out), "is not empty", "pass --overwrite to replace what tf2rust wrote")
        )
    others = [name for name in found if name not in PARTS]
    if others:
        what = f"holds {', '.join(others[:3])}, which tf2rust did not write"
        raise UsageError(Problem(str(out), what, "give another --path_to_save"))


def write_folder(out: Path, files: Mapping[str, bytes], overwrite: bool) -> None:
    """Writes files (relative path to content) as a folder, whole or not at all.

    Raises:
        UsageError: The folder may not be replaced, or can't be written.
    """
    check_folder(out, overwrite)
    replace_folder(out, files)
