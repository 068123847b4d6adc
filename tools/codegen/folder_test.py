"""A folder is written whole or not at all."""

from __future__ import annotations

import errno
import itertools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tools.codegen.conversion import UsageError
from tools.codegen.folder import replace_folder


def contents(folder: Path) -> dict[str, bytes]:
    files = (p for p in folder.rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def test_a_folder_holds_the_files_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    replace_folder(out, {"a": b"1", "b/c": b"2"})
    assert contents(out) == {"a": b"1", "b/c": b"2"}
    replace_folder(out, {"d": b"3"})
    assert contents(out) == {"d": b"3"}
    assert [p.name for p in out.parent.iterdir()] == ["out"]
    assert out.stat().st_mode & 0o777 == 0o755


def test_what_was_there_stays_if_a_file_can_not_be_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    replace_folder(out, {"old": b"1"})
    with pytest.raises(UsageError, match="cannot be written"):
        replace_folder(out, {"a": b"1", "a/b": b"2"})
    assert contents(out) == {"old": b"1"}
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("before", [True, False])
def test_what_was_there_stays_if_the_user_interrupts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, before: bool
) -> None:
    out = tmp_path / "out"
    replace_folder(out, {"old": b"1"})
    rename, calls = Path.rename, iter(range(9))

    def interrupted(path: Path, target: Path) -> Path:
        stop = next(calls) == at
        if stop and before:
            raise KeyboardInterrupt
        moved = rename(path, target)
        if stop:
            raise KeyboardInterrupt
        return moved

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_folder(out, {"new": b"2"})
    written = at == 1 and not before
    assert contents(out) == ({"new": b"2"} if written else {"old": b"1"})
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


class Disk:
    """Counts the calls that change files; from one of them on, they fail.

    A disk that is full takes no more bytes and folders, and a broken one nothing.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, full: bool) -> None:
        self.left, self.full = at, full
        for owner, name in (
            *((Path, name) for name in ("mkdir", "write_bytes", "chmod", "rename")),
            (tempfile, "mkdtemp"),
            (shutil, "rmtree"),
        ):
            monkeypatch.setattr(owner, name, self._failing(getattr(owner, name), name))

    @property
    def failed(self) -> bool:
        return self.left < 0

    def _failing(self, call: Any, name: str) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if self.full and name in ("chmod", "rename", "rmtree"):
                return call(*args, **kwargs)
            self.left -= 1
            if not self.failed:
                return call(*args, **kwargs)
            if name == "write_bytes":
                call(args[0], args[1][: len(args[1]) // 2])
            if name == "rmtree" and kwargs.get("ignore_errors"):
                return None
            raise OSError(errno.ENOSPC if self.full else errno.EIO, "no more")

        return counted


@pytest.mark.parametrize("full", [True, False])
def test_what_was_there_stays_wherever_the_disk_fails(tmp_path: Path, full: bool) -> None:
    old, new = {"old": b"1", "b/old": b"22"}, {"a": b"333", "b/c": b"4444"}
    for at in itertools.count():
        folder = tmp_path / str(at)
        out = folder / "out"
        replace_folder(out, old)
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, at, full)
            try:
                replace_folder(out, new)
            except UsageError as err:
                problem = str(err)
            else:
                problem = ""
            failed = disk.failed
        if not failed:
            assert contents(out) == new
            break
        if out.exists():
            assert contents(out) == (old if problem else new)
        else:  # Nothing can be renamed back: the error says where it is.
            (kept,) = folder.glob(".out.old.*/content")
            assert contents(kept) == old
            assert str(kept) in problem
        if full:
            assert problem
            assert [p.name for p in folder.iterdir()] == ["out"]
    assert at >= (5 if full else 8)
