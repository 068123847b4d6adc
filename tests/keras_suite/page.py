"""The page with the numbers of Keras' own tests."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Final

from tests.keras_suite.running import PASSED, SKIPPED, Outcome

NO_IMPORT: Final = "uncollected"

PAGE: Final = """\
# Keras' own tests

The tests of Keras {keras} with TensorFlow {tensorflow}, once on the device and once on TensorFlow's
CPU without the plug-in. A test that passes on the CPU and fails on the device runs there once more,
alone. It counts as a difference if it fails again. *Skipped* tests ask for another backend, for a
GPU, or for a package that is missing. A file that imports such a package has no number.
`test_load_model_concurrently` runs on neither: it forks a process that has used its device, and the
fork hangs, because TensorFlow's own threads are not in it. Keras skips the test on a GPU.

Written by `tools/bazel run //tests/keras_suite -- --write docs/keras-tests.md`, {date}.
`--suite FOLDER_OR_ARCHIVE` runs another copy of Keras, and `--packages FOLDER` adds packages. With
`--keep`, folders that do not run this time keep their rows.

| folder | the CPU passes | the device passes | differ | skipped | fail on both | run on |
|---|---:|---:|---:|---:|---:|---|
{rows}
"""

_ROW: Final = re.compile(r"^\| ([\w/]+) \| (.*) \| (\d{4}-\d\d-\d\d) \|$", re.MULTILINE)
_VERSIONS: Final = re.compile(r"of Keras (\S+) with TensorFlow (\S+),")

LEFT: Final = "\n## Folders that did not run\n\n{folders}\n"


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes:
        name: The folder.
        numbers: What the columns count.
        date: Day of the run.
    """

    name: str
    numbers: tuple[int, ...]
    date: str

    def __str__(self) -> str:
        """Returns the line."""
        return f"| {self.name} | {' | '.join(map(str, self.numbers))} | {self.date} |"


def kept(text: str, keras: str, tensorflow: str) -> list[Row]:
    """Returns the folders of a page without a difference, if it is one of these versions."""
    found = _VERSIONS.search(text)
    if found is None or found.groups() != (keras, tensorflow):
        return []
    rows = [
        Row(name, tuple(int(number) for number in numbers.split(" | ")), date)
        for name, numbers, date in _ROW.findall(text)
    ]
    return [row for row in rows if row.name != "all" and row.numbers[_DIFFER] == 0]


_DIFFER: Final = 2


@dataclasses.dataclass(frozen=True)
class Folder:
    """A folder of tests, on the CPU and on the device.

    Attributes:
        name: Its path below `keras/src`.
        cpu: What became of each test on the CPU.
        device: The same on the device.
        may_skip: Whether a test that passes on the CPU may skip itself on the device.
    """

    name: str
    cpu: Mapping[str, Outcome]
    device: Mapping[str, Outcome]
    may_skip: bool = False

    def differing(self) -> list[str]:
        """Returns the tests that pass on the CPU and not on the device."""
        same = (PASSED, SKIPPED) if self.may_skip else (PASSED,)
        return [
            test
            for test, outcome in self.cpu.items()
            if outcome.kind == PASSED and self.on_device(test).kind not in same
        ]

    def on_device(self, test: str) -> Outcome:
        """Returns what became of a test on the device; one that is missing did not run."""
        return self.device.get(test, Outcome("missing"))

    def failing(self) -> list[str]:
        """Returns the tests that fail on the CPU, too."""
        known = (PASSED, SKIPPED, NO_IMPORT)
        return [test for test, outcome in self.cpu.items() if outcome.kind not in known]

    def count(self, kind: str, *, device: bool = False) -> int:
        """Returns how many tests have an outcome."""
        outcomes = self.device if device else self.cpu
        return sum(outcome.kind == kind for outcome in outcomes.values())

    def row(self, date: str) -> Row:
        """Returns the line of the table."""
        numbers = (
            self.count(PASSED),
            self.count(PASSED, device=True),
            len(self.differing()),
            self.count(SKIPPED),
            len(self.failing()),
        )
        return Row(self.name, numbers, date)


def page(
    folders: Sequence[Folder],
    left: Sequence[str],
    keras: str,
    tensorflow: str,
    date: str,
    before: Sequence[Row] = (),
) -> str:
    """Returns the page.

    Args:
        folders: What ran.
        left: The folders that did not run.
        keras: Version of the suite.
        tensorflow: Version of TensorFlow.
        date: Day of the run.
        before: Rows of folders that ran earlier.
    """
    rows = [*(folder.row(date) for folder in folders), *before]
    rows.sort(key=lambda row: row.name)
    columns = zip(*(row.numbers for row in rows), strict=True)
    total = Row("all", tuple(sum(column) for column in columns) or (0,) * 5, date)
    merged = Folder(
        "all",
        {test: outcome for folder in folders for test, outcome in folder.cpu.items()},
        {test: outcome for folder in folders for test, outcome in folder.device.items()},
    )
    text = PAGE.format(
        keras=keras,
        tensorflow=tensorflow,
        date=date,
        rows="\n".join(map(str, (total, *rows))),
    )
    if left:
        text += LEFT.format(folders="\n".join(f"- `{name}`" for name in left))
    differing = [
        f"| `{test}` | {_cell(merged.on_device(test).why)} |" for test in merged.differing()
    ]
    if differing:
        text += "\n## Tests that differ\n\n| test | the device says |\n|---|---|\n"
        text += "\n".join(differing) + "\n"
    reasons = collections.Counter(
        outcome.why for outcome in merged.cpu.values() if outcome.kind == NO_IMPORT
    )
    if reasons:
        text += "\n## Files that do not import here\n\n| files | why |\n|---:|---|\n"
        text += "\n".join(f"| {n} | {_cell(why)} |" for why, n in reasons.most_common()) + "\n"
    return text


def _cell(text: str) -> str:
    return text.replace("|", "/")[:160]
