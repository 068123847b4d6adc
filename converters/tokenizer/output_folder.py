"""Says whether a folder may be replaced: an empty one, or a crate of this program."""

from __future__ import annotations

from pathlib import Path

from tools.codegen.conversion import Problem, UsageError


def check_folder(out: Path, mark: bytes) -> None:
    """Checks that a folder may be written, before the work that fills it.

    Args:
        out: The folder.
        mark: What the first bytes of a crate's Cargo.toml hold.

    Raises:
        UsageError: It is something else.
    """
    try:
        if out.is_symlink() or (out.exists() and not out.is_dir()):
            raise UsageError(Problem(str(out), "exists and is not a folder"))
        if not out.exists() or not any(out.iterdir()):
            return
        manifest = out / "Cargo.toml"
        if manifest.is_file() and mark in manifest.read_bytes()[:4096]:
            return
    except OSError as err:
        raise UsageError(Problem(str(out), f"can't be read: {err.strerror or err}")) from err
    what = "holds files that tokenizer2rust did not make"
    raise UsageError(Problem(str(out), what, "give another --out, or empty it"))
