"""Runs other programs. Tests pass a stand-in with the same one method."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tools.provision.messages import StartError

CAUSE = re.compile(
    r"no space left|connection (?:refused|reset|timed)|could not (?:connect|resolve)"
    r"|name or service|name resolution|network is unreachable|certificate|tunnel"
    r"|cannot connect to proxy|read timed out|hash sum mismatch|do not match the hashes"
    r"|does not have a release file",
    re.IGNORECASE,
)
"""What names a cause in the words of apt, pip and npm; their last line seldom does."""


@dataclass(frozen=True)
class Outcome:
    """How a program ended.

    Attributes:
        status: its exit status; negative for a signal.
        out: its standard output.
        err: its standard error.
    """

    status: int
    out: str
    err: str

    def last_words(self) -> str:
        """The most telling line of what it wrote: a cause, else the last error or line."""
        lines = [line.strip() for line in (self.err + "\n" + self.out).splitlines() if line.strip()]
        causes = [line for line in lines if CAUSE.search(line)]
        starts = ("E:", "ERROR", "error", "npm error")
        errors = causes or [line for line in lines if line.startswith(starts)]
        chosen = errors[-1] if errors else (lines[-1] if lines else f"exit status {self.status}")
        return chosen[:300]


class Runner(Protocol):
    """Anything that runs a program and waits for it."""

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Outcome:
        """Runs ``argv`` with standard input closed and both outputs caught."""
        ...


class Programs:
    """The real runner."""

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Outcome:
        """Runs ``argv``; a program that cannot be started or takes too long has status 127 or 124.

        Args:
            argv: the program and its arguments.
            cwd: folder to run in.
            env: variables set on top of this process's environment.
            timeout_s: seconds after which the program is killed.
        """
        whole = dict(os.environ)
        whole["LC_ALL"] = "C"
        whole.update(env or {})
        try:
            ended = subprocess.run(
                list(argv),
                cwd=cwd,
                env=whole,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(124, "", f"{argv[0]} did not end within {timeout_s} s")
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise
            return Outcome(127, "", f"{argv[0]}: {error.strerror}")
        return Outcome(
            ended.returncode,
            ended.stdout.decode(errors="replace"),
            ended.stderr.decode(errors="replace"),
        )


def must(
    runner: Runner,
    argv: Sequence[str],
    step: str,
    todo: str,
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Runs ``argv`` and gives its standard output.

    Raises:
        StartError: it ended with another status than 0; names a full disk where that is the reason.
    """
    outcome = runner.run(argv, cwd=cwd, env=env)
    if outcome.status == 0:
        return outcome.out
    words = outcome.last_words()
    if "No space left" in outcome.err + outcome.out or (cwd and free_bytes(cwd) < 1_000_000):
        raise disk_full(step, cwd or ".")
    raise StartError(step, words, todo)


def free_bytes(folder: str) -> int:
    """Bytes that this user may still write where ``folder`` lies (or its nearest parent)."""
    place = Path(folder)
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free


def disk_full(step: str, folder: str) -> StartError:
    """The failure for a disk without room."""
    return StartError(
        step,
        f"the disk that holds {folder} is full",
        "free about 2 GB there or set TFP_CACHE to a folder on another disk, then start again",
    )
