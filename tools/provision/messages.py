"""What the launcher says: lines on standard error, and the one way in which it gives up.

Standard output belongs to Bazel. Every line starts with ``tfp: ``.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

EXIT_ENVIRONMENT = 36
"""Exit status of every failure here: Bazel's own number for a local environmental issue."""


class StartError(Exception):
    """A failure that a user can act on.

    Attributes:
        step: what the launcher was doing.
        found: what it met.
        todo: what the user can do.
    """

    def __init__(self, step: str, found: str, todo: str) -> None:
        """Keeps the three parts; each is one line without a full stop."""
        super().__init__(step, found, todo)
        self.step = step
        self.found = found
        self.todo = todo

    def line(self) -> str:
        """The failure as one line."""
        text = f"{self.step} failed: {self.found}; {self.todo}"
        return " ".join(text.split())


_UNDER_WAY: dict[threading.Event, str] = {}
"""Texts of the long steps that a terminal shows in its last line, by what ends them."""


def say(text: str) -> None:
    """Writes one line to standard error."""
    start = "\r\x1b[K" if _UNDER_WAY else ""
    try:
        sys.stderr.write(f"{start}tfp: {text}\n")
        sys.stderr.flush()
    except OSError:
        pass


def megabytes(count: float) -> str:
    """A byte count for people: ``133 MB``."""
    return f"{count / 1e6:.0f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def folder_bytes(folder: str) -> int:
    """Bytes in the files under ``folder``; what vanishes meanwhile counts as nothing."""
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += Path(parent, name).lstat().st_size
            except OSError:
                continue
    return total


@contextmanager
def progress(
    label: str,
    total: int,
    measure: Callable[[], int],
    *,
    every_s: float | None = None,
) -> Iterator[None]:
    """Shows how far a long step is, until the block ends.

    On a terminal one line is rewritten twice a second, with all steps that are under way; elsewhere
    a line is written every five seconds, so that logs stay short. Steps that end sooner show one
    line only.

    Args:
        label: what is done, for example ``fetching Bazel``.
        total: bytes expected in the end; 0 where unknown.
        measure: gives the bytes done so far; called from another thread.
        every_s: seconds between two lines, for tests.
    """
    live = sys.stderr.isatty()
    pause = every_s if every_s is not None else (0.5 if live else 5.0)
    done = threading.Event()
    of = f" of {megabytes(total)}" if total else ""
    say(f"{label}{f' ({megabytes(total)})' if total else ''} ...")

    def show() -> None:
        started = time.monotonic()
        while not done.wait(pause):
            have = min(measure(), total) if total else measure()
            text = f"{label}: {megabytes(have)}{of}, {time.monotonic() - started:.0f} s"
            if live:
                _UNDER_WAY[done] = text
                sys.stderr.write(f"\rtfp: {' | '.join(list(_UNDER_WAY.values()))}\x1b[K")
                sys.stderr.flush()
            else:
                say(text)
        if live:
            del _UNDER_WAY[done]
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    if live:
        _UNDER_WAY[done] = label
    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
