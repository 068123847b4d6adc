"""The page with the numbers of the libraries' tests."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Final

from tests.keras_suite.page import NO_IMPORT, Folder, Row
from tests.keras_suite.running import PASSED, SKIPPED
from tests.libraries.known import DIFFERENCES, explained

PAGE: Final = """\
# Tests of libraries

Tests that libraries ship in their wheels, with TensorFlow {tensorflow} and Keras 2 (`tf_keras`).
Each runs once on the device and once on TensorFlow's CPU without the plug-in. A test that passes on
the CPU and fails on the device runs there once more. It *differs* if it fails again. *Explained* is
how many of those the list below has. *Import* is how many files the CPU can import: some need
packages that are missing, or an older TensorFlow. Tests that *fail on both* were mostly written for
an older TensorFlow, Keras or NumPy.

Sonnet's tests run with `TFP_DEVICE_TYPE=GPU`, without which they choose the CPU. Some of them skip
themselves on any GPU, and these do not differ.

Written by `tools/bazel run //tests/libraries -- --write docs/libraries.md`, {date}.
`--package gpflow` runs a library, `--only sonnet/src/nets` a folder or a file. With `--keep`,
folders that do not run this time keep their rows.

{summary}"""

_NUMBERS: Final = (
    "files",
    "import",
    "the CPU passes",
    "the device passes",
    "differ",
    "explained",
    "skipped",
    "fail on both",
)
_DIFFER: Final = _NUMBERS.index("differ")
_EXPLAINED: Final = _NUMBERS.index("explained")
_ROW: Final = re.compile(r"^\| ([\w/]+) \| ([\d |]+) \| (\d{4}-\d\d-\d\d) \|$", re.MULTILINE)
_SECTION: Final = re.compile(r"^## (\S+) (\S+)$", re.MULTILINE)
_TENSORFLOW: Final = re.compile(r"with TensorFlow (\S+) and Keras 2")


@dataclasses.dataclass(frozen=True)
class Report:
    """What ran of a library.

    Attributes:
        name: Its distribution.
        version: Its version.
        rows: A line for each folder, of this run and of those that are kept.
        folders: What ran this time.
        left: Folders without a line.
    """

    name: str
    version: str
    rows: Sequence[Row]
    folders: Sequence[Folder] = ()
    left: Sequence[str] = ()

    def total(self) -> Row:
        """Returns the line of the library, with the latest day."""
        columns = zip(*(row.numbers for row in self.rows), strict=True)
        numbers = tuple(sum(column) for column in columns) or (0,) * len(_NUMBERS)
        date = max((row.date for row in self.rows), default="")
        return Row(f"{self.name} {self.version}", numbers, date)

    def unexplained(self) -> dict[str, str]:
        """Returns the tests that differ for no known reason, with what the device says."""
        return {
            test: folder.on_device(test).why or folder.on_device(test).kind
            for folder in self.folders
            for test in folder.differing()
            if not explained(test)
        }


def row(folder: Folder, files: int, date: str) -> Row:
    """Returns the line of a folder with this many files."""
    ran = {
        test.partition("::")[0] for test, outcome in folder.cpu.items() if outcome.kind != NO_IMPORT
    }
    differing = folder.differing()
    numbers = (
        files,
        len(ran),
        folder.count(PASSED),
        folder.count(PASSED, device=True),
        len(differing),
        sum(explained(test) for test in differing),
        folder.count(SKIPPED),
        len(folder.failing()),
    )
    return Row(folder.name, numbers, date)


def kept(text: str, tensorflow: str) -> dict[tuple[str, str], list[Row]]:
    """Returns the rows of a page by library and version, if it is of this TensorFlow.

    Rows with a difference that is not explained have to run again.
    """
    found = _TENSORFLOW.search(text)
    if found is None or found.group(1) != tensorflow:
        return {}
    rows: dict[tuple[str, str], list[Row]] = {}
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]:
        section = _SECTION.match(part)
        if section is None:
            continue
        for name, numbers, date in _ROW.findall(part):
            line = Row(name, tuple(int(number) for number in numbers.split(" | ")), date)
            if line.numbers[_DIFFER] == line.numbers[_EXPLAINED]:
                rows.setdefault((section.group(1), section.group(2)), []).append(line)
    return rows


def page(reports: Sequence[Report], tensorflow: str, date: str) -> str:
    """Returns the page.

    Args:
        reports: The libraries.
        tensorflow: Version of TensorFlow.
        date: Day of the run.
    """
    summary = _table("library", [report.total() for report in reports])
    text = PAGE.format(tensorflow=tensorflow, date=date, summary=summary)
    ran = {report.name for report in reports}
    known = [
        f"- {', '.join(each.tests)}: {each.reason}" for each in DIFFERENCES if each.library in ran
    ]
    if known:
        text += "\n## What differs, and why\n\n" + "\n".join(known) + "\n"
    differing = {test: why for report in reports for test, why in report.unexplained().items()}
    if differing:
        text += "\n## What differs and is not explained\n\n| test | the device says |\n|---|---|\n"
        text += "".join(f"| {_cell(test)} | {_cell(why)} |\n" for test, why in differing.items())
    for report in reports:
        text += _section(report)
    return text


def _section(report: Report) -> str:
    rows = sorted(report.rows, key=lambda line: line.name)
    text = f"\n## {report.name} {report.version}\n\n" + _table("folder", rows)
    if report.left:
        text += "\nDid not run: " + ", ".join(report.left) + ".\n"
    return text


def _table(first: str, rows: Sequence[Row]) -> str:
    names = (first, *_NUMBERS, "run on")
    head = f"| {' | '.join(names)} |\n|---|{'---:|' * len(_NUMBERS)}---|\n"
    return head + "".join(f"{line}\n" for line in rows)


def _cell(text: str) -> str:
    return text.replace("|", "/")[:160]
