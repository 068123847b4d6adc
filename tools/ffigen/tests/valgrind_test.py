"""The crates' own test programs under valgrind: no invalid access, no leak."""

from __future__ import annotations

import os
import subprocess

import pytest

PROGRAMS = os.environ["PROGRAMS"].split()


@pytest.mark.parametrize("program", PROGRAMS)
def test_memory(program: str) -> None:
    command = [
        "valgrind",
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
        "--show-leak-kinds=definite,indirect",
        "--errors-for-leak-kinds=definite,indirect",
        program,
        "--test-threads=1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "test result: ok." in done.stdout
