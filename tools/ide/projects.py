"""Settings of pyright, clangd and VS Code, as data."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

PYTHON_ROOTS: Final = (".", "plugin/python")
"""Folders of the checkout from which Python packages are imported."""

RUST_TARGETS: Final = (
    "//bindings/...",
    "//converters/runtime/...",
    "//examples/...",
    "//kernels/...",
    "//plugin/...",
    "//tests/sdk/...",
)
"""Where crates are that people edit."""


class SettingsError(Exception):
    """A file that is there can't be changed without losing what someone wrote."""


def pyright(packages: Sequence[pathlib.Path], python_version: str) -> dict[str, Any]:
    """Settings of pyright, and of Pylance, which reads the same file.

    Args:
        packages: Folders of the wheels that Bazel has unpacked.
        python_version: The Python that the checkout is written for, such as `3.11`.
    """
    return {
        "include": ["converters", "docs", "examples", "plugin/python", "tests", "tools"],
        "exclude": ["**/__pycache__", "bazel-*"],
        "extraPaths": [*PYTHON_ROOTS, *map(str, packages)],
        "pythonVersion": python_version,
        # mypy judges (`//tools/build:python_lint_test`); pyright reads stubs that it does not.
        "typeCheckingMode": "off",
        "reportMissingImports": "warning",
    }


def compile_flags(includes: Sequence[pathlib.Path]) -> str:
    """Flags for every C file of the checkout, one a line, as clangd reads them.

    Args:
        includes: Folders of headers.
    """
    flags = ["-std=c11", "-Wall", "-Wextra", *(f"-I{folder}" for folder in includes)]
    return "".join(f"{flag}\n" for flag in flags)


def vscode(rust_project: str) -> dict[str, Any]:
    """Settings of VS Code; the extensions read the files beside them.

    Args:
        rust_project: Path of `rust-project.json` from the root of the checkout.
    """
    return {
        "rust-analyzer.linkedProjects": [rust_project],
        # Cargo knows no crate of a Bazel checkout as a whole; `bazel build` is the check.
        "rust-analyzer.checkOnSave": False,
        "rust-analyzer.rustfmt.extraArgs": ["--edition=2024"],
        "files.watcherExclude": {"**/bazel-*/**": True},
        "search.exclude": {"bazel-*": True},
        "editor.rulers": [100],
    }


def merged(before: str, changes: Mapping[str, Any], path: str) -> str:
    """Puts settings into a file of JSON and keeps all others.

    Args:
        before: The file's text; empty if it is not there.
        changes: The settings to put in.
        path: Its path, for errors.

    Raises:
        SettingsError: If the text is not a JSON object, such as one with comments.
    """
    try:
        settings = json.loads(before) if before.strip() else {}
    except json.JSONDecodeError as error:
        raise SettingsError(
            f"{path}:{error.lineno}: {error.msg}, expected JSON without comments; "
            "move the file away, or put these in by hand:\n" + json.dumps(changes, indent=2)
        ) from error
    if not isinstance(settings, dict):
        raise SettingsError(f"{path}: found {type(settings).__name__}, expected a JSON object")
    return json.dumps({**settings, **changes}, indent=2) + "\n"


def outputs(events: str) -> list[str]:
    """Returns the paths of all files that a build made, from Bazel's folder of outputs on.

    Args:
        events: Build events, a JSON object per line.
    """
    found: dict[str, None] = {}
    for event in map(json.loads, events.splitlines()):
        if "namedSet" in event["id"]:
            for file in event["namedSetOfFiles"].get("files", []):
                found["/".join([*file.get("pathPrefix", []), file["name"]])] = None
    return list(found)
