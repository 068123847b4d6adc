"""Formats the whole checkout: Python with ruff, Rust with rustfmt, Starlark with buildifier."""

import os
import pathlib
import subprocess
from collections.abc import Iterable

from absl import app, flags

_RUFF = flags.DEFINE_string("ruff", None, "Path of ruff.", required=True)
_RUSTFMT = flags.DEFINE_string("rustfmt", None, "Path of rustfmt.", required=True)
_BUILDIFIER = flags.DEFINE_string("buildifier", None, "Path of buildifier, if there is one.")


def _tracked(root: pathlib.Path, *patterns: str) -> list[str]:
    """The files of the checkout that git does not ignore, of these patterns."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return [name for name in listed.stdout.splitlines() if (root / name).exists()]


def _run(root: pathlib.Path, program: str, arguments: Iterable[str], files: list[str]) -> int:
    if not files:
        return 0
    path = str(pathlib.Path(program).absolute())
    return subprocess.run([path, *arguments, *files], cwd=root, check=False).returncode


def main(argv: list[str]) -> int:
    """Formats in place; returns non-zero where something is left that only a person can mend."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    root = pathlib.Path(os.environ["BUILD_WORKSPACE_DIRECTORY"])
    python = _tracked(root, "*.py")
    status = [
        _run(root, _RUFF.value, ["check", "--fix", "--no-cache"], python),
        _run(root, _RUFF.value, ["format", "--no-cache"], python),
        _run(root, _RUSTFMT.value, ["--edition=2024"], _tracked(root, "*.rs")),
    ]
    if _BUILDIFIER.value:
        starlark = _tracked(root, "*BUILD", "*WORKSPACE", "*.bzl")
        status.append(_run(root, _BUILDIFIER.value, ["-mode=fix", "-lint=fix"], starlark))
    return max(status)


if __name__ == "__main__":
    app.run(main)
