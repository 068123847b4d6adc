"""Builds in a Bazel of their own, inside of a build."""

from __future__ import annotations

import os
import pathlib
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
