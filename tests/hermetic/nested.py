"""Builds in a Bazel of their own, inside of a build."""

from __future__ import annotations

import os
import pathlib
import shutil
from typing import Final

FETCHED: Final = ("crates", "pip", "pip_*", "pypi__*")
"""Repositories that come over the network. The nested builds use the copies that this build has."""


def overrides() -> list[str]:
    """Options that point a nested build at the repositories that this build has fetched."""
    external = pathlib.Path(os.environ["FETCHED_MARKER"]).resolve()
    while external.name != "external":
        external = external.parent
    return [
        f"--override_repository={repository.name}={repository}"
        for pattern in FETCHED
        for repository in sorted(external.glob(pattern))
        if repository.is_dir()
    ]


def checkout(folder: pathlib.Path) -> pathlib.Path:
    """Copies the repository's source files into a folder; returns the folder."""
    tree = pathlib.Path(os.environ["CHECKOUT"]).resolve()
    for source in tree.rglob("*"):
        if source.is_file():
            copy = folder / str(source.relative_to(tree)).removesuffix(".source")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    return folder


def environment() -> dict[str, str]:
    """Returns the variables of this process that say nothing of the Bazel around it."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TEST_", "BAZEL_", "RUNFILES", "PYTHON", "XML_"))
    }
