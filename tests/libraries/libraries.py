"""Runs the tests that libraries ship in their wheels on the device and on TensorFlow's CPU.

Exit status: 0 if all that pass on the CPU pass on the device, or differ for a reason that is known,
1 if not, 2 for a wrong command line or a library that is missing.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence

from absl import app, flags

from tests.e2e import child
from tests.keras_suite.comparing import compare_all
from tests.keras_suite.page import NO_IMPORT, Folder, Row
from tests.keras_suite.running import PASSED, RunError, Runner
from tests.keras_suite.suite import Suite, SuiteError
from tests.libraries.installed import installed
from tests.libraries.known import Library, named, suite
from tests.libraries.page import Report, kept, page, row

_PACKAGE = flags.DEFINE_list("package", [], "Libraries, such as gpflow; all if not given.")
_ONLY = flags.DEFINE_list(
    "only", [], "Folders and files of them, such as tests/gpflow/models; all if not given."
)
_PACKAGES = flags.DEFINE_list(
    "packages", [], "Folders with the libraries; pip installs them into the cache if not given."
)
_DEVICE_TYPE = flags.DEFINE_string("device_type", "TFP", "Type of the device.")
_SECONDS = flags.DEFINE_float("seconds", 1800, "Time limit of a process.", lower_bound=1)
_JOBS = flags.DEFINE_integer("jobs", 2, "How many folders run at a time.", lower_bound=1)
_WRITE = flags.DEFINE_string("write", None, "The page to write, such as docs/libraries.md.")
_KEEP = flags.DEFINE_bool(
    "keep", False, "Keep the rows of the page for what does not run, if versions agree."
)
_JSON = flags.DEFINE_bool("json", False, "Print JSON on standard output.")
_VERSION = flags.DEFINE_bool("version", False, "Print the versions of the libraries, and end.")


def _run(
    library: Library, whole: Suite, packages: Sequence[pathlib.Path], before: Sequence[Row]
) -> Report | None:
    """Runs what was asked for of a library; returns None if that and what is kept are nothing."""
    today = str(datetime.datetime.now(datetime.UTC).date())
    part = chosen(whole, _ONLY.value)
    folders: list[Folder] = []
    if part is not None:
        print(f"libraries: {library.name} {whole.version}", file=sys.stderr)
        kind = library.device_type or _DEVICE_TYPE.value
        cpu = Runner(part, None, kind, packages, _SECONDS.value)
        device = Runner(part, child.library(), kind, packages, _SECONDS.value)
        folders = compare_all(cpu, device, _JOBS.value, today, _tell)
    rows = [row(folder, len(part.folders[folder.name]), today) for folder in folders if part]
    ran = {line.name for line in rows}
    rows += [line for line in before if line.name not in ran]
    if not rows:
        return None
    ran = {line.name for line in rows}
    left = [name for name in whole.folders if name not in ran]
    return Report(library.name, whole.version, rows, folders, left)


def chosen(whole: Suite, only: Sequence[str]) -> Suite | None:
    """Returns what `--only` names of a suite; None if that is nothing."""
    inside = [pathlib.PurePath(path) for path in only]
    mine = [path for path in inside if whole.source in (path, *path.parents)]
    if only and not mine:
        return None
    return whole.only([path.relative_to(whole.source).as_posix() for path in mine])


def _tell(done: Sequence[Folder]) -> None:
    """Says which files of the folders do not import."""
    for folder in done[-1:]:
        for test, outcome in folder.cpu.items():
            if outcome.kind == NO_IMPORT:
                print(f"libraries: {test} does not import: {outcome.why}", file=sys.stderr)


def _all(suites: Mapping[Library, Suite], packages: Sequence[pathlib.Path]) -> list[Report]:
    """Runs the libraries; writes the page after each."""
    here = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    tensorflow = importlib.metadata.version("tensorflow-cpu")
    before: dict[tuple[str, str], list[Row]] = {}
    if _KEEP.value and _WRITE.value and (here / _WRITE.value).is_file():
        before = kept((here / _WRITE.value).read_text("utf-8"), tensorflow)
    reports: list[Report] = []
    for library, whole in suites.items():
        report = _run(library, whole, packages, before.pop((library.name, whole.version), []))
        if report is None:
            continue
        reports.append(report)
        if _WRITE.value:
            others = [Report(*key, rows) for key, rows in before.items()]
            shown = sorted([*reports, *others], key=lambda each: each.name)
            today = str(datetime.datetime.now(datetime.UTC).date())
            (here / _WRITE.value).write_text(page(shown, tensorflow, today), "utf-8")
            print(f"libraries: wrote {_WRITE.value}", file=sys.stderr)
    return reports


def main(argv: Sequence[str]) -> int:
    """Runs the tests; returns the exit status."""
    if len(argv) > 1:
        print(f"libraries: unexpected argument {argv[1]}: see --help", file=sys.stderr)
        return 2
    if not child.library().is_file():
        print(f"libraries: {child.library()}: no such file: set TFP_LIBRARY", file=sys.stderr)
        return 2
    here = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    try:
        libraries = named(_PACKAGE.value)
        packages = [(here / folder).absolute() for folder in _PACKAGES.value] or [installed()]
        suites = {library: suite(library, packages) for library in libraries}
        if _VERSION.value:
            print("\n".join(f"{each.name} {suites[each].version}" for each in libraries))
            return 0
        if _ONLY.value and not any(chosen(each, _ONLY.value) for each in suites.values()):
            raise SuiteError(f"no tests in {', '.join(_ONLY.value)}")
        reports = _all(suites, packages)
    except (SuiteError, RunError) as error:
        print(f"libraries: {error}", file=sys.stderr)
        return 2
    differing = {test: why for report in reports for test, why in report.unexplained().items()}
    folders = [folder for report in reports for folder in report.folders]
    passed = sum(folder.count(PASSED) for folder in folders)
    on_device = sum(folder.count(PASSED, device=True) for folder in folders)
    if _JSON.value:
        found = {"passed_on_cpu": passed, "passed_on_device": on_device, "differ": differing}
        print(json.dumps(found, indent=2))
    else:
        print(
            f"{len(folders)} folders: {passed} tests pass on the CPU, {on_device} on the device; "
            f"{len(differing)} differ for no known reason"
        )
    for test, why in differing.items():
        print(f"libraries: {test}: {why}", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    app.run(main)
