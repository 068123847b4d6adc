"""Builds one package of Cargo from files that Bazel names."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence

from absl import app, flags

from tools.package import crate

_OUT = flags.DEFINE_string("out", None, "The package to write.", required=True)
_VERSION = flags.DEFINE_string("version", None, "Its version.", required=True)
_MANIFEST = flags.DEFINE_string("manifest", None, "The crate's Cargo.toml.", required=True)
_WORKSPACE = flags.DEFINE_string("workspace", None, "The repository's Cargo.toml.", required=True)
_LICENCE = flags.DEFINE_string("licence", None, "The licence's text.", required=True)
_FILE = flags.DEFINE_multi_string("file", [], "A file of the package, SOURCE=PATH.")


def main(argv: Sequence[str]) -> int:
    """Builds the package; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    files = {}
    for pair in _FILE.value:
        source, _, target = pair.partition("=")
        files[target] = pathlib.Path(source).read_bytes()
    try:
        data = crate.build(
            pathlib.Path(_MANIFEST.value).read_text(encoding="utf-8"),
            pathlib.Path(_WORKSPACE.value).read_text(encoding="utf-8"),
            _VERSION.value,
            files,
            pathlib.Path(_LICENCE.value).read_bytes(),
        )
    except crate.CrateError as error:
        print(f"crate: {error}", file=sys.stderr)
        return 1
    pathlib.Path(_OUT.value).write_bytes(data)
    return 0


if __name__ == "__main__":
    app.run(main)
