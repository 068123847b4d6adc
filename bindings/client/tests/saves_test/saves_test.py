"""Every save that replaces leaves the old one or the new one, whole, wherever it ends.

The program makes every kind of save with a fault at every call that changes files: as if the
process had ended there, and with a disk that is full from there on. Some processes really end.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

PROGRAM = os.environ["SAVES"]
FAULTS = os.environ["FAULTS"]
# Kinds that replace a folder: in one step, or file by file where two names can't be exchanged.
FOLDERS = ("export", "writer", "model")
CHECKPOINTS = ("checkpoint", "numbered", "trainer")
FILES = ("keras", "trained", "weights", "safetensors", "npz", "records", "dataset", "packed")
KINDS = (*CHECKPOINTS, *FOLDERS, *FILES)
STEPS = {"exchange": {}, "files": {"FAULT_NO_EXCHANGE": "1"}}
KILLS = [(kind, "exchange") for kind in KINDS] + [(kind, "files") for kind in FOLDERS]
# What the library ends a process with.
KILLED = 77


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the program with the library that makes the faults."""
    env = {**os.environ, "LD_PRELOAD": str(Path(FAULTS).absolute()), **variables}
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=env)


@pytest.fixture
def folder() -> str:
    """Returns an empty folder."""
    return tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))


@pytest.mark.parametrize("step", STEPS)
def test_faults_at_every_call(folder: str, step: str) -> None:
    done = run("all", folder, **STEPS[step])
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    calls = {kind: int(count) for kind, count in re.findall(r"(\w+) dead: (\d+)", done.stdout)}
    assert sorted(calls) == sorted(KINDS)


@pytest.mark.parametrize(("kind", "step"), KILLS)
def test_a_killed_process(folder: str, kind: str, step: str) -> None:
    # Each process takes seconds to load TensorFlow: one call of each kind, or all with
    # --test_env=EVERY_CALL=1.
    one = 2 if kind in FILES else 20
    for at in range(1, 100) if "EVERY_CALL" in os.environ else [one]:
        save = str(Path(folder) / f"{kind}_{at}")
        killed = run("kill", save, kind, str(at), **STEPS[step])
        assert killed.returncode in ([0, KILLED] if at > one else [KILLED]), killed.stderr
        checked = run("check", save, kind, **STEPS[step])
        assert checked.returncode == 0, f"{kind} killed in call {at}: {checked.stderr}"
        assert checked.stdout.strip() in ("1", "2")
        if killed.returncode == 0:
            return
