"""Exit codes of a program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.codegen.program import LOST, USAGE

_PROGRAM = """\
import os
from absl import flags
from tools.codegen import program

_COUNT = flags.DEFINE_integer("count", 3, "how many there are")

def main(argv):
    print(_COUNT.value, argv[1:], os.getcwd())
    return 7

program.run("counter", main, lambda argv: [a for a in argv if a != "noise"])
"""


_SLOW = """\
import tempfile, time
from tools.codegen import program

def main(argv):
    with tempfile.TemporaryDirectory():
        print("ready", flush=True)
        time.sleep(60)
    return 0

program.run("slow", main)
"""


def _environment() -> dict[str, str]:
    path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    return {**os.environ, "PYTHONPATH": path}


def run(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = _environment()
    environment |= {"BUILD_WORKING_DIRECTORY": str(folder)} if folder else {}
    command = [sys.executable, "-c", _PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("flag", ["--help", "--helpshort", "--helpfull", "-?"])
def test_help_is_no_failure(flag: str) -> None:
    done = run(flag)
    assert done.returncode == 0, done.stderr
    if flag == "--helpfull":
        assert "how many there are" in done.stdout


def test_version_is_that_of_all_packages() -> None:
    done = run("--version")
    assert done.returncode == 0, done.stderr
    stated = Path("tools/build/version.bzl").read_text(encoding="utf-8")
    name, version = done.stdout.split()
    assert name == "counter"
    assert f'VERSION = "{version}"' in stated


@pytest.mark.parametrize("flag", ["--count=x", "--what"])
def test_wrong_flags_are_a_usage_error(flag: str) -> None:
    done = run(flag)
    assert done.returncode == USAGE
    assert done.stderr.startswith("counter: ") and done.stderr.endswith("Try --help.\n")
    assert not done.stdout


def test_main_gets_the_rest_and_gives_the_code(tmp_path: Path) -> None:
    done = run("--count=4", "noise", "a", folder=tmp_path)
    assert done.returncode == 7, done.stderr
    assert done.stdout == f"4 ['a'] {tmp_path}\n"


def _shell(redirection: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", "-c", f'"$0" -c "$1" {redirection}', sys.executable, _PROGRAM]
    return subprocess.run(
        command, capture_output=True, text=True, env=_environment(), check=False, timeout=60
    )


def test_output_that_nobody_takes_is_one_line_and_no_trace() -> None:
    full = _shell(">/dev/full")
    assert full.returncode == LOST
    assert full.stderr == "counter: standard output: No space left on device\n"
    closed = _shell(">&-")
    assert (closed.returncode, closed.stderr) == (7, "")
    gone = _shell("> >(true); true")
    assert "Traceback" not in gone.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_nothing_temporary(number: signal.Signals, tmp_path: Path) -> None:
    environment = {**_environment(), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", _SLOW]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as child:
        assert child.stdout is not None and child.stderr is not None
        assert child.stdout.readline() == "ready\n"
        assert list(tmp_path.iterdir())
        child.send_signal(number)
        assert child.wait(60) == 128 + number
        assert "Traceback" not in child.stderr.read()
    assert not list(tmp_path.iterdir())
