"""Runs the tests that libraries ship in their wheels on the device and on TensorFlow's CPU.

Exit status: 0 if all that pass on the CPU pass on the device, or differ for a reason that is known;
1 if not; 2 for a wrong command line or a library that is missing.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import json
import os
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence

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
    library: Library,
    whole: Suite,
    packages: Sequence[pathlib.Path],
    before: Sequence[Row],
    write: Callable[[Report], None],
) -> Report | None:
    """Runs what was asked for of a library; returns None if that and what is kept are nothing.

    Args:
        library: The library.
        whole: All of its tests.
        packages: Folders with packages.
        before: Rows to keep.
        write: Called after each folder, so that a run that is ended leaves its page.
    """
    part = chosen(whole, _ONLY.value)
    if part is None:
        return _report(library, whole, whole, [], before) if before else None
    print(f"libraries: {library.name} {whole.version}", file=sys.stderr)
    kind = library.device_type or _DEVICE_TYPE.value
    cpu = Runner(part, None, kind, packages, _SECONDS.value)
    device = dataclasses.replace(cpu, library=child.library())

    def done(folders: list[Folder]) -> None:
        write(_report(library, whole, part, folders, before))

    folders = compare_all(cpu, device, _JOBS.value, _today(), done)
    _tell(folders)
    return _report(library, whole, part, folders, before)


def _report(
    library: Library,
    whole: Suite,
    part: Suite,
    folders: Sequence[Folder],
    before: Sequence[Row],
) -> Report:
    # A folder of which some files ran gets no row.
    complete = [each for each in folders if part.folders[each.name] == whole.folders[each.name]]
    rows = [row(folder, len(whole.folders[folder.name]), _today()) for folder in complete]
    ran = {line.name for line in rows}
    rows += [line for line in before if line.name not in ran]
    ran = {line.name for line in rows}
    left = [name for name in whole.folders if name not in ran]
    return Report(library.name, whole.version, rows, folders, left)


def _today() -> str:
    return str(datetime.datetime.now(datetime.UTC).date())


def chosen(whole: Suite, only: Sequence[str]) -> Suite | None:
    """Returns what `--only` names of a suite; None if that is nothing."""
    inside = [pathlib.PurePath(path) for path in only]
    mine = [path for path in inside if whole.source in (path, *path.parents)]
    if only and not mine:
        return None
    return whole.only([path.relative_to(whole.source).as_posix() for path in mine])


def _tell(done: Sequence[Folder]) -> None:
    """Says which files of the folders do not import."""
    for folder in done:
        for test, outcome in folder.cpu.items():
            if outcome.kind == NO_IMPORT:
                print(f"libraries: {test} does not import: {outcome.why}", file=sys.stderr)


def _all(suites: Mapping[Library, Suite], packages: Sequence[pathlib.Path]) -> list[Report]:
    """Runs the libraries; writes the page after each folder."""
    here = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    tensorflow = importlib.metadata.version("tensorflow-cpu")
    before: dict[tuple[str, str], list[Row]] = {}
    if _KEEP.value and _WRITE.value and (here / _WRITE.value).is_file():
        before = kept((here / _WRITE.value).read_text("utf-8"), tensorflow)
    reports: list[Report] = []

    def write(current: Sequence[Report]) -> None:
        if not _WRITE.value:
            return
        others = [_earlier(*key, rows, packages) for key, rows in before.items()]
        shown = sorted([*reports, *current, *others], key=lambda each: each.name)
        (here / _WRITE.value).write_text(page(shown, tensorflow, _today()), "utf-8")

    for library, whole in suites.items():
        old = before.pop((library.name, whole.version), [])
        report = _run(library, whole, packages, old, lambda current: write([current]))
        if report is not None:
            reports.append(report)
    write([])
    if _WRITE.value:
        print(f"libraries: wrote {_WRITE.value}", file=sys.stderr)
    return reports


def _earlier(
    name: str, version: str, rows: Sequence[Row], packages: Sequence[pathlib.Path]
) -> Report:
    """Returns what ran of a library at another time."""
    (library,) = named([name])
    try:
        whole = suite(library, packages)
    except SuiteError:
        return Report(name, version, rows)
    return _report(library, whole, whole, [], rows)


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
