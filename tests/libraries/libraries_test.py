"""A library's tests are found in its wheel, and a difference of the device is told."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.keras_suite.page import Folder, Row
from tests.keras_suite.running import PASSED, Outcome
from tests.keras_suite.suite import SuiteError
from tests.libraries import known, page

MAIN = pathlib.Path(page.__file__).with_name("libraries.py")

# Like gpflow, it imports its tests as a package named `tests`.
FIRST = """
import os
import signal
import tensorflow as tf
from absl.testing import absltest
from tests.gpflow.shared import sum_of

DEVICE = bool(tf.config.list_physical_devices("TFP"))

class CaseTest(absltest.TestCase):
    def testPasses(self): self.assertEqual(sum_of(tf.ones([2])), 2)
    def testReadsFlags(self): self.assertTrue(self.create_tempdir())
    def testSkipsDevices(self):
        if DEVICE: self.skipTest("a device")
    def testIsLegacy(self): self.assertEqual(os.environ["TF_USE_LEGACY_KERAS"], "1")
    def testFailsOnTheDevice(self): self.assertFalse(DEVICE, "device | differs")
    def testFailsOnBoth(self): self.fail()
"""


@pytest.fixture
def packages(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder of packages with a library as small as it gets."""
    folder = tmp_path / "packages"
    tests = folder / "tests" / "gpflow"
    (tests / "models").mkdir(parents=True)
    (tests / "__init__.py").write_text("")
    (tests / "shared.py").write_text("def sum_of(x): return float(sum(x.numpy()))\n")
    (tests / "test_first.py").write_text(FIRST)
    (tests / "models" / "test_second.py").write_text("def test_passes(): pass\n")
    (tests / "models" / "test_third.py").write_text("import package_that_nobody_has\n")
    described = folder / "gpflow-9.9.1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: gpflow\nVersion: 9.9.1\n")
    files = sorted(file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    (described / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    return folder


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    names = ("PATH", "HOME", "TFP_LIBRARY", "TMPDIR", "LD_LIBRARY_PATH")
    inherited = {name: os.environ[name] for name in names if name in os.environ}
    return subprocess.run(
        [sys.executable, MAIN, *arguments],
        env={"PYTHONPATH": ":".join(entry for entry in sys.path if entry), **inherited},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_tests_of_a_wheel_are_found(packages: pathlib.Path) -> None:
    (library,) = known.named(["gpflow"])
    found = known.suite(library, [packages])
    assert found.version == "9.9.1"
    names = {name: [file.name for file in files] for name, files in found.folders.items()}
    assert names == {
        "tests/gpflow": ["test_first.py"],
        "tests/gpflow/models": ["test_second.py", "test_third.py"],
    }
    (missing,) = known.named(["trfl"])
    with pytest.raises(SuiteError, match="trfl is not in"):
        known.suite(missing, [packages])
    with pytest.raises(SuiteError, match="unknown numpy; there are dm-sonnet, gpflow"):
        known.named(["numpy"])
    assert known.named(["tf_agents"]) == known.named(["tf-agents"])
    assert known.named([]) == list(known.LIBRARIES)


def test_differences_are_told_and_written(packages: pathlib.Path, tmp_path: pathlib.Path) -> None:
    written = tmp_path / "page.md"
    given = ["--package=gpflow", f"--packages={packages}", f"--write={written}", "--json"]
    done = _run(*given)
    assert done.returncode == 1, done.stderr
    case = "tests/gpflow/test_first.py::CaseTest::"
    test = case + "testFailsOnTheDevice"
    found = json.loads(done.stdout)
    assert set(found["differ"]) == {test, case + "testSkipsDevices"}
    assert "device | differs" in found["differ"][test]
    assert (found["passed_on_cpu"], found["passed_on_device"]) == (6, 4)
    assert "tests/gpflow/models/test_third.py does not import: ModuleNotFound" in done.stderr
    text = written.read_text()
    assert "| gpflow 9.9.1 | 3 | 2 | 6 | 4 | 2 | 0 | 0 | 1 | " in text
    assert "| tests/gpflow/models | 2 | 1 | 1 | 1 | 0 | 0 | 0 | 0 | " in text
    assert "| tests/gpflow | 1 | 1 | 5 | 3 | 2 | 0 | 0 | 1 | " in text
    assert f"| {test} | AssertionError: True is not false : device / differs |" in text

    # What differs has to run again; the other folder keeps its row.
    done = _run(*given, "--keep", "--only=tests/gpflow/test_first.py")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["passed_on_cpu"] == 5
    assert "| gpflow 9.9.1 | 3 | 2 | 6 | 4 | 2 | 0 | 0 | 1 | " in written.read_text()


def test_rows_are_kept_if_versions_agree() -> None:
    passed, failed = Outcome(PASSED), Outcome("failed", "why")
    folders = [
        Folder("a/b", {"x": passed}, {"x": passed}),
        Folder("c", {"y": passed}, {"y": failed}),
    ]
    rows = [page.row(folder, 1, "2026-01-01") for folder in folders]
    report = page.Report("gpflow", "9.9.1", rows, folders, ["d"])
    text = page.page([report], "2.21.0", "2026-01-01")
    assert "Did not run: d." in text
    assert page.kept(text, "2.20.0") == {}
    line = Row("a/b", (1, 1, 1, 1, 0, 0, 0, 0), "2026-01-01")
    assert page.kept(text, "2.21.0") == {("gpflow", "9.9.1"): [line]}


def test_sonnet_alone_may_skip_on_the_device(packages: pathlib.Path) -> None:
    assert [lib.name for lib in known.LIBRARIES if lib.device_type == "GPU"] == ["dm-sonnet"]
    (library,) = known.named(["gpflow"])
    assert not known.suite(library, [packages]).may_skip
    library = dataclasses.replace(library, device_type="GPU")
    assert known.suite(library, [packages]).may_skip


def test_every_known_difference_is_of_a_library() -> None:
    names = {library.name for library in known.LIBRARIES}
    assert {each.library for each in known.DIFFERENCES} <= names
    assert all(each.tests and each.reason.endswith(".") for each in known.DIFFERENCES)


def test_a_wrong_command_line_is_told(packages: pathlib.Path) -> None:
    done = _run("gpflow")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unexpected argument gpflow: see --help" in done.stderr
    given = ("--package=gpflow", f"--packages={packages}")
    done = _run(*given, "--only=tests/gpflow/nothing")
    assert done.returncode == 2
    assert "no tests in nothing" in done.stderr
    done = _run(*given, "--version")
    assert (done.returncode, done.stdout) == (0, "gpflow 9.9.1\n")
