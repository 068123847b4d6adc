"""Modules come from bytecode where it is that of their source, and only there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.build.bytecode.write import packed

_SITE = "tools/build/bytecode/site/sitecustomize.py"
_SOURCE = "def f():\n    return 1\n"
# Prints whether the module was compiled, and what it says of itself.
_PROGRAM = """
import sys
compiled = []
def hook(event, arguments):
    if event == "compile" and str(arguments[1]).endswith("named.py"):
        compiled.append(arguments[1])
sys.addaudithook(hook)
import inspect, named
print(len(compiled), named.f(), named.f.__code__.co_filename == named.__file__)
print(inspect.getsource(named.f))
"""


@pytest.fixture
def runfiles(tmp_path: Path) -> Path:
    """Runfiles with a package of one module, and its bytecode."""
    runfiles = tmp_path / "program.runfiles"
    site = runfiles / "tfp" / _SITE
    site.parent.mkdir(parents=True)
    shutil.copy(_SITE, site)
    module = runfiles / "pip_named/site-packages/named.py"
    module.parent.mkdir(parents=True)
    module.write_text(_SOURCE)
    broken = module.with_name("broken.py")
    broken.write_text("def {{ name }}")
    sources = [(str(file.relative_to(runfiles)), file) for file in (broken, module)]
    _bytecode(runfiles).write_bytes(packed(sources))
    return runfiles


def _bytecode(runfiles: Path) -> Path:
    return runfiles / "tfp/tools/build/bytecode/wheels.bytecode"


def _run(runfiles: Path) -> list[str]:
    folders = [(runfiles / "tfp" / _SITE).parent, runfiles / "pip_named/site-packages"]
    done = subprocess.run(
        [sys.executable, "-B", "-c", _PROGRAM],
        env={"PYTHONPATH": ":".join(map(str, folders))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n", 1)


def test_a_module_is_not_compiled(runfiles: Path) -> None:
    assert _run(runfiles) == ["0 1 True", f"{_SOURCE}\n"]


def test_a_source_that_changed_is_compiled(runfiles: Path) -> None:
    module = runfiles / "pip_named/site-packages/named.py"
    module.write_text(_SOURCE.replace("1", "2"))
    assert _run(runfiles)[0] == "1 2 True"


def test_bytecode_of_another_python_is_not_read(runfiles: Path) -> None:
    file = _bytecode(runfiles)
    file.write_bytes(b"none" + file.read_bytes()[4:])
    assert _run(runfiles)[0] == "1 1 True"


def test_a_file_that_is_not_there_changes_nothing(runfiles: Path) -> None:
    _bytecode(runfiles).unlink()
    assert _run(runfiles)[0] == "1 1 True"


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    """In two processes, with the environment of the action."""
    file = tmp_path / "a.py"
    file.write_text(_SOURCE + "g = f in {'text', 'tokens', 'tensors', 'types'}\n")
    program = f"""
import hashlib, pathlib
from tools.build.bytecode.write import packed
print(hashlib.sha256(packed([("a.py", pathlib.Path({str(file)!r}))])).hexdigest())
"""
    environment = {**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))}

    def digest() -> str:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**environment, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert digest() == digest()
