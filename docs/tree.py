"""Folders as archives: equal files give equal bytes."""

from __future__ import annotations

import gzip
import os
import pathlib
import tarfile


def pack(folder: pathlib.Path, out: pathlib.Path) -> None:
    """Writes the files of a folder, links followed, without times and owners."""
    with (
        out.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        found = []
        for parent, _, names in os.walk(folder, followlinks=True):
            found += [pathlib.Path(parent, name) for name in names if not name.startswith(".")]
        for path in sorted(found):
            entry = tarfile.TarInfo(str(path.relative_to(folder)))
            entry.size = path.stat().st_size
            entry.mode = 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)


def unpack(archive: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes what `pack` has packed into a folder."""
    with tarfile.open(archive) as opened:
        opened.extractall(folder)
