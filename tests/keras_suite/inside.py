"""Runs test files of a package in this process and appends a line of JSON for every result.

Started by `running.py`: `python inside.py REPORT DEVICE_TYPE ROOT SOURCE TEST...`. An empty type
means that there may be no device but the CPU.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys
import types
from typing import Any, Final

import absl.flags
import pytest

KERAS: Final = "keras/src"
# It loads models in forks of a process that has used its device. TensorFlow's threads, for which a
# copy to a device waits, are not in a fork. Keras skips the test on a GPU.
LEFT_OUT: Final = "keras/src/saving/saving_lib_test.py::SavingTest::test_load_model_concurrently"


class Recorder:
    """A pytest plug-in that writes what became of each test as soon as it is known."""

    def __init__(self, report: pathlib.Path) -> None:
        """Writes into `report`, a file that it makes."""
        self._file = report.open("a", encoding="utf-8")

    def write(self, kind: str, test: str, why: str = "") -> None:
        """Appends one line, in which a place in memory is `0x`: each process has its own."""
        test = re.sub(r"0x[0-9a-f]{6,}", "0x", test)
        self._file.write(json.dumps({"kind": kind, "test": test, "why": why[-300:]}) + "\n")
        self._file.flush()

    def pytest_configure(self, config: pytest.Config) -> None:
        """Makes the marker known that Keras' tests carry."""
        config.addinivalue_line("markers", "requires_trainable_backend: it trains")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Writes files that can't be imported."""
        if report.failed:
            self.write("uncollected", report.nodeid, _last_line(report.longreprtext))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Writes the test that begins, which names the culprit of a crash."""
        self.write("begun", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Writes the outcome of a phase of a test: `passed`, `failed` or `skipped`.

        One that is expected to fail is `skipped`: whether it does may be chance.
        """
        outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
        if report.when == "call" or outcome != "passed":
            why = "" if outcome == "passed" else _last_line(report.longreprtext)
            self.write(outcome, report.nodeid, why)


def _last_line(text: str) -> str:
    """Returns the message of an error: pytest marks its lines with an E."""
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    lines = [line for line in lines if line] or text.strip().splitlines()
    return lines[0] if lines else ""


def shared(backend: str) -> types.ModuleType:
    """Returns what tests import from the `conftest` of Keras' repository, which packages lack."""
    module = types.ModuleType("conftest")

    def skip_if_backend(given: str, reason: str) -> Any:
        return pytest.mark.skipif(backend == given, reason=reason)

    vars(module)["skip_if_backend"] = skip_if_backend
    return module


def imported_from(root: str) -> bool:
    """Says whether Keras is the one of this folder; tells it if not."""
    import keras

    if pathlib.Path(keras.__file__).is_relative_to(root):
        return True
    print(f"{keras.__file__} is imported, not the Keras of {root}", file=sys.stderr)
    return False


def main(report: str, device_type: str, root: str, source: str, *tests: str) -> int:
    """Runs the tests; returns pytest's exit status, or 70 if the devices are not the expected."""
    # TensorFlow sets it to 1.
    graphs = os.environ.get("TF2_BEHAVIOR") == "0"
    import tensorflow as tf

    kinds = {device.device_type for device in tf.config.list_physical_devices()}
    expected = {"CPU", device_type} - {""}
    if kinds != expected:
        print(f"devices {sorted(kinds)}, expected {sorted(expected)}", file=sys.stderr)
        return 70
    if graphs:
        tf.compat.v1.disable_v2_behavior()
    # Programs that absl starts read their flags first, and so do many tests.
    absl.flags.FLAGS.mark_as_parsed()
    options = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    top = pathlib.Path(root)
    if source != KERAS:
        options += ["--import-mode=importlib", "-o", "consider_namespace_packages=true"]
    elif not (top / "conftest.py").exists():
        import keras

        sys.modules["conftest"] = shared(keras.backend.backend())
        # Folders above may be packages, too, which pytest would import.
        top /= "keras"
    if source == KERAS and not imported_from(root):
        return 70
    options += ["--rootdir", root, "--confcutdir", str(top), "--deselect", LEFT_OUT]
    return int(pytest.main([*options, "-c", "/dev/null", *tests], [Recorder(pathlib.Path(report))]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
