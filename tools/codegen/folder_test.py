"""A folder is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

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
