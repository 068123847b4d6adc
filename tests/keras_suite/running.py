"""Runs folders of the suite in processes of their own, on the device and on the CPU."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Final

from tests.keras_suite.suite import Suite

PASSED: Final = "passed"
SKIPPED: Final = "skipped"
_KNOWN: Final = ("passed", "failed", "skipped", "uncollected")
# Of pytest: all passed, some failed, there was no test.
_ENDINGS: Final = (0, 1, 5)
_INSIDE: Final = pathlib.Path(__file__).with_name("inside.py")
_OURS: Final = pathlib.Path(__file__).parents[2]


class RunError(Exception):
    """A process of tests could not begin; the message holds what it said."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a test.

    Attributes:
        kind: `passed`, `failed`, `skipped`, `uncollected` (its file can't be imported), or
            `crashed` (the process ended, or its time was over).
        why: The message of the error, or empty.
    """

    kind: str
    why: str = ""


@dataclasses.dataclass(frozen=True)
class Runner:
    """Where tests run.

    Attributes:
        suite: The suite.
        library: The plug-in; None for TensorFlow's CPU alone.
        device_type: Type of the plug-in's device.
        packages: Folders of further packages that tests import.
        seconds: Time limit of a process.
    """

    suite: Suite
    library: pathlib.Path | None
    device_type: str
    packages: Sequence[pathlib.Path]
    seconds: float

    def run(self, tests: Sequence[str]) -> dict[str, Outcome]:
        """Runs tests; after a crash the files that are left go on in another process.

        Args:
            tests: Files, or names of tests as pytest prints them.

        Raises:
            RunError: If a process ends outside of a test.
        """
        if not self.suite.apart:
            return self._together(tests)
        found: dict[str, Outcome] = {}
        for test in tests:
            try:
                found |= self._together([test])
            except RunError as error:
                # Whatever a file of another package does when it is imported.
                why = str(error).strip().splitlines()[-1]
                name = pathlib.Path(test.partition("::")[0]).relative_to(self.suite.root)
                found[name.as_posix()] = Outcome("uncollected", why)
        return found

    def _together(self, tests: Sequence[str]) -> dict[str, Outcome]:
        found: dict[str, Outcome] = {}
        left = list(tests)
        while left:
            results, culprit = self._once(left)
            found |= results
            if culprit is None:
                break
            left = _after(left, culprit, self.suite.root)
        return found

    def _once(self, tests: Sequence[str]) -> tuple[dict[str, Outcome], str | None]:
        """Runs one process; returns the outcomes and the test in which it crashed, if it did."""
        with tempfile.TemporaryDirectory(prefix="tfp-keras-") as folder:
            report = pathlib.Path(folder) / "report"
            log = pathlib.Path(folder) / "log"
            device_type = self.device_type if self.library else ""
            source = self.suite.source
            given = (_INSIDE, report, device_type, self.suite.root, source, *tests)
            command = [sys.executable, *map(str, given)]
            with log.open("wb") as output:
                try:
                    status = subprocess.run(
                        command,
                        env=self._environment(),
                        cwd=folder,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        timeout=self.seconds,
                        check=False,
                    ).returncode
                except subprocess.TimeoutExpired:
                    status = -1
            if not report.exists():
                tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise RunError(f"status {status} before the first test:\n{tail}")
            found, running = _read(report)
            if running is None:
                if status not in _ENDINGS:
                    tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
                    raise RunError(f"status {status} outside of a test:\n{tail}")
                return found, None
        found[running] = Outcome("crashed", f"status {status}" if status != -1 else "time limit")
        return found, running

    def _environment(self) -> dict[str, str]:
        environment = {
            key: value
            for key, value in os.environ.items()
            if key not in ("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", "TFP_AUTO", "KERAS_BACKEND")
        }
        # Packages may have a folder `tests` as well, which ours would hide.
        others = [entry for entry in sys.path if entry and pathlib.Path(entry) != _OURS]
        path = [self.suite.root, *self.packages, *others]
        environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
        environment |= self.suite.variables
        environment["KERAS_BACKEND"] = "tensorflow"
        environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        if self.library:
            environment["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(self.library)
            environment["TFP_DEVICE_TYPE"] = self.device_type
        else:
            environment["TFP_DISABLE"] = "1"
        return environment


def _read(report: pathlib.Path) -> tuple[dict[str, Outcome], str | None]:
    """Returns the outcomes of a report, and the test that began and did not end."""
    found: dict[str, Outcome] = {}
    running: str | None = None
    for line in report.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        test = entry["test"]
        if entry["kind"] == "begun":
            running = test
            continue
        if running == test:
            running = None
        # A failure in the clean-up of a test that passed stands.
        if entry["kind"] in _KNOWN:
            found[test] = Outcome(entry["kind"], entry["why"])
    return found, running


def _after(tests: Sequence[str], culprit: str, root: pathlib.Path) -> list[str]:
    """Returns the files behind the one in which the process crashed."""
    file = str(root / culprit.partition("::")[0])
    named = [test.partition("::")[0] for test in tests]
    return list(tests[len(named) - named[::-1].index(file) :]) if file in named else []
