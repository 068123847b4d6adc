"""A process that runs cases, so that its end is a finding and not the end of the run.

It is a copy of another one, which has imported what the target needs and does nothing else: a fork
takes milliseconds, and TensorFlow's import as long as hundreds of cases.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import re
import shutil
import signal
import socket
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.fuzz.case import Case, Outcome, Reference, Status, Target
from tests.fuzz.clock import Clock

Make = Callable[[Path, Reference], Target]
Load = Callable[[], None]

# Cases of a process: TensorFlow keeps what it traced.
_LIFE = 500
# Seconds between two looks at the memory of a process that computes.
_LOOK = 0.25
# Seconds to import TensorFlow and write the valid inputs: beside builds, a run of hours is niced.
_START = 1800.0
_REPOSITORY = Path(__file__).parents[2]
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Limits:
    """What a case may take.

    Attributes:
        seconds: Seconds of a processor.
        memory: Bytes of resident memory.
        patience: How many times as long as `seconds` a case may last.
    """

    seconds: float = 60.0
    memory: int = 6 << 30
    patience: float = 10.0


class Worker:
    """Runs cases in a process, and starts another when it ended."""

    def __init__(self, make: Make, limits: Limits, load: Load = lambda: None) -> None:
        """Starts nothing yet.

        Args:
            make: Makes the target, in the process that runs cases.
            limits: What a case may take.
            load: Imports what the target needs, once. It must compute nothing with TensorFlow,
                whose threads are in no copy.
        """
        self._make = make
        self._load = load
        self._limits = limits
        self._done = 0
        self._folder = Path(tempfile.mkdtemp(prefix="fuzz."))
        self._pipe: Any = None
        self._origin: Any = None
        self._control: Any = None
        self._child = 0
        self._other = _FORK.Value("b", 0)
        self.contained = False
        self.bases = 0
        self.most_edits = 0
        self.input_name = ""
        self.greedy = False

    def start(self) -> None:
        """Starts the process; waits until it is ready."""
        self._stop()
        log = self._folder / "log"
        if self._origin is None:
            self._control, theirs = socket.socketpair()
            self._origin = _FORK.Process(target=self._serve_copies, args=(theirs, log), daemon=True)
            self._origin.start()
            theirs.close()
        self._pipe, child_end = _FORK.Pipe()
        socket.send_fds(self._control, [b"f"], [child_end.fileno()])
        child_end.close()
        self._done = 0
        if not self._pipe.poll(_START):
            raise RuntimeError(f"not ready after {_START:g} s; see {log}")
        try:
            self._child = self._pipe.recv()
            ready = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            raise RuntimeError(f"the process can't start: {_last(log)}") from None
        if isinstance(ready, str):
            raise RuntimeError(ready)
        self.bases, self.most_edits, self.contained, self.input_name, self.greedy = ready

    def _serve_copies(self, control: socket.socket, log: Path) -> None:
        """Makes a copy of this process for each pipe that comes, until none does."""
        self._control.close()
        _write_to(log)
        with contextlib.suppress(Exception):  # The copy fails alike, and tells it.
            self._load()
        # What the collector need not look at again.
        gc.collect()
        gc.freeze()
        while True:
            word, pipes, _, _ = socket.recv_fds(control, 1, 1)
            if not word:
                return
            child = os.fork()
            if child == 0:
                control.close()
                _write_to(log)
                with contextlib.suppress(BaseException):
                    _serve(self._make, self._folder, Connection(pipes[0]), self._other)
                os._exit(0)
            os.close(pipes[0])
            # Anything that is said now asks for its end; so does the end of who would say it.
            control.recv(1)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            control.sendall(status.to_bytes(4, "little", signed=True))

    def run(self, case: Case | Path) -> Outcome:
        """Runs a case, or a file of the corpus."""
        if not self._child or self._done >= _LIFE:
            self.start()
        self._done += 1
        try:
            self._pipe.send(case)
        except BrokenPipeError:
            return self._died()
        clock = Clock(self._child, self._limits.seconds, self._limits.patience)
        while not self._pipe.poll(_LOOK):
            if _resident(self._child) > self._limits.memory:
                what = f"more than {self._limits.memory / 2**30:g} GiB of memory"
                return self._ended(what, self.greedy)
            if late := clock.over():
                return self._ended(late)
        try:
            outcome: Outcome = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            return self._died()
        return outcome

    def write(self, case: Case, folder: Path) -> None:
        """Writes the input of a case into a folder."""
        if not self._child:
            self.start()
        self._pipe.send((case, folder))
        self._pipe.recv()

    def close(self) -> None:
        """Ends the processes and removes their files."""
        self._stop()
        if self._origin is not None:
            self._control.close()
            self._origin.join()
            self._origin = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _stop(self) -> int:
        """Ends the process that runs cases; returns its status."""
        if self._pipe is None:
            return 0
        status = 0
        with contextlib.suppress(OSError):  # Whoever ended all processes ended the origin, too.
            self._control.sendall(b"k")
            status = int.from_bytes(self._control.recv(4), "little", signed=True)
        self._pipe.close()
        self._pipe, self._child = None, 0
        return status

    def _ended(self, what: str, expected: bool = False) -> Outcome:
        """Returns the outcome of a case that ended the process."""
        elsewhere = expected or self.contained or bool(self._other.value)
        words = _last(self._folder / "log")
        self._other.value = 0
        self._stop()
        status = Status.BOUNDED if elsewhere else Status.FAULT
        return Outcome(status, f"{what}: {words}" if words else what, what)

    def _died(self) -> Outcome:
        return self._ended(f"the process ended with {self._stop()}")


def _write_to(log: Path) -> None:
    """Makes a file of what this process writes, also below Python."""
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
        os.dup2(file.fileno(), 1)


def _serve(make: Make, folder: Path, pipe: Connection, other: Any) -> None:
    """Runs cases until the pipe closes."""
    pipe.send(os.getpid())
    base, inputs = folder / "bases", folder / "input"
    base.mkdir(exist_ok=True)

    def reference(begins: bool) -> None:
        other.value = begins

    try:
        target = make(base, reference)
        gc.collect()
        gc.freeze()
        about = (target.bases, target.most_edits, target.contained)
        pipe.send((*about, target.input_name, target.greedy))
    except Exception:
        pipe.send(traceback.format_exc())
        return
    while True:
        try:
            todo = pipe.recv()
        except EOFError:
            return
        other.value = 0
        if isinstance(todo, tuple):
            with contextlib.suppress(Exception):
                target.write(*todo)
            pipe.send(None)
            continue
        shutil.rmtree(inputs, ignore_errors=True)
        inputs.mkdir()
        pipe.send(_outcome(target, todo, inputs))


def _outcome(target: Target, todo: Case | Path, folder: Path) -> Outcome:
    try:
        path = todo if isinstance(todo, Path) else target.write(todo, folder)
    except Exception:
        return Outcome(Status.FAULT, traceback.format_exc(), "the fuzzer itself")
    try:
        return target.check(path)
    except Exception as err:
        # The last line of ours says where.
        frames = traceback.extract_tb(err.__traceback__)
        ours = [
            frame
            for frame in frames
            if str(_REPOSITORY) in frame.filename and "site-packages" not in frame.filename
        ]
        place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
        return Outcome(Status.FAULT, traceback.format_exc(), f"{type(err).__name__} at {place}")


def _resident(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except OSError:
        return 0
    return sum(int(kib) << 10 for kib in re.findall(r"^VmRSS:\s*(\d+) kB", text, re.M))


def _last(log: Path) -> str:
    """Returns the last words of C++ in a log."""
    try:
        text = log.read_bytes()[-20000:].decode("utf-8", "replace")
    except OSError:
        return ""
    found = re.findall(r"(?:Check failed:|terminate called|what\(\):|panicked at).*", text)
    lines = found or [line for line in text.splitlines() if line.strip()]
    return lines[-1][:400] if lines else ""
