"""A conversion that aborts, runs for ever or takes all memory is an error of one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from converters.tf.cli.supervise import EndedError, Limits, run

_REPOSITORY = Path(__file__).parents[3]


def test_the_code_of_the_child_is_returned(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        print("out")
        print("err", file=sys.stderr)
        os.write(2, b"of a library\n")
        return 6

    assert run(work, Limits()) == 6
    assert capfd.readouterr() == ("out\n", "err\n")


def test_exits_and_tracebacks(capfd: pytest.CaptureFixture[str]) -> None:
    def leave() -> int:
        sys.exit(143)

    def fail() -> int:
        raise ValueError("a defect")

    assert run(leave, Limits()) == 143
    assert run(fail, Limits()) == 1
    assert "ValueError: a defect" in capfd.readouterr().err


def test_an_abort_says_its_last_words() -> None:
    def work() -> int:
        os.write(2, b"F0000 00:00:17 array.cc:1] Check failed: 1 == 2 \x1b[1m(1 vs. 2)\nmore\n")
        os.abort()

    with pytest.raises(
        EndedError, match=r"by SIGABRT: Check failed: 1 == 2 .u\{1b\}\[1m\(1 vs. 2\)$"
    ):
        run(work, Limits())


def test_a_stack_that_overflows() -> None:
    def work() -> int:
        os.kill(os.getpid(), signal.SIGSEGV)
        return 0

    with pytest.raises(EndedError, match=r"SIGSEGV .*calls itself too often"):
        run(work, Limits())


def test_a_loop_that_never_ends(tmp_path: Path) -> None:
    def work() -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Path(tempfile.mkdtemp()).joinpath("large").write_text("x")
        (tmp_path / "folder").write_text(tempfile.gettempdir())
        while True:
            time.sleep(1)

    start = time.monotonic()
    with pytest.raises(EndedError, match=r"not done after 0\.5 s") as caught:
        run(work, Limits(seconds=0.5))
    assert time.monotonic() - start < 30
    assert "--max_seconds" in caught.value.advice
    assert not Path((tmp_path / "folder").read_text()).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems don't say what a process takes")
def test_memory() -> None:
    def work() -> int:
        held = []
        while True:
            held.append(b"x" * (16 << 20))
            time.sleep(0.01)

    with pytest.raises(EndedError, match=r"more than 0\.25 GiB") as caught:
        run(work, Limits(memory=1 << 28))
    assert "--max_memory" in caught.value.advice


# What a shell starts in the background ignores SIGINT, and its children do.
_PROGRAM = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
if {early}:
    os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), {early}))
sys.path.insert(0, {repository!r})
from converters.tf.cli.supervise import Limits, run
from tools.codegen import program

def main(argv):
    print("started", flush=True)
    while True:
        time.sleep(0.1)

program.run("p", lambda argv: run(lambda: program.shown("p", main, argv), Limits()))
"""


@pytest.mark.parametrize("early", [False, True], ids=["later", "in the fork"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_both(number: signal.Signals, code: int, early: bool) -> None:
    """Nobody holds the pipes any more when the parent has left: so the child has, too."""
    program = _PROGRAM.format(repository=str(_REPOSITORY), early=int(number) if early else 0)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        if not early:
            assert process.stdout.readline() == "started\n"
            process.send_signal(number)
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == code
    assert out == "" or early
    assert err == ("p: interrupted\n" if number is signal.SIGINT else "")
