"""Builds one wheel from files that Bazel names."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence

from absl import app, flags

from tools.package import sbom, wheel

_OUT = flags.DEFINE_string(
    "out", None, "The wheel to write; its name says what it is.", required=True
)
_DISTRIBUTION = flags.DEFINE_string(
    "distribution", None, "Name of the distribution.", required=True
)
_VERSION = flags.DEFINE_string("version", None, "Its version.", required=True)
_TAG = flags.DEFINE_string(
    "tag", None, "Python, ABI and platform, such as `py3-none-any`.", required=True
)
_SUMMARY = flags.DEFINE_string("summary", None, "One line on what it is.", required=True)
_PYTHON = flags.DEFINE_string("python", ">=3.10", "Versions of Python that it serves.")
_REQUIRES = flags.DEFINE_multi_string("requires", [], "A distribution that it needs.")
_SCRIPT = flags.DEFINE_multi_string("script", [], "A console script, NAME=MODULE:FUNCTION.")
_RENAME = flags.DEFINE_multi_string("rename", [], "Moves a Python package, OLD=NEW.")
_PART = flags.DEFINE_multi_string("part", [], "A crate of ours that a library has inside.")
_README = flags.DEFINE_string("readme", None, "Its description in Markdown.")
_LICENCE = flags.DEFINE_multi_string("licence", [], "A licence file.")
_FILE = flags.DEFINE_multi_string("file", [], "A file of the wheel, SOURCE=PATH.")


def _pairs(given: Sequence[str]) -> dict[str, str]:
    return {left: right for left, _, right in (pair.partition("=") for pair in given)}


def main(argv: Sequence[str]) -> int:
    """Builds the wheel; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    described = wheel.Wheel(
        distribution=_DISTRIBUTION.value,
        version=_VERSION.value,
        tag=_TAG.value,
        summary=_SUMMARY.value,
        python=_PYTHON.value,
        requires=_REQUIRES.value,
        scripts=_pairs(_SCRIPT.value),
        readme=pathlib.Path(_README.value).read_text(encoding="utf-8") if _README.value else "",
        licences={
            pathlib.Path(path).name: pathlib.Path(path).read_bytes() for path in _LICENCE.value
        },
        parts=[sbom.Component(name, _VERSION.value, wheel.LICENCE) for name in _PART.value],
    )
    out = pathlib.Path(_OUT.value)
    files = {
        target: pathlib.Path(source).read_bytes() for source, target in _pairs(_FILE.value).items()
    }
    try:
        if out.name != described.file_name():
            raise wheel.WheelError(f"the file is {out.name}, expected {described.file_name()}")
        out.write_bytes(wheel.build(described, wheel.rename_modules(files, _pairs(_RENAME.value))))
    except wheel.WheelError as error:
        print(f"wheel: {_DISTRIBUTION.value}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    app.run(main)
