"""The suite is found in folders and archives, and a difference of the device is told."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tarfile
import zipfile

import pytest

from tests.keras_suite import page, running, suite

MAIN = pathlib.Path(page.__file__).with_name("keras_suite.py")

TESTS = """
import os
import signal
import pytest
import tensorflow as tf
from conftest import skip_if_backend

DEVICE = bool(tf.config.list_physical_devices("TFP"))

@pytest.mark.parametrize("x", [0], ids=[repr(object())])
def test_named_by_its_place(x): pass
@pytest.mark.parametrize("x", [0], ids=[repr(object())])
def test_differs_by_its_place(x): assert not DEVICE
@pytest.mark.xfail
def test_may_fail(): assert not DEVICE
def test_passes(): assert (tf.ones([2]) + 1).numpy().tolist() == [2, 2]
def test_fails_on_both(): assert False
def test_fails_on_the_device(): assert not DEVICE, "device | differs"
@skip_if_backend("tensorflow", "not here")
def test_is_skipped(): pass
def test_ends_the_process():
    if DEVICE: os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def keras(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of Keras as small as it gets, with nine tests and a file that can't be imported."""
    source = tmp_path / "keras-9.9" / "keras" / "src"
    for name in ("layers", "losses"):
        (source / name).mkdir(parents=True)
        (source / name / "__init__.py").write_text("")
    (source / "__init__.py").write_text("")
    (source / "version.py").write_text('__version__ = "9.9.1"\n')
    (source.parent / "__init__.py").write_text(
        "class backend:\n    backend = staticmethod(lambda: 'tensorflow')\n"
    )
    (source / "layers" / "a_test.py").write_text(TESTS)
    (source / "layers" / "b_test.py").write_text("def test_after_the_crash(): pass\n")
    (source / "losses" / "c_test.py").write_text("import package_that_nobody_has\n")
    # As rules_python writes it beside the packages of a wheel.
    (source.parents[1] / "__init__.py").write_text("__path__ = [*__path__]\n")
    return tmp_path / "keras-9.9"


def test_a_suite_is_a_folder_or_an_archive(keras: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with tarfile.open(tmp_path / "keras.tar.gz", "w:gz") as tar:
        tar.add(keras, "keras-9.9")
    with zipfile.ZipFile(tmp_path / "keras.whl", "w") as archive:
        for file in keras.rglob("*.py"):
            archive.write(file, file.relative_to(keras))
    for number, path in enumerate((keras, tmp_path / "keras.tar.gz", tmp_path / "keras.whl")):
        scratch = tmp_path / str(number)
        scratch.mkdir()
        found = suite.find(path, scratch)
        assert (found.version, list(found.folders)) == ("9.9.1", ["layers", "losses"])
        assert [file.name for file in found.folders["layers"]] == ["a_test.py", "b_test.py"]
    assert list(found.only(["losses"]).folders) == ["losses"]
    assert len(found.only(["layers/b_test.py"]).folders["layers"]) == 1
    with pytest.raises(suite.SuiteError, match="no tests in optimizers; there are layers, losses"):
        found.only(["losses", "optimizers"])


def test_the_installed_package_carries_its_tests(tmp_path: pathlib.Path) -> None:
    assert len(suite.find(None, tmp_path).folders["layers/core"]) > 5


def test_what_is_no_suite_is_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(suite.SuiteError, match="no such file"):
        suite.find(tmp_path / "missing", tmp_path)
    with pytest.raises(suite.SuiteError, match="no folder keras/src in it"):
        suite.find(tmp_path, tmp_path)
    broken = tmp_path / "broken.tar"
    broken.write_bytes(b"not an archive")
    with pytest.raises(suite.SuiteError, match="can't be unpacked"):
        suite.find(broken, tmp_path)


def test_differences_are_told_and_written(keras: pathlib.Path, tmp_path: pathlib.Path) -> None:
    written = tmp_path / "page.md"
    done = subprocess.run(
        [sys.executable, MAIN, f"--suite={keras}", f"--write={written}", "--json"],
        env={"PYTHONPATH": ":".join(entry for entry in sys.path if entry), **_inherited()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout) == {
        "passed_on_cpu": 6,
        "differ": {
            "keras/src/layers/a_test.py::test_fails_on_the_device": (
                "AssertionError: device | differs"
            ),
            "keras/src/layers/a_test.py::test_differs_by_its_place[<object object at 0x>]": (
                "assert not True"
            ),
            "keras/src/layers/a_test.py::test_ends_the_process": "status -9",
        },
    }
    text = written.read_text()
    assert "Keras 9.9.1" in text
    assert "| layers | 6 | 3 | 3 | 2 | 1 | 2" in text
    assert "| losses | 0 | 0 | 0 | 0 | 0 | 2" in text
    assert "| `keras/src/layers/a_test.py::test_ends_the_process` | status -9 |" in text
    assert "AssertionError: device / differs |" in text
    assert "did not run" not in text
    assert "| 1 | ModuleNotFoundError: No module named 'package_that_nobody_has' |" in text


def test_folders_that_did_not_run_are_named() -> None:
    text = page.page([], ["layers/core", "ops"], "9.9.1", "2.21.0", "2026-01-01")
    assert text.endswith("\n## Folders that did not run\n\n- `layers/core`\n- `ops`\n")
    assert "did not run" not in page.page([], [], "9.9.1", "2.21.0", "2026-01-01")


def test_a_test_that_skips_itself_on_the_device_differs() -> None:
    cpu = {"a": running.Outcome(running.PASSED), "b": running.Outcome(running.SKIPPED)}
    device = dict.fromkeys(cpu, running.Outcome(running.SKIPPED))
    assert page.Folder("ops", cpu, device).differing() == ["a"]
    assert page.Folder("ops", cpu, device, may_skip=True).differing() == []


def test_rows_of_earlier_runs_are_kept() -> None:
    passed = running.Outcome(running.PASSED)
    failed = running.Outcome("failed", "why")
    old = page.page(
        [
            page.Folder("layers/core", {"a": passed, "b": passed}, {"a": passed, "b": passed}),
            page.Folder("ops", {"c": passed}, {"c": failed}),
        ],
        [],
        "9.9.1",
        "2.21.0",
        "2026-01-01",
    )
    assert page.kept(old, "9.9.2", "2.21.0") == page.kept(old, "9.9.1", "2.20.0") == []
    # What differs has to run again.
    kept = page.kept(old, "9.9.1", "2.21.0")
    assert kept == [page.Row("layers/core", (2, 2, 0, 0, 0), "2026-01-01")]
    ops = page.Folder("ops", {"c": passed}, {"c": passed})
    new = page.page([ops], [], "9.9.1", "2.21.0", "2026-01-02", kept)
    lines = [line for line in new.splitlines() if line.startswith("| ") and line[2] != "f"]
    assert lines == [
        "| all | 3 | 3 | 0 | 0 | 0 | 2026-01-02 |",
        "| layers/core | 2 | 2 | 0 | 0 | 0 | 2026-01-01 |",
        "| ops | 1 | 1 | 0 | 0 | 0 | 2026-01-02 |",
    ]


def _inherited() -> dict[str, str]:
    import os

    names = ("PATH", "HOME", "TFP_LIBRARY", "TMPDIR", "LD_LIBRARY_PATH")
    return {name: os.environ[name] for name in names if name in os.environ}


def test_a_wrong_command_line_is_told() -> None:
    done = subprocess.run(
        [sys.executable, MAIN, "layers"],
        env={"PYTHONPATH": ":".join(entry for entry in sys.path if entry), **_inherited()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "unexpected argument layers: see --help" in done.stderr
