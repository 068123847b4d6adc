"""The cache folder: versioned folders that appear whole, and the lock around their making.

``<cache>/<name>`` is either absent or complete: it is made as ``<cache>/stage/<pid>-<name>`` and
renamed. A stamp inside lists every file with its size and sha256, so that damage is found.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.provision.command import disk_full, free_bytes
from tools.provision.messages import StartError, megabytes, say

STAMP = ".tfp-stamp.json"
FORMAT = 1


@dataclass(frozen=True)
class Cache:
    """The cache folder.

    Attributes:
        root: its absolute path.
    """

    root: Path

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Holds the one lock under which the cache changes; says so if it has to wait.

        The lock belongs to the process: it goes when the process ends, however it ends.
        Half-done folders of interrupted starts are removed once it is held.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise trouble_of(error, "opening the cache folder", str(self.root)) from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.pread(handle, 20, 0).decode(errors="replace").strip() or "unknown"
                say(f"waiting for another start (process {holder}) that is filling {self.root}")
                fcntl.flock(handle, fcntl.LOCK_EX)
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
            shutil.rmtree(self.root / "stage", ignore_errors=True)
            yield
        finally:
            os.close(handle)

    def make(
        self,
        name: str,
        step: str,
        need_bytes: int,
        fill: Callable[[Path, Path], None],
        check: Callable[[Path], None] | None = None,
    ) -> Path:
        """Makes ``<cache>/<name>`` unless it is there and sound, and gives its path.

        Call it under the lock.

        Args:
            name: the folder's name; holds the version of what is inside.
            step: what this is, for messages.
            need_bytes: free space wanted before the work starts.
            fill: fills its first argument, a fresh folder that will be renamed to its second.
            check: tries the finished folder out, also one that was there; raises StartError if
                it does not work, and the folder is dropped.

        Raises:
            StartError: the disk is full, or ``fill`` or ``check`` failed; nothing is left behind.
        """
        final = self.root / name
        if final.exists():
            damage = self.damage(final)
            if damage is None:
                self._try(final, check)
                return final
            say(f"{final} is damaged ({damage}); making it again")
            self.drop(final)
        if free_bytes(str(self.root)) < need_bytes:
            raise StartError(
                step,
                f"{megabytes(free_bytes(str(self.root)))} are free where {self.root} lies and "
                f"{megabytes(need_bytes)} are needed",
                "free some space there or set TFP_CACHE to a folder on another disk",
            )
        stage = self.root / "stage" / f"{os.getpid()}-{name}"
        try:
            stage.mkdir(parents=True)
            fill(stage, final)
            write_stamp(stage, final)
            stage.rename(final)
            self._try(final, check)
        except OSError as error:
            raise trouble_of(error, step, str(self.root)) from error
        finally:
            shutil.rmtree(stage, ignore_errors=True)
        return final

    def _try(self, final: Path, check: Callable[[Path], None] | None) -> None:
        if check is None:
            return
        try:
            check(final)
        except StartError:
            self.drop(final)
            raise

    def drop(self, folder: Path) -> None:
        """Removes a finished folder; under its name it stops to exist immediately."""
        grave = self.root / "stage" / f"{os.getpid()}-drop-{time.monotonic_ns()}"
        grave.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(grave)
        shutil.rmtree(grave, ignore_errors=True)

    def damage(self, folder: Path) -> str | None:
        """Compares a finished folder with its stamp, contents included.

        Returns:
            None if it is sound, else what is wrong in a few words.
        """
        stamp = read_stamp(folder)
        if stamp is None:
            return "its stamp is missing, cannot be read or was made for another place"
        for name, entry in stamp.items():
            path = folder / name
            try:
                if isinstance(entry, str):
                    if str(path.readlink()) != entry:
                        return f"{name} points elsewhere"
                    continue
                size, digest = entry
                found = path.lstat().st_size
                if found != size:
                    return f"{name} has {found} bytes, expected {size}"
                if sha256(path) != digest:
                    return f"{name} has other contents"
            except OSError as error:
                return f"{name}: {error.strerror}"
        return None


def trouble_of(error: OSError, step: str, folder: str) -> StartError:
    """An operating system error as a failure that says what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full(step, folder)
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StartError(
            step,
            f"{error.strerror}{where}",
            f"make {folder} writable for you or set TFP_CACHE to a folder that is",
        )
    return StartError(step, f"{error.strerror}{where}", f"remove {folder} and start again")


def sha256(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def write_stamp(folder: Path, final: Path) -> None:
    """Writes the stamp of a finished folder: every file and link below it, and its place."""
    entries: dict[str, str | tuple[int, str]] = {}
    for parent, folders, files in os.walk(folder):
        for name in sorted(files) + sorted(folders):
            path = Path(parent) / name
            key = str(path.relative_to(folder))
            if path.is_symlink():
                entries[key] = str(path.readlink())
            elif path.is_file():
                entries[key] = (path.stat().st_size, sha256(path))
    stamp = {"format": FORMAT, "place": str(final), "files": entries}
    write_whole(folder / STAMP, json.dumps(stamp, separators=(",", ":")))


def read_stamp(folder: Path) -> dict[str, str | tuple[int, str]] | None:
    """The entries of a stamp: a link's target or a file's size and sha256; None if unreadable."""
    try:
        data = json.loads((folder / STAMP).read_text())
        if data["format"] != FORMAT or data["place"] != str(folder):
            return None
        return {
            name: entry if isinstance(entry, str) else (int(entry[0]), str(entry[1]))
            for name, entry in data["files"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def write_whole(path: Path, text: str) -> None:
    """Writes a text file so that nobody ever reads half of it."""
    write_bytes_whole(path, text.encode())


def write_bytes_whole(path: Path, data: bytes) -> None:
    """Writes a file so that nobody ever reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def marks(paths: Sequence[str]) -> list[tuple[str, int, int]]:
    """Path, size and modification time of each file: the cheap check of every start."""
    found = []
    for path in paths:
        info = Path(path).stat()
        found.append((path, info.st_size, info.st_mtime_ns))
    return found
