"""What the wheels' bytecode serves to a program that depends on TensorFlow."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec

import pytest


@pytest.fixture(scope="module")
def compiled() -> list[str]:
    """The files that Python has compiled since."""
    files: list[str] = []

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "compile":
            files.append(str(arguments[1]))

    sys.addaudithook(hook)
    return files


@pytest.mark.parametrize("package", ["tensorflow", "keras", "numpy", "h5py", "absl"])
def test_a_wheel_is_not_compiled(package: str, compiled: list[str]) -> None:
    spec = find_spec(package)
    assert spec is not None
    assert isinstance(spec.loader, SourceFileLoader)
    code = spec.loader.get_code(package)
    assert code is not None
    assert code.co_filename == spec.origin
    assert spec.origin not in compiled


def test_the_hook_sees_what_is_compiled(compiled: list[str]) -> None:
    compile("1", "seen.py", "eval")
    assert "seen.py" in compiled
