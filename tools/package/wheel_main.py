"""Builds one wheel from files that Bazel names."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence

from absl import app, flags

from tools.package import project, sbom, wheel

_OUT = flags.DEFINE_string(
    "out", None, "The wheel to write; its name says what it is.", required=True
)
_VERSION = flags.DEFINE_string("version", None, "Its version.", required=True)
_TAG = flags.DEFINE_string(
    "tag", None, "Python, ABI and platform, such as `py3-none-any`.", required=True
)
_PROJECT = flags.DEFINE_string("project", None, "TOML file with [project].", required=True)
_RENAME = flags.DEFINE_multi_string("rename", [], "Moves a Python package, OLD=NEW.")
_PART = flags.DEFINE_multi_string(
    "part", [], "A crate that a library has inside: its name, or NAME VERSION LICENCE."
)
_README = flags.DEFINE_string("readme", None, "Its description in Markdown.", required=True)
_LICENCE = flags.DEFINE_multi_string("licence", [], "A licence file.")
_FILE = flags.DEFINE_multi_string("file", [], "A file of the wheel, SOURCE=PATH.")


def _pairs(given: Sequence[str]) -> dict[str, str]:
    return {left: right for left, _, right in (pair.partition("=") for pair in given)}


def _part(text: str) -> sbom.Component:
    """A crate of ours, or of others: then with version and licence."""
    name, _, rest = text.partition(" ")
    version, _, licence = rest.partition(" ")
    if not licence:
        return sbom.Component(name, _VERSION.value, wheel.LICENCE)
    return sbom.Component(name, version, licence, f"pkg:cargo/{name}@{version}")


def main(argv: Sequence[str]) -> int:
    """Builds the wheel; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    out = pathlib.Path(_OUT.value)
    files = {
        target: pathlib.Path(source).read_bytes() for source, target in _pairs(_FILE.value).items()
    }
    try:
        described = project.described(
            pathlib.Path(_PROJECT.value).read_text(encoding="utf-8"),
            version=_VERSION.value,
            tag=_TAG.value,
            readme=pathlib.Path(_README.value).read_text(encoding="utf-8"),
            licences={
                pathlib.Path(path).name: pathlib.Path(path).read_bytes() for path in _LICENCE.value
            },
            parts=[_part(text) for text in _PART.value],
        )
        if out.name != described.file_name():
            raise wheel.WheelError(f"the file is {out.name}, expected {described.file_name()}")
        out.write_bytes(wheel.build(described, wheel.rename_modules(files, _pairs(_RENAME.value))))
    except wheel.WheelError as error:
        print(f"wheel: {out.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    app.run(main)
