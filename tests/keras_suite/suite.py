"""Tests of a package, such as Keras' own: where they are, and which folder each belongs to."""

from __future__ import annotations

import dataclasses
import importlib.util
import pathlib
import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

SOURCE: Final = pathlib.PurePath("keras", "src")
_VERSION: Final = re.compile(r"__version__ = \"([^\"]+)\"")


class SuiteError(Exception):
    """There is no suite where one was expected; the message says where, and what to do."""


@dataclasses.dataclass(frozen=True)
class Suite:
    """A copy of Keras, or of another package, with its tests.

    Attributes:
        root: The folder that holds `source`.
        version: The version that the copy names.
        folders: The folders below `source`, such as `layers/core`, each with its test files.
        source: The folder of all tests, below `root`.
        variables: Environment variables that its processes need.
        apart: Whether each file needs a process of its own.
        may_skip: Whether a test that passes on the CPU may skip itself on the device.
    """

    root: pathlib.Path
    version: str
    folders: Mapping[str, tuple[pathlib.Path, ...]]
    source: pathlib.PurePath = SOURCE
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    apart: bool = False
    may_skip: bool = False

    def only(self, prefixes: Sequence[str]) -> Suite:
        """Returns the suite of the folders and files that `prefixes` name.

        Args:
            prefixes: Paths below `source`, such as `layers`, `ops` or `ops/nn_test.py`; all of the
                suite if there are none.

        Raises:
            SuiteError: If one of them names nothing.
        """
        if not prefixes:
            return self
        wanted = [pathlib.PurePath(prefix) for prefix in prefixes]
        used = set()
        folders = {}
        for folder, files in self.folders.items():
            kept = []
            for file in files:
                inner = file.relative_to(self.root / self.source)
                named = [path for path in wanted if path in (inner, *inner.parents)]
                used.update(named)
                if named:
                    kept.append(file)
            if kept:
                folders[folder] = tuple(kept)
        unknown = [str(path) for path in wanted if path not in used]
        if unknown:
            known = ", ".join(self.folders)
            raise SuiteError(f"no tests in {', '.join(unknown)}; there are {known}")
        return dataclasses.replace(self, folders=folders)


def find(path: pathlib.Path | None, scratch: pathlib.Path) -> Suite:
    """Finds the suite.

    Args:
        path: A folder of Keras' repository or sources, or an archive of one (.zip, .whl, .tar and
            its compressed kinds); None for the tests that the installed package carries.
        scratch: An empty folder, into which an archive is unpacked.

    Raises:
        SuiteError: If there are no tests.
    """
    if path is None:
        found = importlib.util.find_spec("keras")
        if found is None or found.origin is None:
            raise SuiteError("Keras is not installed: give --suite")
        return _described(pathlib.Path(found.origin).parents[1])
    if not path.exists():
        raise SuiteError(f"{path}: there is no such file or folder")
    if path.is_file():
        _unpack(path, scratch)
        path = scratch
    for root in _roots(path):
        return _described(root)
    raise SuiteError(f"{path}: no folder {SOURCE} in it, nor one level below: is it Keras 3?")


def _roots(path: pathlib.Path) -> Iterator[pathlib.Path]:
    for root in (path, *sorted(entry for entry in path.iterdir() if entry.is_dir())):
        if (root / SOURCE).is_dir():
            yield root


def _unpack(archive: pathlib.Path, scratch: pathlib.Path) -> None:
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as content:
                content.extractall(scratch)
        else:
            with tarfile.open(archive) as content:
                content.extractall(scratch, filter="data")
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise SuiteError(f"{archive}: it can't be unpacked: {error}") from error


def _described(root: pathlib.Path) -> Suite:
    source = root / SOURCE
    folders: dict[str, list[pathlib.Path]] = {}
    for file in sorted(source.rglob("*_test.py")):
        inner = file.parent.relative_to(source).as_posix()
        folders.setdefault(inner, []).append(file)
    if not folders:
        raise SuiteError(f"{source}: no file *_test.py in it: take the source archive of Keras")
    named = _VERSION.search((source / "version.py").read_text(encoding="utf-8"))
    version = named.group(1) if named else "of no known version"
    return Suite(root, version, {name: tuple(files) for name, files in folders.items()})
