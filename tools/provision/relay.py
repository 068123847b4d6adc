"""Runs Bazel with a remote cache, and lets one warning about the cache through.

Bazel warns of every file that a cache does not give as it should. A server that is slow or corrupt,
or dies in a build, would fill the log with what its reader needs to know once.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

from tools.provision.messages import StartError

_WARNING = re.compile(r"(?:\([^)]*\) )?WARNING: Remote Cache: (.*)")
_SEVERAL = re.compile(r"(\d+) errors during bulk transfer:")
_REASON_MAX = 300
# What may still become a warning: shorter than a line, so it is held back.
_HELD = re.compile(rb"(?:\([^)\n]{0,20}\)? ?)?(?:W[A-Z]*:?[^\n]*)?")


class Relay:
    """Rewrites the first warning about the cache and leaves out the others."""

    def __init__(self, cache: str) -> None:
        """Takes the cache's address as people may see it."""
        self._cache = cache
        self._rest = b""
        self._listed = 0
        self._said = False

    def feed(self, data: bytes) -> bytes:
        """Takes what Bazel has written and returns what of it may be shown now."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        shown = b"".join(self._line(line) for line in lines)
        if not self._listed and not _HELD.fullmatch(self._rest):
            # No warning begins like this: a question or a progress bar is not kept waiting.
            shown, self._rest = shown + self._rest, b""
        return shown

    def end(self) -> bytes:
        """Returns what was held back."""
        rest, self._rest = self._rest, b""
        return self._line(rest).removesuffix(b"\n") if rest else b""

    def _line(self, line: bytes) -> bytes:
        text = line.decode(errors="replace").strip()
        if self._listed:
            self._listed -= 1
            return self._say(text)
        found = _WARNING.fullmatch(text)
        if found is None:
            return line + b"\n"
        several = _SEVERAL.fullmatch(found.group(1))
        if several:
            self._listed = int(several.group(1))
            return b""
        return self._say(found.group(1))

    def _say(self, reason: str) -> bytes:
        if self._said:
            return b""
        self._said = True
        return (
            f"tfp: the remote cache {self._cache} fails: {reason[:_REASON_MAX]}; what it does not "
            "give is built here, and more warnings about it are left out\n"
        ).encode()


def run(argv: Sequence[str], environ: Mapping[str, str], relay: Relay) -> int:
    """Runs a program with its standard error going through a relay.

    Signals that end this process are passed on; the terminal's interrupt reaches both anyway.

    Returns:
        Its exit status; 128 more than the signal that ended it.

    Raises:
        StartError: it can't be started.
    """
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)

    # A handler is gone in the program that is started, where "ignore" would stay.
    before = {signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None)}
    for each in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) != signal.SIG_IGN:
            before[each] = signal.signal(each, pass_on)
    try:
        child = subprocess.Popen(argv, env=dict(environ), stderr=subprocess.PIPE)
        for number in early:
            child.send_signal(number)
        status = _follow(child, relay)
    except OSError as error:
        raise StartError("starting Bazel", f"{argv[0]}: {error.strerror}", "start again") from error
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    return status if status >= 0 else 128 - status


def _follow(child: subprocess.Popen[bytes], relay: Relay) -> int:
    """Relays what a program writes until it ends; returns its status."""
    assert child.stderr is not None
    source, ended = child.stderr.fileno(), os.pidfd_open(child.pid)
    try:
        while True:
            ready, _, _ = select.select([source, ended], [], [])
            if source in ready:
                data = os.read(source, 65536)
                _write(relay.feed(data))
                if data:
                    continue
            # What the program has started and left may hold the pipe open: its end is what counts.
            status = child.wait()
            _write(relay.end())
            return status
    finally:
        os.close(ended)
        child.stderr.close()


def _write(data: bytes) -> None:
    try:
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()
    except OSError:
        pass
