"""Copies generated sources into the checkout; files of the folder that are not among them go."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Sequence

from absl import app, flags

_FOLDER = flags.DEFINE_string(
    "folder", None, "The folder, from the checkout's root.", required=True
)


def main(argv: Sequence[str]) -> int:
    """Copies the files that the arguments name; returns the exit status."""
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if workspace is None:
        print("checked_in: run it with `tools/bazel run`", file=sys.stderr)
        return 2
    wanted = {path.name: path.read_bytes() for path in map(pathlib.Path, argv[1:])}
    folder = pathlib.Path(workspace) / _FOLDER.value
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in found.keys() - wanted.keys():
        (folder / name).unlink()
    changed = sorted(name for name in wanted if found.get(name) != wanted[name])
    for name in changed:
        (folder / name).write_bytes(wanted[name])
    gone = len(found.keys() - wanted.keys())
    print(f"{_FOLDER.value}: {len(changed)} of {len(wanted)} files written, {gone} removed")
    return 0


if __name__ == "__main__":
    app.run(main)
