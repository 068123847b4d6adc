"""Writes a folder as a whole: either all files are there, or the folder is as it was."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tools.codegen.conversion import Problem, UsageError

# What is between the name of a folder and the letters that make the name of one beside it its own.
_BESIDE = ".tfp_"
# Folders in the one beside: what is to be, and, where two names can't be exchanged, what was.
_NEW, _OLD = "new", "old"
# Of renameat2, in the headers of Linux.
_HERE, _EXCHANGE = -100, 2


def replace_folder(out: Path, files: Mapping[str, bytes]) -> None:
    """Makes `out` a folder of these files, by relative path, and of nothing else.

    A process that dies leaves the old folder or the new one, whole. Where the system can't
    exchange two names, the old one may be beside until the next call puts it back. That call also
    deletes what a dead process left.

    Raises:
        UsageError: It can't be written; what was there is as it was.
    """
    out = out.absolute()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _mend(out)
        with _beside(out) as beside:
            new = beside / _NEW
            new.mkdir()
            for name, content in files.items():
                path = new / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            new.chmod(0o755)
            for path in (*new.rglob("*"), new):
                _flush(path)
            _swap(new, out, beside / _OLD)
            _flush(out.parent)
    except OSError as err:
        raise UsageError(Problem(str(out), f"cannot be written: {err}")) from err


def check_own(out: Path, mark: bytes, program: str) -> None:
    """Checks that a folder may be replaced: it is not there, is empty, or is what a program wrote.

    Args:
        out: The folder.
        mark: What a TOML or Rust file of the program has among its first bytes.
        program: The program.

    Raises:
        UsageError: It is something else, or cannot be read.
    """
    try:
        if out.is_symlink() or (out.exists() and not out.is_dir()):
            raise UsageError(Problem(str(out), "exists and is not a folder"))
        if not out.exists() or not any(out.iterdir()):
            return
        for path in [*out.glob("*.toml"), *out.glob("*.rs")]:
            if path.is_file() and mark in path.read_bytes()[:4096]:
                return
    except OSError as err:
        raise UsageError(Problem(str(out), f"cannot be written: {err}")) from err
    what = f"holds files that {program} did not make"
    raise UsageError(Problem(str(out), what, "give another --out or empty it"))


@contextmanager
def _beside(out: Path) -> Iterator[Path]:
    """Makes a folder beside another one, and deletes it in the end unless the old one is in it."""
    beside = Path(tempfile.mkdtemp(prefix=f".{out.name}{_BESIDE}", dir=out.parent))
    lock = os.open(beside, os.O_RDONLY)
    try:
        # A folder whose lock nobody holds is a dead process's.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield beside
    finally:
        os.close(lock)
        if out.exists() or not (beside / _OLD).exists():
            shutil.rmtree(beside, ignore_errors=True)


def _mend(out: Path) -> None:
    """Puts a folder back that a dead process took away, and deletes what it left."""
    start = f".{out.name}{_BESIDE}"
    for beside in [path for path in out.parent.iterdir() if path.name.startswith(start)]:
        try:
            lock = os.open(beside, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not out.exists() and (beside / _OLD).exists():
                (beside / _OLD).rename(out)
            shutil.rmtree(beside, ignore_errors=True)
        except BlockingIOError:  # Its process lives.
            continue
        finally:
            os.close(lock)


def _flush(path: Path) -> None:
    """Flushes a file or a folder to the disk, where the file system can."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as err:
        if err.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(opened)


def _swap(new: Path, out: Path, old: Path) -> None:
    """Puts a folder in the place of another one."""
    if not out.exists():
        new.rename(out)
        return
    if _exchanged(new, out):
        return
    try:
        out.rename(old)
        new.rename(out)
    except BaseException:  # An interrupt, too.
        if not out.exists():
            _give_back(old, out)
        raise


def _exchanged(one: Path, other: Path) -> bool:
    """Exchanges two names in one step; returns whether the system can."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    names = (os.fsencode(one), os.fsencode(other))
    return bool(call(_HERE, names[0], _HERE, names[1], ctypes.c_uint(_EXCHANGE)) == 0)


def _give_back(old: Path, out: Path) -> None:
    try:
        old.rename(out)
    except OSError as err:
        raise OSError(f"{err}; what was there is {old} now") from err
