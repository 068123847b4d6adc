"""Runs Keras' own tests on the device and on TensorFlow's CPU, and compares them test by test.

Exit status: 0 if all that pass on the CPU pass on the device, 1 if not, 2 for a wrong command line.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import json
import os
import pathlib
import sys
import tempfile
from collections.abc import Sequence

from absl import app, flags

from tests.e2e import child
from tests.keras_suite.comparing import compare_all
from tests.keras_suite.page import Folder, Row, kept, page
from tests.keras_suite.running import PASSED, RunError, Runner
from tests.keras_suite.suite import SOURCE, Suite, SuiteError, find

_SUITE = flags.DEFINE_string(
    "suite", None, "Folder or archive of Keras; the tests of the installed package if not given."
)
_ONLY = flags.DEFINE_list("only", [], "Folders and files below keras/src; all if not given.")
_PACKAGES = flags.DEFINE_list(
    "packages", [], "Folders with further packages that tests import, such as JAX."
)
_DEVICE_TYPE = flags.DEFINE_string("device_type", "TFP", "Type of the device.")
_SECONDS = flags.DEFINE_float("seconds", 3600, "Time limit of a folder.", lower_bound=1)
_JOBS = flags.DEFINE_integer("jobs", 2, "How many folders run at a time.", lower_bound=1)
_WRITE = flags.DEFINE_string("write", None, "The page to write, such as docs/keras-tests.md.")
_KEEP = flags.DEFINE_bool(
    "keep", False, "Keep the rows of the page for folders that do not run, if versions agree."
)
_JSON = flags.DEFINE_bool("json", False, "Print JSON on standard output.")


def _today() -> str:
    return str(datetime.datetime.now(datetime.UTC).date())


def _before(whole: Suite, path: pathlib.Path) -> list[Row]:
    """Returns the rows that must be kept."""
    if not _KEEP.value or not path.is_file():
        return []
    tensorflow = importlib.metadata.version("tensorflow-cpu")
    return kept(path.read_text(encoding="utf-8"), whole.version, tensorflow)


def _write(
    whole: Suite, folders: Sequence[Folder], before: Sequence[Row], path: pathlib.Path
) -> None:
    ran = {folder.name for folder in folders}
    before = [row for row in before if row.name not in ran]
    ran |= {row.name for row in before}
    left = [name for name in whole.folders if name not in ran]
    tensorflow = importlib.metadata.version("tensorflow-cpu")
    text = page(folders, left, whole.version, tensorflow, _today(), before)
    path.write_text(text, encoding="utf-8")


def main(argv: Sequence[str]) -> int:
    """Runs the suite; returns the exit status."""
    if len(argv) > 1:
        print(f"keras_suite: unexpected argument {argv[1]}: see --help", file=sys.stderr)
        return 2
    here = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    library = child.library()
    if not library.is_file():
        print(f"keras_suite: {library}: no such file: set TFP_LIBRARY", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="tfp-keras-suite-") as scratch:
        try:
            path = here / _SUITE.value if _SUITE.value else None
            whole = find(path, pathlib.Path(scratch))
            suite = whole.only(_ONLY.value)
            packages = [(here / folder).absolute() for folder in _PACKAGES.value]
            cpu = Runner(suite, None, _DEVICE_TYPE.value, packages, _SECONDS.value)
            device = dataclasses.replace(cpu, library=library)

            before = _before(whole, here / _WRITE.value) if _WRITE.value else []

            def write(done: list[Folder]) -> None:
                if _WRITE.value:
                    _write(whole, done, before, here / _WRITE.value)

            folders = compare_all(cpu, device, _JOBS.value, _today(), write)
        except (SuiteError, RunError) as error:
            print(f"keras_suite: {error}", file=sys.stderr)
            return 2
    if _WRITE.value:
        print(f"keras_suite: wrote {_WRITE.value}", file=sys.stderr)
    differing = {
        test: folder.on_device(test).why for folder in folders for test in folder.differing()
    }
    passed = sum(folder.count(PASSED) for folder in folders)
    if _JSON.value:
        print(json.dumps({"passed_on_cpu": passed, "differ": differing}, indent=2))
    else:
        on_device = sum(folder.count(PASSED, device=True) for folder in folders)
        print(
            f"Keras {suite.version}, {len(folders)} folders of {SOURCE}: {passed} tests pass on "
            f"the CPU, {on_device} on the device; {len(differing)} differ"
        )
    for test, why in differing.items():
        print(f"keras_suite: {test}: {why}", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    app.run(main)
