"""Runs the conversion in a child process, so that no file can abort, exhaust or hang the program.

TensorFlow ends its process for some damaged graphs, overflows its stack for functions that call
themselves, and computes loops that never end. The parent imports no TensorFlow: it waits, and says
in one line how the child ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import re
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn, TypeAlias

from tools.codegen.rust import one_line

# Seconds between two looks at the memory of the child.
_LOOK = 0.05
# Seconds that a child has to leave by itself.
_GRACE = 2.0
# Part of the machine's memory that a conversion may take if nobody says how much.
_PART = 0.9
# Signals that end a conversion.
_ENDING = (signal.SIGINT, signal.SIGTERM)
_CGROUP = Path("/sys/fs/cgroup/memory.max")
# `prctl(PR_SET_PDEATHSIG, ...)` of Linux.
_PARENT_DEATH = 1
# What the C++ libraries write before they end the process, without time and thread.
_LAST_WORDS = re.compile(r"(?:Check failed:|terminate called|what\(\):).*")


Mask: TypeAlias = set[signal.Signals | int]


class EndedError(Exception):
    """The child did not leave by itself; the message says how it ended."""

    def __init__(self, what: str, advice: str = "") -> None:
        """Keeps what happened, and what to do about it."""
        self.what = what
        self.advice = advice
        super().__init__(what)


@dataclass(frozen=True)
class Limits:
    """What a conversion may take.

    Attributes:
        memory: Bytes of memory; 0 for nine tenths of the machine's.
        seconds: Seconds on the clock; 0 for as many as it takes.
    """

    memory: int = 0
    seconds: float = 0.0


def run(work: Callable[[], int], limits: Limits) -> int:
    """Runs a function in a child process; returns its exit code.

    Standard output and error are those of the caller; what C++ libraries write to the latter is
    left out. Where the system can't fork, the function runs
    in this process, without limits. Only Linux limits the memory.

    Args:
        work: Returns an exit code; all its threads and imports are its own.
        limits: What it may take.

    Raises:
        EndedError: A signal ended the child, or it passed a limit.
    """
    if not hasattr(os, "fork"):
        return work()
    folder = Path(tempfile.mkdtemp(prefix="tf2rust."))
    try:
        with tempfile.TemporaryFile() as log:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            parent = os.getpid()
            # Python drops what a signal raises while it runs its own functions after the fork.
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
            try:
                child = os.fork()
                if child == 0:
                    _leave(work, folder, log, parent, mask)
                return _code(child, limits, log, mask)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _leave(
    work: Callable[[], int], folder: Path, log: IO[bytes], parent: int, mask: Mask
) -> NoReturn:
    """Runs the function in the child, which never returns; the mask is that of the caller."""
    code = 1
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _die_with(parent)
        # What a child leaves behind that is killed, the parent removes.
        tempfile.tempdir = str(folder)
        os.environ["TMPDIR"] = str(folder)
        sys.stderr = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace")
        os.dup2(log.fileno(), 2)
        faulthandler.disable()
        code = work()
    except SystemExit as err:
        code = err.code if isinstance(err.code, int) else int(err.code is not None)
    except BaseException:  # Nothing may get to the code after the fork.
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def _die_with(parent: int) -> None:
    """Ends this process when its parent is killed, where the system can."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _code(child: int, limits: Limits, log: IO[bytes], mask: Mask) -> int:
    """Waits for a child, under the caller's mask of signals; returns its exit code."""
    memory = limits.memory or int(_PART * _machine_memory())
    status: int | None = None
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        status = _watched(child, memory, limits.seconds)
    except KeyboardInterrupt:
        # The terminal interrupts both; another sender may have meant this process alone.
        status = _waited(child, _LOOK * 4)
        status = _ended(child, signal.SIGINT) if status is None else status
        if os.WIFSIGNALED(status):
            raise
    except BaseException:
        if status is None:
            _ended(child, signal.SIGTERM)
        raise
    if os.WIFSIGNALED(status):
        raise _explained(os.WTERMSIG(status), log)
    return os.WEXITSTATUS(status)


def _watched(child: int, memory: int, seconds: float) -> int:
    """Returns the status of a child that ends.

    Raises:
        EndedError: It passed a limit, and still runs.
    """
    start = time.monotonic()
    for _ in _looks(child):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        used = _used(child)
        if used > memory:
            what = f"the conversion took more than {memory / 2**30:.3g} GiB of memory"
            raise EndedError(what, "raise --max_memory if the model needs more")
        if 0 < seconds < time.monotonic() - start:
            what = f"the conversion was not done after {seconds:g} s"
            raise EndedError(what, "raise --max_seconds if the model needs more")
    raise AssertionError("a child is watched until it ends")


def _looks(child: int) -> Iterator[None]:
    """Yields whenever a child may have ended, and once in a while."""
    try:
        handle = os.pidfd_open(child)
    except (AttributeError, OSError):
        while True:
            yield
            time.sleep(_LOOK)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        while True:
            poll.poll(_LOOK * 1000)
            yield
    finally:
        os.close(handle)


def _waited(child: int, seconds: float) -> int | None:
    """Returns the status of a child that ends within some seconds."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > end:
            return None
        time.sleep(_LOOK / 5)


def _ended(child: int, number: int) -> int:
    """Asks a child to leave, and ends it if it does not; returns its status."""
    os.kill(child, number)
    status = _waited(child, _GRACE)
    if status is None:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    return status


def _used(child: int) -> int:
    """Returns the bytes of memory and swap space of a process; 0 where the system does not say."""
    try:
        text = Path(f"/proc/{child}/status").read_text("ascii", "replace")
    except OSError:
        return 0
    return sum(int(kib) << 10 for kib in re.findall(r"^Vm(?:RSS|Swap):\s*(\d+) kB", text, re.M))


def _machine_memory() -> int:
    """Returns the bytes of memory that the machine or its container has."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):
        found = min(found, int(_CGROUP.read_text("ascii")))
    return found


def _explained(number: int, log: IO[bytes]) -> EndedError:
    name = signal.Signals(number).name
    log.seek(0)
    text = log.read(1 << 20).decode("utf-8", "replace")
    words = _LAST_WORDS.findall(text)
    said = f": {one_line(' '.join(words[-1].split()))}" if words else ""
    causes = {
        signal.SIGSEGV: "a function that calls itself too often, or a defect of TensorFlow",
        signal.SIGKILL: "something killed it, such as a machine without memory",
    }
    cause = causes.get(signal.Signals(number), "") if not said else ""
    what = f"the conversion was ended by {name}{said}{f' ({cause})' if cause else ''}"
    return EndedError(what, "the file is damaged, or more than TensorFlow can take")
