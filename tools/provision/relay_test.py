from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.provision import relay
from tools.provision.messages import StartError
from tools.provision.relay import Relay

SAID = (
    b"tfp: the remote cache grpc://h:1 fails: %s; what it does not give is built here, and more "
    b"warnings about it are left out\n"
)


def through(*parts: bytes) -> bytes:
    filtered = Relay("grpc://h:1")
    return b"".join([*map(filtered.feed, parts), filtered.end()])


def test_the_first_warning_about_the_cache_is_said_and_no_other() -> None:
    text = (
        b"INFO: a\n"
        b"WARNING: Remote Cache: connection reset\n"
        b"WARNING: something else\n"
        b"(12:00:01) WARNING: Remote Cache: timed out\n"
        b"last"
    )
    expected = b"INFO: a\n" + SAID % b"connection reset" + b"WARNING: something else\nlast"
    assert through(text) == expected


def test_a_list_of_errors_is_one_warning() -> None:
    text = b"WARNING: Remote Cache: 2 errors during bulk transfer:\nfirst\nsecond\nthird\n" * 2
    assert through(text) == SAID % b"first" + b"third\nthird\n"


def test_what_is_no_warning_is_not_kept_waiting() -> None:
    filtered = Relay("x")
    assert filtered.feed(b"go on? [y/n] ") == b"go on? [y/n] "
    assert filtered.feed(b"WARN") == b""
    assert filtered.feed(b"ED\n") == b"WARNED\n"


@given(st.lists(st.binary(max_size=20)))
def test_other_text_comes_through_as_it_is(parts: list[bytes]) -> None:
    whole = b"".join(parts)
    assert b"Remote Cache" not in whole
    assert through(*parts) == whole


@given(st.integers(1, 60))
def test_it_does_not_matter_how_text_is_cut(size: int) -> None:
    warned = b"WARNING: Remote Cache: "
    text = b"a\n" + warned + b"1 errors during bulk transfer:\nb\n" + warned + b"c\nd\n"
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    assert through(*parts) == b"a\n" + SAID % b"b" + b"d\n"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "program"


def start(program: Path, body: str) -> subprocess.Popen[str]:
    """Starts a process that runs a shell program through a relay."""
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        f"sys.path.insert(0, {str(Path(relay.__file__).parents[2])!r})\n"
        "from tools.provision import relay\n"
        f"sys.exit(relay.run([{str(program)!r}], {{'PATH': '/usr/bin:/bin', 'A': 'b'}}, "
        "relay.Relay('http://h')))\n"
    )
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True)


def test_a_program_keeps_its_output_and_its_exit_status(program: Path) -> None:
    done = start(program, 'echo "out $A"; echo "WARNING: Remote Cache: x" >&2; exit 3')
    out, err = done.communicate(timeout=30)
    assert (done.returncode, out) == (3, "out b\n")
    assert err.startswith("tfp: the remote cache http://h fails: x; ")


def test_what_a_program_leaves_running_is_not_waited_for(program: Path) -> None:
    done = start(program, "sleep 600 & echo $! ; echo done >&2")
    begin = time.monotonic()
    assert done.stdout is not None
    left = int(done.stdout.readline())
    try:
        done.wait(timeout=30)
        assert time.monotonic() - begin < 30
        assert done.returncode == 0
    finally:
        os.kill(left, signal.SIGKILL)
        out, err = done.communicate(timeout=30)
    assert (out, err) == ("", "done\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_program(program: Path, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    body = f"trap 'echo told; exit 9' {name}; echo ready; while :; do sleep 0.1; done"
    done = start(program, body)
    assert done.stdout is not None
    assert done.stdout.readline() == "ready\n"
    done.send_signal(number)
    out, _ = done.communicate(timeout=30)
    assert (done.returncode, out) == (9, "told\n")


def test_a_program_that_dies_by_a_signal_has_the_shells_status(program: Path) -> None:
    done = start(program, "kill -KILL $$")
    done.communicate(timeout=30)
    assert done.returncode == 128 + signal.SIGKILL


def test_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(StartError, match="No such file"):
        relay.run(["/no/bazel"], {}, Relay("x"))
