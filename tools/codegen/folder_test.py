"""A folder is written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import itertools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tools.codegen import folder
from tools.codegen.conversion import UsageError
from tools.codegen.folder import check_own, replace_folder


def contents(root: Path) -> dict[str, bytes]:
    files = (p for p in root.rglob("*") if p.is_file())
    return {str(p.relative_to(root)): p.read_bytes() for p in files}


def test_only_what_a_program_wrote_is_its_own(tmp_path: Path) -> None:
    out = tmp_path / "out"
    check_own(out, b"@made", "maker")
    out.mkdir()
    check_own(out, b"@made", "maker")
    (out / "notes.txt").write_text("@made")
    with pytest.raises(UsageError, match="maker did not make"):
        check_own(out, b"@made", "maker")
    (out / "Cargo.toml").write_text("# @made\n")
    check_own(out, b"@made", "maker")
    (tmp_path / "link").symlink_to(out)
    for other in (tmp_path / "link", out / "Cargo.toml"):
        with pytest.raises(UsageError, match="not a folder"):
            check_own(other, b"@made", "maker")


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


@pytest.fixture(params=["exchange", "renames"])
def exchanges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the system exchanges two names in one step; both are tried."""
    found = bool(request.param == "exchange")
    if not found:
        monkeypatch.setattr(folder, "_exchanged", lambda *_: False)
    return found


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

    monkeypatch.setattr(folder, "_exchanged", lambda *_: False)
    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_folder(out, {"new": b"2"})
    written = at == 1 and not before
    assert contents(out) == ({"new": b"2"} if written else {"old": b"1"})
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


class Dead(BaseException):
    """The process ends."""


class Disk:
    """Counts the calls that change files; from one of them on, they fail.

    A disk that is full takes no more bytes and folders, a broken one nothing, and a process that
    is dead makes no more calls.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, way: str) -> None:
        self.left, self.way = at, way
        for owner, name in (
            *((Path, name) for name in ("mkdir", "write_bytes", "chmod", "rename")),
            (tempfile, "mkdtemp"),
            (shutil, "rmtree"),
            (folder, "_exchanged"),
        ):
            monkeypatch.setattr(owner, name, self._failing(getattr(owner, name), name))

    @property
    def failed(self) -> bool:
        return self.left < 0

    def _failing(self, call: Any, name: str) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if self.way == "full" and name in ("chmod", "rename", "rmtree", "_exchanged"):
                return call(*args, **kwargs)
            self.left -= 1
            if not self.failed:
                return call(*args, **kwargs)
            if name == "write_bytes" and self.left == -1:
                call(args[0], args[1][: len(args[1]) // 2])
            if self.way == "dead":
                raise Dead
            if name == "_exchanged":
                return False
            if name == "rmtree" and kwargs.get("ignore_errors"):
                return None
            raise OSError(errno.ENOSPC if self.way == "full" else errno.EIO, "no more")

        return counted


OLD, NEW = {"old": b"1", "b/old": b"22"}, {"a": b"333", "b/c": b"4444"}


@pytest.mark.parametrize("way", ["full", "broken"])
def test_what_was_there_stays_wherever_the_disk_fails(
    tmp_path: Path, way: str, exchanges: bool
) -> None:
    for at in itertools.count():
        place = tmp_path / str(at)
        out = place / "out"
        replace_folder(out, OLD)
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, at, way)
            try:
                replace_folder(out, NEW)
            except UsageError as err:
                problem = str(err)
            else:
                problem = ""
            failed = disk.failed
        if not failed:
            assert contents(out) == NEW
            break
        if out.exists():
            assert contents(out) == (OLD if problem else NEW)
        else:  # Nothing can be renamed back: the error says where it is.
            assert not exchanges
            (kept,) = place.glob(".out.tfp_*/old")
            assert contents(kept) == OLD
            assert str(kept) in problem
        if way == "full":
            assert problem
            assert [p.name for p in place.iterdir()] == ["out"]
    assert at >= (5 if way == "full" else 8)


def test_a_dead_process_leaves_one_of_both(tmp_path: Path, exchanges: bool) -> None:
    seen = set()
    for at in itertools.count():
        place = tmp_path / str(at)
        out = place / "out"
        replace_folder(out, OLD)
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, at, "dead")
            with contextlib.suppress(Dead):
                replace_folder(out, NEW)
            failed = disk.failed
        if not failed:
            break
        if out.exists():
            assert contents(out) in (OLD, NEW)
            seen.add(len(contents(out).get("old", b"")))
        else:
            assert not exchanges
        # The next one that fails puts back what was there; the next one that does not is whole.
        with pytest.raises(UsageError):
            replace_folder(out, {"a": b"", "a/b": b""})
        assert contents(out) in (OLD, NEW)
        replace_folder(out, NEW)
        assert contents(out) == NEW
        assert [p.name for p in place.iterdir()] == ["out"]
    assert at >= 9
    assert seen == {0, 1}


def test_a_folder_of_a_living_process_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with folder._beside(out) as beside:
        replace_folder(out, OLD)
        assert beside.is_dir()
        (tmp_path / ".out.tfp_file").write_bytes(b"somebody's")
        replace_folder(out, NEW)
        assert beside.is_dir()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".out.tfp_file", "out"]
